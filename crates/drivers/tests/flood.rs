//! One test in a process of its own, since it measures the process.

#[path = "support/forgetful.rs"]
mod forgetful;
#[expect(dead_code, reason = "the fixture serves many tests, this one needs a part")]
#[path = "support/agent_fixture.rs"]
mod agent_fixture;

use std::sync::Arc;
use std::time::Duration;

use agent_fixture::{Client, ScriptedAgent};
use forgetful::Forgetful;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{FailureKind, Seq};
use gembridge_core::session::TurnState;
use gembridge_testkit::process_table::peak_rss_kb;

/// As much as a turn may send here; the agent would send more.
const TURN: u64 = 96 << 20;

#[tokio::test]
async fn r7_a_flood_that_nobody_reads_costs_a_bounded_amount_of_memory_and_the_reader_its_place() {
    let mut plan = ScriptedAgent::fake(&["--mode", "flood:256M"]).limit(|limits| limits.turn_bytes = TURN);
    plan.store = Arc::new(Forgetful);
    let fixture = plan.start();
    let client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let mut stalled = client.handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    let own = std::process::id();
    let before = peak_rss_kb(own);

    let turn = client.prompt("say never").await;
    while client.handle.describe().await.unwrap().turn != TurnState::Idle {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rise = peak_rss_kb(own) - before;
    let late = Client::attach(client.handle.clone()).await.finish(turn).await;
    late.failed_as(FailureKind::LimitReached);
    assert!(rise < 32 << 10, "the peak rose by {rise} kB");

    let mut taken = 0;
    while let Some(batch) = stalled.follow.recv().await {
        taken += batch.len();
    }
    let whole = late.events.last().unwrap().seq;
    assert!((taken as u64) < whole.0, "its channel closed before the end: {taken} of {whole:?}");
    fixture.end().await;
}
