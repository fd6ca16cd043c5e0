//! Sessions on disk: how long they stay.

use gembridge_core::model::Timestamp;
use gembridge_core::store::Records as _;
use gembridge_store::DiskStore;
use rustix::process::Signal;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::websocket::Client;

const DAY: u64 = 24 * 60 * 60 * 1_000;

fn stop(mut gateway: Gateway) -> Home {
    gateway.signal(Signal::TERM);
    assert!(gateway.ended().success());
    gateway.into_home()
}

/// Lets the sessions be as old as this, and says how many there are.
fn age(home: &Home, days: u64) -> usize {
    let event_loop = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = DiskStore::open(home.state("sessions")).unwrap();
    event_loop.block_on(async {
        let records = store.list(None, 1_000).await.unwrap();
        for record in &records {
            let updated = Timestamp(Timestamp::now().0 - days * DAY);
            store.update(gembridge_core::store::SessionRecord { updated, ..record.clone() }).await.unwrap();
        }
        records.len()
    })
}

#[test]
fn sessions_that_nobody_used_for_a_month_are_deleted_and_newer_ones_stay() {
    let gateway = Home::for_serving().serve();
    for _ in 0..3 {
        assert_eq!(gateway.complete("hello").status, 200);
    }
    let home = stop(gateway);
    let kept = age(&home, 29);
    assert!(kept >= 3, "{kept}");
    let gateway = home.serve();
    assert_eq!(gateway.complete("hello").status, 200);
    let home = stop(gateway);
    assert!(age(&home, 31) > kept);

    let mut gateway = home.serve();
    gateway.wait_for("the deletion", |gateway| gateway.stderr().contains("old sessions were deleted").then_some(()));
    assert_eq!(gateway.complete("hello").status, 200);
    let home = stop(gateway);
    let left = age(&home, 400);
    assert!((1..kept).contains(&left), "only what came since: {left}");

    home.configure_serving("[sessions]\nkeep_days = 0\n");
    let gateway = home.serve();
    assert_eq!(gateway.complete("hello").status, 200);
    let home = stop(gateway);
    assert!(age(&home, 0) > left, "0 keeps all");
}

#[test]
fn a_list_beside_a_running_gateway_has_the_conversations_and_no_unused_session() {
    let gateway = Home::for_serving().serve();
    assert_eq!(gateway.complete("hello").status, 200);
    let mut client = Client::known(&gateway, "/acp");
    client.new_session();
    let stored = gembridge_store::DiskReader::new(gateway.home.state("sessions")).list().unwrap().len();
    assert_eq!(stored, 2);
    let list = ["sessions", "list", "--all", "--agent", "gembridge", "--json"];
    let listed = gateway.home.run(&list).succeeds().json();
    let titles: Vec<_> = listed.as_array().unwrap().iter().map(|session| session["title"].clone()).collect();
    assert_eq!(titles, ["hello"]);
}
