//! Readers that do not keep up, and agents that write faster than anybody reads.

use std::time::Duration;

use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Event, FailureKind, Seq};
use gembridge_core::session::TurnState;

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent, eventually};

/// What the agent's main process has written so far, to all of its outputs.
fn written(fixture: &AgentFixture) -> u64 {
    let pid = fixture.record.entries()[0].pid;
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

/// Waits until the agent has not written for a while, and gives how much it had.
async fn written_until_it_stops(fixture: &AgentFixture) -> u64 {
    let (mut before, mut quiet) = (0, 0);
    eventually("the agent stops to write", || {
        let now = written(fixture);
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        (quiet > 20).then_some(now)
    })
    .await
}

#[tokio::test]
async fn r7_a_follower_that_may_hold_the_agent_blocks_its_pipe_until_it_loses_its_place() {
    const FLOOD: u64 = 32 << 20;
    let plan = ScriptedAgent::fake(&["--mode", "flood:32M"]).limit(|limits| {
        limits.follower_batches = 2;
        limits.follower_stall = Duration::from_secs(15);
    });
    let fixture = plan.start();
    let client = fixture.session().await;
    let mut stalled = client.handle.attach(From::After(Seq::START), Backpressure::HoldAgent).await.unwrap();
    let turn = client.prompt("say drained").await;
    fixture.received("session/prompt", 1).await;
    let blocked_at = written_until_it_stops(&fixture).await;
    assert!(blocked_at < FLOOD / 2, "the agent wrote {blocked_at} bytes though nobody read");

    // It is dropped, so what it had not taken is lost to it, and the turn goes on.
    while client.handle.describe().await.unwrap().turn != TurnState::Idle {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let turned = Client::attach(client.handle.clone()).await.finish(turn).await;
    assert!(turned.finished().ends_with("drained"));
    while stalled.follow.recv().await.is_some() {}
    fixture.end().await;
}

#[tokio::test]
async fn r7_a_follower_that_catches_up_keeps_its_place_and_misses_nothing() {
    let plan = ScriptedAgent::fake(&[]).limit(|limits| {
        limits.follower_batches = 1;
        limits.follower_stall = Duration::from_mins(1);
    });
    let fixture = plan.start();
    let client = fixture.session().await;
    let mut slow = client.handle.attach(From::After(Seq::START), Backpressure::HoldAgent).await.unwrap();
    client.prompt("chunks 20000").await;
    let (mut seen, mut last) = (String::new(), slow.last);
    'turn: while let Some(batch) = slow.follow.recv().await {
        tokio::time::sleep(Duration::from_millis(2)).await;
        for entry in batch.iter() {
            assert_eq!(entry.seq, last.next(), "without a gap");
            last = entry.seq;
            match &entry.event {
                Event::Text(text) => seen.push_str(&text.to_str()),
                Event::Ended(_) => break 'turn,
                _ => {}
            }
        }
    }
    let expected: Vec<String> = (0..20_000).map(|number| format!("chunk-{number} ")).collect();
    assert_eq!(seen, expected.concat());
    fixture.end().await;
}

#[tokio::test]
async fn r7_one_slow_subscriber_never_slows_the_others() {
    let plan = ScriptedAgent::fake(&[]).limit(|limits| {
        limits.follower_batches = 64;
        limits.ring_entries = 1_000_000;
        limits.ring_bytes = 1 << 30;
    });
    let fixture = plan.start();
    let mut reader = fixture.session().await;
    let mut stalled = reader.handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    let turned = reader.turn("chunks 30000").await;
    assert_eq!(turned.events().filter(|event| matches!(event, Event::Text(_))).count(), 30_000);
    turned.finished();
    // The turn ended while the other had taken nothing; what it had room for is still there.
    let first = stalled.follow.recv().await.unwrap();
    assert!(matches!(first[0].event, Event::Prompted { .. }));
    fixture.end().await;
}

#[tokio::test]
async fn s29_an_agent_that_sends_more_than_a_turn_may_is_cancelled() {
    let plan = ScriptedAgent::fake(&["--mode", "flood:1G"]).limit(|limits| {
        limits.turn_bytes = 1 << 20;
        limits.follower_batches = 100_000;
    });
    let fixture = plan.start();
    let ended = fixture.session().await.turn("anything").await;
    let failure = ended.failed_as(FailureKind::LimitReached);
    assert!(failure.message.contains("1048576"), "{failure}");
    fixture.received("session/cancel", 1).await;
    fixture.end().await;
}
