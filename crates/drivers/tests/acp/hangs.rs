//! Agents that say nothing, or do not listen.

use std::time::Duration;

use gembridge_core::model::{FailureKind, Outcome};

use super::agent_fixture::{ScriptedAgent, eventually};

const SOON: Duration = Duration::from_millis(300);

/// A silence that no agent which answers is taken for, on a loaded machine either.
const ENOUGH: Duration = Duration::from_secs(8);

#[tokio::test]
async fn r3_an_agent_that_never_finishes_its_start_is_given_up_and_ended() {
    let mut plan = ScriptedAgent::fake(&["--mode", "hang-init,ignore-eof,ignore-sigterm"]);
    plan.setup.profile.limits.start_seconds = 1;
    let fixture = plan.start();
    let turned = fixture.session().await.turn("say hello").await;
    let failure = turned.failed_as(FailureKind::TimedOut);
    // A start that took all of its time before the first message is told in other words.
    assert!(failure.message.contains("`initialize`") || failure.message.contains("was not ready"), "{failure}");
    fixture.deserted().await;
    fixture.end().await;
}

#[tokio::test]
async fn r3_a_silent_agent_is_told_to_cancel_and_then_killed() {
    let plan = ScriptedAgent::fake(&["--mode", "hang-prompt,ignore-sigterm"]);
    // Long enough that the cancel is read before the agent is killed.
    let fixture = plan.limit(|limits| (limits.idle, limits.cancel_grace) = (SOON, Duration::from_secs(3))).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("anything").await;
    let turned = client.finish(turn).await;
    let failure = turned.failed_as(FailureKind::TimedOut);
    assert!(failure.message.contains("silent"), "{failure}");
    fixture.received("session/cancel", 1).await;
    fixture.deserted().await;
    assert_eq!(client.ends_of(turn).await, 1);
    fixture.end().await;
}

#[tokio::test]
async fn r3_a_turn_that_takes_too_long_is_ended_although_the_agent_talks_all_the_time() {
    let plan = ScriptedAgent::fake(&[]);
    let fixture = plan.limit(|limits| limits.turn = Duration::from_secs(1)).start();
    let mut client = fixture.session().await;
    let turned = client.turn("chunks 100000 delay 5").await;
    let failure = turned.failed_as(FailureKind::TimedOut);
    assert!(failure.message.contains("longer"), "{failure}");
    assert!(turned.text().starts_with("chunk-0 chunk-1 "), "what came is kept");
    fixture.received("session/cancel", 1).await;
    assert_eq!(client.turn("say obedient").await.finished(), "obedient", "it obeyed, so its process stays");
    assert_eq!(fixture.record.starts().len(), 1);
    fixture.end().await;
}

#[tokio::test]
async fn r3_a_cancel_that_the_agent_ignores_ends_the_turn_as_cancelled_and_its_process() {
    let fixture = ScriptedAgent::fake(&["--mode", "hang-prompt"]).limit(|limits| limits.cancel_grace = SOON).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("anything").await;
    fixture.received("session/prompt", 1).await;
    client.handle.cancel().await.unwrap();
    assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
    fixture.deserted().await;
    fixture.end().await;
}

/// The agent reads `initialize`, `session/new` and one prompt, and nothing after.
#[tokio::test]
async fn r3_the_prompt_behind_a_hanging_one_never_goes_to_the_process_that_hangs() {
    let plan = ScriptedAgent::fake(&["--mode", "no-read-stdin:3", "--without", "load,resume"]);
    let fixture = plan.limit(|limits| (limits.idle, limits.cancel_grace) = (ENOUGH, SOON)).start();
    let (_, never) = fixture.gate("never");
    let mut client = fixture.session().await;
    let hanging = client.prompt(&format!("until {never}")).await;
    let queued = client.prompt("say next").await;
    client.finish(hanging).await.failed_as(FailureKind::TimedOut);
    assert_eq!(client.finish(queued).await.finished(), "next");
    assert_eq!(fixture.record.starts().len(), 2);
    fixture.end().await;
}

#[tokio::test]
async fn r3_other_processes_are_unaffected_by_one_that_hangs() {
    let fixture = ScriptedAgent::fake(&[]).limit(|limits| (limits.idle, limits.cancel_grace) = (ENOUGH, SOON)).start();
    let mut client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let mut calm = fixture.session_of("somebody else").await;
    // Longer than the other one may hang, and never silent.
    let running = calm.prompt("say begun ;; chunks 600 delay 20 ;; say done").await;
    calm.said("begun").await;
    let (hung, calm) = tokio::join!(client.turn("sleep 600000"), calm.finish(running));
    hung.failed_as(FailureKind::TimedOut);
    let text = calm.finished();
    assert!(text.starts_with("begunchunk-0 ") && text.ends_with("chunk-599 done"), "{text}");
    fixture.end().await;
}

/// One session of two waits for ever; it is given up, and the other's turn still finishes. When that one leaves as
/// well, nobody needs the process.
#[tokio::test]
async fn r3_a_turn_beside_a_hanging_one_in_the_same_process_still_finishes() {
    let plan = ScriptedAgent::fake(&["--mode", "no-read-stdin:5"]);
    let fixture = plan.limit(|limits| limits.cancel_grace = SOON).start();
    let (gate, until) = fixture.gate("go");
    let (mut hanging, mut calm) = (fixture.session().await, fixture.session().await);
    hanging.handle.wake().await.unwrap();
    calm.handle.wake().await.unwrap();
    let running = calm.prompt(&format!("say begun ;; until {until} ;; say done")).await;
    calm.said("begun").await;
    let stuck = hanging.prompt(&format!("say stuck ;; until {until}.never")).await;
    hanging.said("stuck").await;
    assert_eq!(fixture.record.starts().len(), 1, "they share one process");

    hanging.handle.cancel().await.unwrap();
    assert_eq!(hanging.finish(stuck).await.outcome, Outcome::Cancelled);
    assert!(fixture.driver.processes()[0].condemned, "a process that does not obey takes no new sessions");
    std::fs::write(gate, "").unwrap();
    assert_eq!(calm.finish(running).await.finished(), "begundone");
    calm.handle.close().await.unwrap();
    eventually("the process that hangs is ended", || fixture.driver.processes().is_empty().then_some(())).await;
    fixture.deserted().await;
    fixture.end().await;
}

/// More than any pipe holds, so that the write itself cannot finish.
const LARGE: usize = 4 << 20;

#[tokio::test]
async fn r7c_a_prompt_that_the_agent_does_not_read_blocks_nobody_and_ends_by_the_idle_limit() {
    let plan = ScriptedAgent::fake(&["--mode", "no-read-stdin"]);
    let fixture = plan.limit(|limits| (limits.idle, limits.cancel_grace) = (SOON, SOON)).start();
    let mut client = fixture.session().await;
    let turn = client.prompt(&"x".repeat(LARGE)).await;
    client.handle.describe().await.unwrap();
    // Had anybody waited for the write, its own deadline would have ended the turn, as a crash.
    client.finish(turn).await.failed_as(FailureKind::TimedOut);
    assert_eq!(client.ends_of(turn).await, 1);
    fixture.deserted().await;
    fixture.end().await;
}

#[tokio::test]
async fn r7c_a_write_has_a_deadline_of_its_own() {
    let fixture = ScriptedAgent::fake(&["--mode", "no-read-stdin"]).start();
    let mut client = fixture.session().await;
    let turned = client.turn(&"x".repeat(LARGE)).await;
    // Its input broke, so it was ended: long before any limit of the turn.
    turned.failed_as(FailureKind::Crashed);
    fixture.deserted().await;
    fixture.end().await;
}
