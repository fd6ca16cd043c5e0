//! Several sessions in one process, and what becomes of them when it dies.

use gembridge_core::model::{Event, FailureKind, Timestamp};
use gembridge_testkit::process_table::is_alive;
use gembridge_testkit::processes_with_tag;
use serde_json::{Value, json};

use super::gemini_fixture::{GeminiAgent, script};
use crate::agent_fixture::{Turned, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_stream_at_once_in_one_process_and_each_gets_its_own_text() {
    let fixture = GeminiAgent::agent().await.start();
    let (mut first, mut second) = (fixture.session().await, fixture.session().await);
    first.handle.wake().await.unwrap();
    second.handle.wake().await.unwrap();
    let slowly = |letter: &str| {
        let steps: Vec<Value> = (0..30).flat_map(|_| [json!({"text": letter}), json!({"delay_ms": 200})]).collect();
        script(json!([steps]))
    };
    let (a, b) = (slowly("a"), slowly("b"));
    let (a, b) = tokio::join!(first.turn(&a), second.turn(&b));
    assert_eq!((a.text(), b.text()), ("a".repeat(30), "b".repeat(30)));
    let ((a_first, a_last), (b_first, b_last)) = (span(&a), span(&b));
    assert!(a_first < b_last && b_first < a_last, "they took turns: {a_first:?} {a_last:?} {b_first:?} {b_last:?}");
    let processes = fixture.driver.processes();
    assert_eq!(processes.iter().map(|process| process.sessions).collect::<Vec<_>>(), [2]);
    fixture.end().await;
}

/// When the first and the last text came.
fn span(turned: &Turned) -> (Timestamp, Timestamp) {
    let texts = turned.events.iter().filter(|entry| matches!(entry.event, Event::Text(_)));
    let times: Vec<Timestamp> = texts.map(|entry| entry.at).collect();
    (times[0], times[times.len() - 1])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_mid_turn_twice_in_a_row_costs_that_turn_only() {
    let fixture = GeminiAgent::agent().await.with_spares().start();
    let mut client = fixture.session().await;
    for round in 0..2 {
        let turn = client.prompt(&script(json!([[{"text": "partial"}, {"delay_ms": 1}, {"stall": true}]]))).await;
        client.said("partial").await;
        let pid = fixture.driver.processes()[0].pid.unwrap();
        eventually("a spare is ready", || (fixture.driver.pools()[0].spares == 1).then_some(())).await;
        let warm = processes_with_tag(&fixture.folder.path().display().to_string());
        kill(pid);
        let turned = client.finish(turn).await;
        let failure = turned.failed_as(FailureKind::Crashed);
        assert!(failure.message.contains("signal 9"), "{failure}");
        assert_eq!((turned.text().as_str(), client.ends_of(turn).await), ("partial", 1));
        assert!(!is_alive(pid));

        let said = client.turn("and now?").await.finished();
        let hears =
            said.starts_with("You said: [User]\n") && said.ends_with("[Assistant]\npartial\n\n[User]\nand now?");
        assert!(hears, "round {round}: what was said before it came is told to it: {said}");
        let next = fixture.driver.processes()[0].pid.unwrap();
        assert!(next != pid && warm.contains(&next), "the spare stepped in, nobody waited for a start");
        let replaced = client.seen().iter().filter(|entry| matches!(entry.event, Event::AgentReplaced { .. })).count();
        assert_eq!(replaced, round + 1, "each loss of memory is told");
    }
    fixture.end().await;
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
