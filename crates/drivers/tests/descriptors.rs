//! One test in a process of its own, since it measures the process.

#[expect(dead_code, reason = "the fixture serves many tests, this one needs a part")]
#[path = "support/agent_fixture.rs"]
mod agent_fixture;

use agent_fixture::{ScriptedAgent, eventually};
use gembridge_core::model::FailureKind;
use gembridge_testkit::process_table::threads;
use gembridge_testkit::{open_fds, zombies_of};

#[tokio::test]
async fn r11_descriptors_are_back_after_turns_sessions_commands_and_crashes() {
    let mut plan = ScriptedAgent::fake(&[]);
    // One process from the first turn to the last, so that what is left is to be compared.
    plan.setup.profile.limits.recycle_after_turns = 10_000;
    plan.setup.restart.failures = 1_000;
    plan.setup.restart.first_backoff = std::time::Duration::ZERO;
    let fixture = plan.start();
    let own = std::process::id();
    let mut first = fixture.session().await;
    first.turn("say warm ;; terminal true ;; write a b ;; read a").await.finished();
    let (before, threads_before) = (open_fds(own), threads(own));

    for round in 0..50 {
        let mut client = fixture.session().await;
        for turn in 0..4 {
            let word = format!("{round}-{turn}");
            assert_eq!(client.turn(&format!("say {word}")).await.finished(), word);
        }
        client.turn("terminal true ;; write a b ;; read a").await.finished();
        client.handle.close().await.unwrap();
    }
    for _ in 0..10 {
        // Another principal's process, so that the first one stays.
        fixture.session_of("clumsy").await.turn("exit 1").await.failed_as(FailureKind::Crashed);
    }
    eventually("the descriptors are back", || (open_fds(own) <= before).then_some(())).await;
    eventually("no zombie is left", || zombies_of(own).is_empty().then_some(())).await;
    // Blocking work has threads of its own, which come and go; they do not grow with the turns.
    assert!(threads(own) <= threads_before + 16, "{} threads, {threads_before} before", threads(own));
    fixture.end().await;
}
