//! Which gateways there are, as people see it.

use rustix::process::Signal;

use crate::gateways::{SECRET, Three, eventually, home, serve};
use crate::redis_server::RedisServer;
use crate::support::home::Home;

#[test]
fn the_gateways_of_a_cluster_are_listed_and_leave_by_themselves() {
    let mut three = Three::start();
    let nodes = three.nodes();
    let mut addresses: Vec<_> = three.gateways.iter().map(|gateway| gateway.address.to_string()).collect();
    addresses.sort_unstable();
    let listed: Vec<_> = nodes.iter().map(|node| node["address"].as_str().unwrap()).collect();
    assert_eq!(listed, addresses);
    assert!(nodes.iter().all(|node| node["version"] == env!("CARGO_PKG_VERSION") && node["draining"] == false));
    three.gateways[1].complete("hello");
    let busy = three.gateways[1].address.to_string();
    eventually("the load is told", || {
        three.nodes().iter().any(|node| node["address"] == busy.as_str() && node["sessions"] == 1).then_some(())
    });
    let text = three.gateways[0].home.stdout_of(&["cluster"]);
    assert!(text.starts_with("ADDRESS") && text.lines().count() == 4 && text.contains("serving"), "{text}");

    let report = three.gateways[0].home.run(&["doctor", "--agent", "demo"]);
    for line in ["redis 7", "agree on the time", &format!("{busy} is reached")] {
        assert!(report.stdout.contains(line), "`{line}` is missing in {}", report.stdout);
    }

    // One that ends says so; one that is killed is known to be gone when its lease has ended.
    let mut last = three.gateways.pop().unwrap();
    last.signal(Signal::TERM);
    assert!(last.ended().success(), "{}", last.stderr());
    assert_eq!(three.nodes().len(), 2);
    three.gateways[1].signal(Signal::KILL);
    eventually("the killed gateway is gone", || (three.nodes().len() == 1).then_some(()));

    // A gateway that comes back is the same one.
    let id = |nodes: &[serde_json::Value]| nodes[0]["id"].clone();
    let before = id(&three.nodes());
    let mut first = three.gateways.remove(0);
    first.signal(Signal::KILL);
    first.ended();
    three.gateways = vec![serve(first.into_home())];
    assert_eq!(id(&three.nodes()), before);
}

#[test]
fn a_cluster_that_cannot_be_is_refused_with_the_way_out() {
    let redis = RedisServer::start();
    let (address, secret) = (format!("redis = 'redis://{}'", redis.address), format!("secret = '{SECRET}'"));
    for (settings, code, sentence) in [
        ("address = 'x'".to_owned(), 2, "names no `redis`"),
        (format!("{address}\n{secret}"), 2, "`cluster.address` is missing"),
        (format!("{address}\naddress = 'x'"), 2, "`cluster.secret` is missing"),
        (format!("{address}\naddress = 'x'\nsecret = 'short'"), 2, "can be guessed"),
        (format!("{address}\naddress = 'x'\nsecret_file = '/no/such'"), 2, "there is no such file"),
        (format!("{address}\naddress = 'x'\n{secret}\nsecret_file = '/no/such'"), 2, "are both set"),
        (format!("redis = 'http://x'\naddress = 'x'\n{secret}"), 2, "is not an address of Redis"),
        (format!("redis = 'redis://127.0.0.1:1'\naddress = 'x'\n{secret}"), 1, "cannot join the cluster"),
    ] {
        let home = Home::for_serving();
        home.configure_serving(&format!("[cluster]\n{settings}"));
        let (exit, said) = home.refused(&["--agent", "demo"]);
        assert_eq!(exit, code, "{settings}: {said}");
        assert!(said.contains(sentence) && !said.contains(SECRET), "{settings}: {said}");
    }
    let alone = Home::for_serving().run(&["cluster"]);
    alone.refused(2, "stands alone");
}

#[test]
fn s16_the_secret_comes_from_a_file_and_is_shown_nowhere() {
    let redis = RedisServer::start();
    let home = home(&redis);
    let file = home.path("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    home.configure_serving(&format!(
        "[cluster]\nredis = 'redis://:canary-password@{}'\naddress = '127.0.0.1'\nsecret_file = '{}'",
        redis.address,
        file.display()
    ));
    let shown = home.stdout_of(&["config", "show"]);
    assert!(!shown.contains("canary"), "{shown}");
    // The password is wrong, and is not repeated.
    let (_, said) = home.refused(&["--agent", "demo"]);
    assert!(said.contains("cannot join the cluster") && !said.contains("canary"), "{said}");
}
