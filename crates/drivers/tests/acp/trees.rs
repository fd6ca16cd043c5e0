//! What an agent leaves behind: processes, descriptors, folders.

use gembridge_core::model::{Event, FailureKind, Outcome};
use gembridge_drivers::setup::Spares;
use gembridge_testkit::process_table::wait_until_gone;
use gembridge_testkit::{open_fds, processes_with_tag};

use super::agent_fixture::{AgentFixture, ScriptedAgent, eventually};

const STUBBORN: [&str; 5] = [
    "fork",
    "fork-setsid",
    "ignore-sigterm,ignore-eof",
    "fork,ignore-sigterm",
    "fork-setsid,ignore-sigterm,ignore-eof",
];

/// A fixture whose agent is in the middle of a turn, with a spare beside it.
async fn busy(mode: &str) -> (AgentFixture, super::agent_fixture::Client) {
    let mut plan = ScriptedAgent::fake(&["--mode", mode]);
    plan.spares = Spares::OfTheProfile;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    client.prompt("say busy ;; wait-cancel").await;
    client.said("busy").await;
    eventually("the spare is there", || (fixture.record.starts().len() >= 2).then_some(())).await;
    assert!(fixture.processes().len() >= 4, "two agents, each with its guard, and what they started");
    (fixture, client)
}

#[tokio::test]
async fn r9_nothing_is_left_after_the_driver_was_shut_down() {
    for mode in STUBBORN {
        let (fixture, _client) = busy(mode).await;
        tokio::time::timeout(super::agent_fixture::PATIENCE, fixture.sessions.shutdown()).await.unwrap();
        assert_eq!(fixture.processes(), Vec::<u32>::new(), "{mode}: shutdown waits for all of them");
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_nothing_is_left_after_everything_was_dropped() {
    for mode in STUBBORN {
        let (fixture, client) = busy(mode).await;
        let tag = fixture.tag();
        let AgentFixture { driver, sessions, spawner, folder, record: _ } = fixture;
        drop((client, sessions, driver));
        // The guards end the trees by themselves; nobody tells them anything but by hanging up.
        drop(spawner);
        let left =
            tokio::task::spawn_blocking(move || wait_until_gone(&tag, super::agent_fixture::PATIENCE)).await.unwrap();
        assert_eq!(left, Vec::<u32>::new(), "{mode}");
        drop(folder);
    }
}

#[tokio::test]
async fn r9_nothing_of_a_crashed_agent_is_left() {
    for mode in ["fork,crash-mid:1", "fork-setsid,crash-mid:1", "fork-setsid,ignore-sigterm,crash-mid:1"] {
        let fixture = ScriptedAgent::fake(&["--mode", mode]).start();
        fixture.session().await.turn("anything").await.failed_as(FailureKind::Crashed);
        fixture.deserted().await;
        fixture.end().await;
    }
}

#[tokio::test]
async fn r9_nothing_is_left_of_an_agent_that_ignored_its_cancel() {
    let plan = ScriptedAgent::fake(&["--mode", "hang-prompt,fork-setsid,ignore-sigterm,ignore-eof"]);
    let fixture = plan.limit(|limits| limits.cancel_grace = std::time::Duration::from_millis(200)).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("anything").await;
    fixture.received("session/prompt", 1).await;
    client.handle.cancel().await.unwrap();
    assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
    fixture.deserted().await;
    fixture.end().await;
}

#[tokio::test]
async fn r8_closing_a_session_in_the_middle_of_a_turn_tells_the_agent_and_keeps_its_process() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let mut other = fixture.session().await;
    client.prompt("say busy ;; wait-cancel").await;
    client.said("busy").await;
    assert_eq!(other.turn("say beside").await.finished(), "beside");
    client.handle.close().await.unwrap();
    let cancel = fixture.received("session/cancel", 1).await;
    let prompt = fixture.received("session/prompt", 1).await;
    assert_eq!(cancel["params"]["sessionId"], prompt["params"]["sessionId"]);
    fixture.received("session/close", 1).await;
    assert_eq!(other.turn("say still there").await.finished(), "still there");
    assert_eq!(fixture.record.starts().len(), 1);
    fixture.end().await;
}

#[tokio::test]
async fn an_idle_session_that_goes_sends_no_cancel() {
    let fixture = ScriptedAgent::fake(&["--without", "close"]).start();
    let mut client = fixture.session().await;
    client.turn("say hello").await.finished();
    client.handle.close().await.unwrap();
    let mut other = fixture.session().await;
    other.turn("say after").await.finished();
    assert_eq!(fixture.record.messages_of("session/cancel").len(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn r11_descriptors_and_private_folders_are_back_after_two_hundred_turns_and_fifty_sessions() {
    let mut plan = ScriptedAgent::fake_chat(&[]);
    plan.setup.profile.limits.sessions_per_process = 64;
    let fixture = plan.start();
    let mut first = fixture.session().await;
    first.turn("say warm").await.finished();
    let agent = fixture.record.entries()[0].pid;
    let folders = || std::fs::read_dir(fixture.folder.path().join("private")).unwrap().count();
    let (agents_before, folders_before) = (open_fds(agent), folders());
    for round in 0..50 {
        let mut client = fixture.session().await;
        for turn in 0..4 {
            let word = format!("{round}-{turn}");
            assert_eq!(client.turn(&format!("say {word}")).await.finished(), word);
        }
        client.handle.close().await.unwrap();
    }
    eventually("their folders are gone", || (folders() == folders_before).then_some(())).await;
    eventually("the agent's own are back", || (open_fds(agent) == agents_before).then_some(())).await;
    eventually("its places too", || (fixture.driver.processes()[0].sessions == 1).then_some(())).await;
    assert_eq!(fixture.record.starts().len(), 1);
    fixture.end().await;
}

#[tokio::test]
async fn r9_a_command_that_an_agent_runs_ends_with_its_session() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let (mut client, mut other) = (fixture.session().await, fixture.session().await);
    let endless = fixture.workspace().join(command_tag(&fixture));
    std::fs::write(&endless, "").unwrap();
    client.prompt(&format!("terminal tail -f {} ;; say never", endless.display())).await;
    // The agent names the terminal, and then waits for its end.
    client.until(|event| matches!(event, Event::ToolCall(_)).then_some(())).await;
    assert_eq!(other.turn("say beside").await.finished(), "beside");
    assert!(!commands(&fixture).is_empty(), "the command runs");
    client.handle.close().await.unwrap();
    eventually("the command ended", || commands(&fixture).is_empty().then_some(())).await;
    fixture.end().await;
}

fn command_tag(fixture: &AgentFixture) -> String {
    format!("{}-command", fixture.tag())
}

/// The living commands that the agent runs through us.
fn commands(fixture: &AgentFixture) -> Vec<u32> {
    processes_with_tag(&command_tag(fixture))
}
