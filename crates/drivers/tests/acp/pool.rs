//! Warm processes: ready before they are needed, shared by one principal, replaced when they have served.

use gembridge_core::model::FailureKind;
use gembridge_drivers::profile::Quirk;
use gembridge_drivers::setup::Spares;
use gembridge_testkit::record;
use serde_json::Value;

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent, eventually};

fn with_spare(args: &[&str]) -> ScriptedAgent {
    let mut plan = ScriptedAgent::fake(args);
    plan.spares = Spares::OfTheProfile;
    plan
}

/// The process that answers this session.
async fn pid(client: &mut Client) -> u64 {
    let surroundings: Value = serde_json::from_str(&client.turn("env").await.finished()).unwrap();
    assert!(surroundings["argv"].is_array());
    let prompt = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    // The fake agent puts its process into the names of its sessions.
    prompt.rsplit('-').nth(1).unwrap().parse().unwrap()
}

async fn spare_is_ready(fixture: &AgentFixture) {
    eventually("a spare is ready", || (fixture.driver.pools()[0].spares == 1).then_some(())).await;
}

#[tokio::test]
async fn a_warm_spare_has_shaken_hands_before_anybody_asks_and_is_replaced_when_taken() {
    let fixture = with_spare(&[]).start();
    spare_is_ready(&fixture).await;
    assert_eq!(fixture.record.messages_of("initialize").len(), 1);
    assert_eq!(fixture.record.messages_of("session/new").len(), 0);
    let spare = fixture.record.entries()[0].pid;
    let mut client = fixture.session().await;
    assert_eq!(pid(&mut client).await, u64::from(spare), "the spare serves it");
    spare_is_ready(&fixture).await;
    assert_eq!(fixture.record.starts().len(), 2);
    fixture.end().await;
}

#[tokio::test]
async fn a_session_made_ahead_is_there_before_the_first_prompt_and_is_the_one_that_answers() {
    let mut plan = with_spare(&[]);
    plan.setup.profile.limits.premade_sessions = 1;
    let fixture = plan.start();
    spare_is_ready(&fixture).await;
    assert_eq!(fixture.record.messages_of("session/new").len(), 1);
    let mut client = fixture.session().await;
    client.turn("say hello").await.finished();
    let methods: Vec<String> = of_first_process(&fixture);
    assert_eq!(methods[..3], ["initialize", "session/new", "session/prompt"], "no other session was opened for it");
    // The next one is made ahead as well, in the same process.
    eventually("the next session is made ahead", || {
        (of_first_process(&fixture).iter().filter(|method| *method == "session/new").count() == 2).then_some(())
    })
    .await;
    let mut second = fixture.session().await;
    second.turn("say hello").await.finished();
    assert_eq!(pid(&mut second).await, pid(&mut client).await);
    fixture.end().await;
}

/// The methods that the first process received, in order.
fn of_first_process(fixture: &AgentFixture) -> Vec<String> {
    let entries = fixture.record.entries();
    let first = entries[0].pid;
    let method = |entry: record::Entry| match entry.event {
        record::Event::Received(message) if entry.pid == first => message["method"].as_str().map(str::to_owned),
        _ => None,
    };
    entries.into_iter().filter_map(method).collect()
}

#[tokio::test]
async fn sessions_are_made_ahead_however_many_have_come_and_gone() {
    let mut plan = with_spare(&[]);
    plan.setup.profile.limits.premade_sessions = 1;
    plan.setup.profile.limits.sessions_per_process = 2;
    let fixture = plan.start();
    spare_is_ready(&fixture).await;
    for _ in 0..4 {
        let mut client = fixture.session().await;
        client.turn("say hello").await.finished();
        client.handle.close().await.unwrap();
        eventually("it has left", || (fixture.driver.processes()[0].sessions == 0).then_some(())).await;
    }
    let opened =
        |fixture: &AgentFixture| of_first_process(fixture).iter().filter(|method| *method == "session/new").count();
    eventually("one more is ready", || (opened(&fixture) == 5).then_some(())).await;
    fixture.end().await;
}

#[tokio::test]
async fn a_process_for_one_session_that_cannot_be_closed_hands_out_the_one_made_ahead() {
    let mut plan = with_spare(&["--without", "close"]).quirks(&[Quirk::SessionsCannotBeClosed]);
    plan.setup.profile.limits.premade_sessions = 1;
    plan.setup.profile.limits.sessions_per_process = 1;
    let fixture = plan.start();
    spare_is_ready(&fixture).await;
    let (mut first, mut second) = (fixture.session().await, fixture.session().await);
    assert_eq!(first.turn("say one").await.finished(), "one");
    assert_eq!(second.turn("say two").await.finished(), "two");
    assert_ne!(pid(&mut first).await, pid(&mut second).await);
    fixture.end().await;
}

#[tokio::test]
async fn a_spare_that_was_killed_is_replaced_before_anybody_asks() {
    let fixture = with_spare(&[]).start();
    spare_is_ready(&fixture).await;
    let spare = fixture.record.entries()[0].pid;
    let kill = rustix::process::kill_process(
        rustix::process::Pid::from_raw(spare.try_into().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    );
    kill.unwrap();
    eventually("another one started", || (fixture.record.starts().len() == 2).then_some(())).await;
    spare_is_ready(&fixture).await;
    let mut client = fixture.session().await;
    assert_ne!(pid(&mut client).await, u64::from(spare));
    fixture.end().await;
}

#[tokio::test]
async fn b3_after_a_kill_the_next_prompt_is_answered_by_the_spare_that_was_there() {
    let fixture = with_spare(&["--start-delay-ms", "300"]).start();
    let mut client = fixture.session().await;
    let first = pid(&mut client).await;
    spare_is_ready(&fixture).await;
    let spare = fixture.record.entries().iter().map(|entry| u64::from(entry.pid)).find(|pid| *pid != first).unwrap();
    client.turn("say a word ;; abort").await.failed_as(FailureKind::Crashed);
    assert_eq!(pid(&mut client).await, spare);
    fixture.end().await;
}

#[tokio::test]
async fn s18_two_principals_never_share_a_process() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut pids = Vec::new();
    for principal in ["anna", "bert", "anna", "bert"] {
        pids.push(pid(&mut fixture.session_of(principal).await).await);
    }
    assert_eq!((pids[0], pids[1]), (pids[2], pids[3]), "each has one process");
    assert_ne!(pids[0], pids[1]);
    fixture.end().await;
}

#[tokio::test]
async fn a_process_takes_as_many_sessions_as_its_profile_says() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.profile.limits.sessions_per_process = 2;
    let fixture = plan.start();
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = fixture.session().await;
        client.turn("say hello").await.finished();
        clients.push(client);
    }
    let mut sessions: Vec<u32> = fixture.driver.processes().iter().map(|process| process.sessions).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, [1, 2, 2]);
    fixture.end().await;
}

#[tokio::test]
async fn a_place_is_given_back_with_its_session_unless_it_counts_for_life() {
    for (quirks, processes) in [(&[][..], 1), (&[Quirk::SessionsCannotBeClosed][..], 3)] {
        let mut plan = ScriptedAgent::fake(&[]).quirks(quirks);
        plan.setup.profile.limits.sessions_per_process = 1;
        let fixture = plan.start();
        for _ in 0..3 {
            let mut client = fixture.session().await;
            client.turn("say hello").await.finished();
            client.handle.close().await.unwrap();
            eventually("it has left", || {
                fixture.driver.processes().iter().all(|process| process.sessions == 0).then_some(())
            })
            .await;
        }
        assert_eq!(fixture.record.starts().len(), processes, "{quirks:?}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_process_that_has_served_its_turns_is_replaced_but_never_under_a_running_turn() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.profile.limits.recycle_after_turns = 2;
    let fixture = plan.start();
    let (gate, until) = fixture.gate("go");
    let mut first = fixture.session().await;
    first.turn("say one").await.finished();
    let running = first.prompt(&format!("say two ;; until {until} ;; say done")).await;
    first.said("two").await;
    let mut second = fixture.session().await;
    second.turn("say other").await.finished();
    let old =
        fixture.driver.processes().into_iter().find(|process| process.condemned).expect("it has served its turns");
    assert_eq!((fixture.record.starts().len(), old.sessions), (2, 1), "new sessions go elsewhere");
    std::fs::write(gate, "").unwrap();
    assert_eq!(first.finish(running).await.finished(), "twodone");
    assert_eq!(first.turn("say three").await.finished(), "three", "a session keeps its process");
    first.handle.close().await.unwrap();
    eventually("the old process is gone", || {
        fixture.driver.processes().iter().all(|process| process.pid != old.pid).then_some(())
    })
    .await;
    assert_eq!(second.turn("say still there").await.finished(), "still there");
    fixture.end().await;
}
