//! The real A2A server of Gemini CLI, started by the driver and asking a fake of its API.

use std::path::Path;

use gembridge_core::model::Outcome;
use gembridge_core::session::NewSession;
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::{AgentConfig, Environment, Profile};
use gembridge_testkit::gemini_api::FakeGemini;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent_fixture::{AgentFixture, ScriptedAgent, eventually, path};
use crate::tool_server::HostTools;

async fn agent() -> (FakeGemini, ScriptedAgent) {
    let profile = Profile::custom("gemini-a2a", &AgentConfig::default(), &Profile::builtin().unwrap()).unwrap();
    let api = FakeGemini::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let program = gembridge_testkit::real_gemini_a2a_server();
    let mut plan = ScriptedAgent::of(profile, program, None, folder);
    plan.policy = PermissionPolicy::reject();
    plan.setup.environment = Environment::from([
        ("PATH".to_owned(), path()),
        ("HOME".to_owned(), home.display().to_string()),
        ("GEMINI_API_KEY".to_owned(), "fake-key".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL".to_owned(), api.url()),
    ]);
    plan.setup.login = plan.setup.profile.find_login(&plan.setup.environment, &|path| path.exists());
    // As long as a loaded machine may need for it.
    plan.setup.profile.limits.start_seconds = 150;
    // What the server compiled once serves every test.
    plan.setup.cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gemini-a2a-cache");
    (api, plan)
}

fn pid(fixture: &AgentFixture) -> u32 {
    fixture.driver.processes()[0].pid.unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "the callers write their calls in place")]
fn script(calls: Value) -> String {
    format!("please SCRIPT:{}:END", json!({ "calls": calls }))
}

#[tokio::test]
async fn it_listens_on_loopback_behind_a_key_and_answers_turn_after_turn() {
    let (api, plan) = agent().await;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("hello").await.finished(), "You said: hello");
    assert_eq!(client.turn("again").await.finished(), "You said: again");
    let contents = api.model_calls().pop().unwrap().body["contents"].to_string();
    assert!(contents.contains("hello") && contents.contains("again"), "one conversation: {contents}");
    let tools = api.model_calls().pop().unwrap().body["tools"].clone();
    assert!(!tools.to_string().contains("run_shell_command"), "in chat it has no tools of its own: {tools}");

    let listening = listeners(pid(&fixture));
    assert_eq!(listening.len(), 1, "{listening:?}");
    let (address, port) = listening[0];
    assert_eq!(address, [127, 0, 0, 1], "on loopback only");
    let card = "GET /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert!(raw(port, card).starts_with("HTTP/1.1 401 "), "no one else gets an answer");
    fixture.end().await;
}

#[tokio::test]
async fn a_cancelled_turn_is_aborted_and_the_conversation_goes_on() {
    let (api, plan) = agent().await;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    client.turn("the first word").await.finished();
    let turn = client.prompt(&script(json!([[{"text": "half"}, {"stall": true}]]))).await;
    client.said("half").await;
    client.handle.cancel().await.unwrap();
    assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
    assert_eq!(client.turn("and now").await.finished(), "You said: and now");
    let contents = api.model_calls().pop().unwrap().body["contents"].to_string();
    assert!(contents.contains("the first word"), "it is the same conversation: {contents}");
    fixture.end().await;
}

#[tokio::test]
async fn tools_of_the_client_are_called_without_a_question() {
    let (api, plan) = agent().await;
    let tools = HostTools::start("get_weather", "sunny in Oslo");
    let fixture = plan.start();
    let new = NewSession { tool_servers: vec![tools.server()], ..fixture.new_session() };
    let mut client = fixture.session_with(new).await;
    let called = json!([[{"call": {"name": "get_weather", "id": "c1", "args": {"city": "Oslo"}}}], [{"text": "done"}]]);
    assert_eq!(client.turn(&script(called)).await.finished(), "done");
    assert_eq!(tools.calls().len(), 1, "{:?}", tools.calls());
    assert!(api.model_calls().pop().unwrap().body.to_string().contains("sunny in Oslo"));
    fixture.end().await;
}

#[tokio::test]
async fn one_server_serves_all_sessions_of_a_key_and_is_replaced_when_it_dies_or_is_used_up() {
    let (_api, mut plan) = agent().await;
    plan.setup.profile.limits.recycle_after_turns = 2;
    let fixture = plan.start();
    let (mut first, mut second) = (fixture.session().await, fixture.session().await);
    let (one, two) = tokio::join!(first.turn("one"), second.turn("two"));
    assert_eq!((one.finished().as_str(), two.finished().as_str()), ("You said: one", "You said: two"));
    let original = pid(&fixture);
    // The third task is one too many.
    let mut third = fixture.session().await;
    third.turn("three").await.finished();
    let newer = pid(&fixture);
    assert_ne!(newer, original);
    assert_eq!(first.turn("still here").await.finished(), "You said: still here", "it lives until its sessions end");

    kill_process(Pid::from_raw(i32::try_from(newer).unwrap()).unwrap(), Signal::KILL).unwrap();
    eventually("it is gone", || fixture.driver.processes().is_empty().then_some(())).await;
    let told = third.turn("after the end").await.finished();
    assert!(told.contains("three") && told.ends_with("after the end"), "{told}");
    assert_ne!(pid(&fixture), newer);
    fixture.end().await;
}

/// What a process listens on, by the tables of the kernel.
fn listeners(pid: u32) -> Vec<([u8; 4], u16)> {
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default().display().to_string();
        sockets.extend(target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).map(str::to_owned));
    }
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] != "0A" || !sockets.iter().any(|inode| inode == fields[9]) {
                continue;
            }
            let (address, port) = fields[1].split_once(':').unwrap();
            // An address of the other family is none that is expected here.
            let address = u32::from_str_radix(address, 16).map_or([0; 4], u32::to_le_bytes);
            found.push((address, u16::from_str_radix(port, 16).unwrap()));
        }
    }
    found
}

fn raw(port: u16, request: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
