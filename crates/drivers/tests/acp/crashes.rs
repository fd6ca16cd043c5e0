//! Agents that end when they should not.

use std::time::{Duration, Instant};

use gembridge_core::model::{Event, FailureKind, Outcome};
use gembridge_drivers::setup::Spares;
use gembridge_process::RestartPolicy;
use gembridge_testkit::{record, zombies_of};

use super::agent_fixture::{AgentFixture, ScriptedAgent, eventually};

#[tokio::test]
async fn r1_a_crash_mid_turn_keeps_what_came_and_ends_the_turn_once_with_how_and_why() {
    let fixture = ScriptedAgent::fake(&["--mode", "crash-mid:3"]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("anything").await;
    let turned = client.finish(turn).await;
    assert_eq!(turned.text(), "chunk-0 chunk-1 chunk-2 ");
    let failure = turned.failed_as(FailureKind::Crashed);
    assert!(failure.message.contains("exit code 3"), "{failure}");
    assert!(!failure.message.contains("about to crash"), "what agents write to stderr is not for every client");
    let tail = failure.stderr_tail.as_deref().unwrap_or_default();
    assert!(tail.contains("about to crash") && tail.contains("crashed as told"), "{tail}");
    assert_eq!(client.ends_of(turn).await, 1);
    fixture.end().await;
}

#[tokio::test]
async fn r1_the_prompt_after_a_crash_works_on_a_new_process_and_the_log_says_so() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    for code in [5, 6] {
        let turned = client.turn(&format!("say before ;; exit {code}")).await;
        assert_eq!(turned.text(), "before");
        let failure = turned.failed_as(FailureKind::Crashed);
        assert!(failure.message.contains(&format!("exit code {code}")), "{failure}");
    }
    assert_eq!(client.turn("say after").await.finished(), "after");
    let replaced: Vec<String> = client.seen().iter().filter_map(|entry| replacement(&entry.event)).collect();
    assert_eq!(replaced.len(), 2, "{replaced:?}");
    assert!(replaced[0].contains("exit code 5") && replaced[1].contains("exit code 6"), "{replaced:?}");
    assert_eq!(pids(&fixture).len(), 3, "each crash costs one process");
    fixture.end().await;
}

fn replacement(event: &Event) -> Option<String> {
    match event {
        Event::AgentReplaced { reason } => Some(reason.clone()),
        _ => None,
    }
}

/// The processes that said they started, each once.
fn pids(fixture: &AgentFixture) -> std::collections::BTreeSet<u32> {
    let started = |entry: &record::Entry| matches!(entry.event, record::Event::Started(_));
    fixture.record.entries().iter().filter(|entry| started(entry)).map(|entry| entry.pid).collect()
}

#[tokio::test]
async fn r1_an_agent_that_ends_in_good_order_in_the_middle_of_a_turn_interrupts_it_too() {
    let fixture = ScriptedAgent::fake(&["--mode", "exit0-mid"]).start();
    let turned = fixture.session().await.turn("anything").await;
    assert_eq!(turned.text(), "chunk-0 ");
    let failure = turned.failed_as(FailureKind::Crashed);
    assert!(failure.message.contains("exit code 0"), "{failure}");
    fixture.end().await;
}

#[tokio::test]
async fn r1_a_signal_is_named_like_an_exit_code() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let turned = fixture.session().await.turn("say x ;; abort").await;
    let failure = turned.failed_as(FailureKind::Crashed);
    assert!(failure.message.contains("signal 6 (SIGABRT)"), "{failure}");
    fixture.end().await;
}

#[tokio::test]
async fn r1_a_crash_is_noticed_although_its_offspring_still_holds_the_output_open() {
    let fixture = ScriptedAgent::fake(&["--mode", "fork,ignore-sigterm,crash-mid:1"]).start();
    let turned = fixture.session().await.turn("anything").await;
    let failure = turned.failed_as(FailureKind::Crashed);
    assert!(failure.message.contains("exit code 3"), "{failure}");
    fixture.end().await;
}

#[tokio::test]
async fn r1_a_crash_ends_every_session_of_the_process_and_none_of_another() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let (gate, until) = fixture.gate("go");
    let (mut first, mut second) = (fixture.session().await, fixture.session().await);
    let mut stranger = fixture.session_of("somebody else").await;
    let waiting = first.prompt(&format!("say waiting ;; until {until}.never")).await;
    first.said("waiting").await;
    let apart = stranger.prompt(&format!("say apart ;; until {until} ;; say done")).await;
    stranger.said("apart").await;
    second.turn("exit 9").await.failed_as(FailureKind::Crashed);
    first.finish(waiting).await.failed_as(FailureKind::Crashed);
    std::fs::write(gate, "").unwrap();
    assert_eq!(stranger.finish(apart).await.finished(), "apartdone");
    fixture.end().await;
}

/// Small enough for a test, long enough to see the circuit open on a loaded machine.
const OPEN: Duration = Duration::from_secs(8);

fn impatient() -> RestartPolicy {
    RestartPolicy {
        first_backoff: Duration::from_millis(5),
        max_backoff: Duration::from_millis(20),
        failures: 3,
        window: Duration::from_mins(1),
        open_for: OPEN,
        max_open_for: OPEN,
    }
}

#[tokio::test]
async fn r2_a_crash_loop_opens_the_circuit_which_answers_at_once_and_recovers_by_itself() {
    let mut plan = ScriptedAgent::fake(&["--mode", "crash-start-while:DIR/broken"]);
    plan.setup.restart = impatient();
    let broken = plan.folder.path().join("broken");
    std::fs::write(&broken, "").unwrap();
    let fixture = plan.start();
    let mut client = fixture.session().await;

    for _ in 0..3 {
        let turned = client.turn("say hello").await;
        let failure = turned.failed_as(FailureKind::Crashed);
        assert!(failure.message.contains("exit code 7"), "{failure}");
    }
    let until_open = fixture.driver.pools()[0].retry_after.expect("the circuit is open");
    let asked = Instant::now();
    let turned = client.turn("say hello").await;
    let refused_after = asked.elapsed();
    let failure = turned.failure();
    let FailureKind::Unavailable { retry_after } = failure.kind else { panic!("{failure:?}") };
    assert!(retry_after > Duration::ZERO && retry_after <= OPEN, "{retry_after:?}");
    assert!(failure.message.contains("exit code 7"), "the last failure is named: {failure}");
    assert!(refused_after < until_open, "it did not wait for the circuit: {refused_after:?} of {until_open:?}");

    std::fs::remove_file(broken).unwrap();
    let recovered = eventually_recovers(&mut client).await;
    assert_eq!(recovered, "hello");
    fixture.end().await;
}

async fn eventually_recovers(client: &mut super::agent_fixture::Client) -> String {
    let deadline = Instant::now() + super::agent_fixture::PATIENCE;
    loop {
        let turned = client.turn("say hello").await;
        let FailureKind::Unavailable { retry_after } = (match &turned.outcome {
            Outcome::Interrupted(failure) => failure.kind,
            _ => return turned.finished(),
        }) else {
            panic!("{:?}", turned.outcome)
        };
        assert!(Instant::now() < deadline, "the circuit never closes");
        // What a client is told to do.
        tokio::time::sleep(retry_after).await;
    }
}

#[tokio::test]
async fn r2_an_open_circuit_starts_no_process_for_those_who_ask() {
    let mut plan = ScriptedAgent::fake(&["--mode", "crash-mid:1"]);
    plan.setup.restart = RestartPolicy { open_for: Duration::from_mins(10), ..impatient() };
    let fixture = plan.start();
    let mut client = fixture.session().await;
    for _ in 0..3 {
        client.turn("anything").await.failed_as(FailureKind::Crashed);
    }
    eventually("the last crash is counted", || fixture.driver.pools()[0].retry_after).await;
    let started = fixture.record.starts().len();
    assert_eq!(started, 3);
    for _ in 0..20 {
        let turned = client.turn("anything").await;
        assert!(matches!(turned.failure().kind, FailureKind::Unavailable { .. }), "{:?}", turned.outcome);
    }
    assert_eq!(fixture.record.starts().len(), started, "nothing was started");
    fixture.end().await;
}

#[tokio::test]
async fn r10_a_hundred_sessions_that_crash_leave_no_zombie_and_no_process() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.restart.failures = 1_000;
    plan.setup.restart.first_backoff = Duration::ZERO;
    plan.spares = Spares::OfTheProfile;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    for _ in 0..50 {
        client.turn("say x ;; exit 1").await.failed_as(FailureKind::Crashed);
        client.turn("abort").await.failed_as(FailureKind::Crashed);
    }
    assert_eq!(client.turn("say still there").await.finished(), "still there");
    let own = std::process::id();
    // Other tests of this executable have children too; none of them may stay a zombie.
    eventually("every child is reaped", || zombies_of(own).is_empty().then_some(())).await;
    fixture.end().await;
}

#[tokio::test]
async fn r10_a_program_that_is_not_there_is_named_with_the_way_out() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.program = plan.folder.path().join("no-such-agent");
    let fixture = plan.start();
    let turned = fixture.session().await.turn("say hello").await;
    let failure = turned.failure();
    assert!(matches!(failure.kind, FailureKind::Unavailable { .. }), "{failure:?}");
    assert!(
        failure.message.contains("no-such-agent") && failure.message.contains("install it or give its full path"),
        "{failure}"
    );
    assert_eq!(fixture.record.starts().len(), 0);
    fixture.end().await;
}
