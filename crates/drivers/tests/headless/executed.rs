//! `execute`: one turn for a program that wants nothing else.

use std::time::Duration;

use gembridge_core::model::{Event, FailureKind};
use gembridge_drivers::detect::Disk;
use gembridge_drivers::headless::{ExecuteRequest, Observer, SessionChoice, capabilities, execute};
use gembridge_drivers::profile::{Environment, Profile};
use gembridge_process::Exit;
use gembridge_unified::Role;
use serde_json::json;

use crate::agent_fixture::PATIENCE;
use crate::scripted::{agent, noted};

fn request(prompt: &str) -> ExecuteRequest {
    ExecuteRequest { prompt: prompt.to_owned(), session: SessionChoice::New, permission_mode: None, timeout: PATIENCE }
}

#[derive(Default)]
struct Heard(Vec<String>);

impl Observer for Heard {
    fn started(&mut self, pid: Option<u32>) {
        self.0.push(format!("started {}", pid.is_some()));
    }

    fn event(&mut self, event: &Event) {
        if let Event::Text(text) = event {
            self.0.push(format!("text {}", text.to_str()));
        }
    }

    fn stdout(&mut self, line: &[u8]) {
        self.0.push(format!("stdout {}", line.len() > 10));
    }

    fn stderr(&mut self, tail: &str) {
        self.0.push(format!("stderr {}", tail.trim()));
    }

    fn closed(&mut self, exit: Exit) {
        self.0.push(format!("closed {exit}"));
    }
}

#[tokio::test]
async fn a_turn_gives_its_messages_its_data_and_its_session() {
    let script = r#"echo warned >&2
echo '{"type":"message","role":"assistant","content":"Looking. "}'
echo '{"type":"tool_use","tool_name":"read_file","tool_id":"t","parameters":{"file_path":"a"}}'
echo '{"type":"tool_result","tool_id":"t","status":"success","output":"alpha"}'
echo '{"type":"message","role":"assistant","content":"It is ```json\n{\"a\": 1}\n```"}'
echo '{"type":"result","status":"success"}'"#;
    let plan = agent("gemini", &script.replace("\\n", "\\\\n").replace("\\\"", "\\\\\""));
    let mut heard = Heard::default();
    let done = execute(&plan.setup, request("what is it?"), &mut heard).await;
    assert!(done.success && done.error.is_none(), "{done:?}");
    assert_eq!((done.exit_code, done.data), (Some(0), Some(json!({"a": 1}))));
    let roles: Vec<_> = done.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant], "{:?}", done.messages);
    assert_eq!(done.messages[0].text(), "what is it?");
    let args = noted(plan.folder.path(), "args");
    assert!(args[0].ends_with(&format!("--session-id={}", done.session_id.unwrap())), "{args:?}");
    assert_eq!(heard.0[0], "started true");
    assert!(
        heard.0.contains(&"text Looking. ".to_owned()) && heard.0.contains(&"stdout true".to_owned()),
        "{:?}",
        heard.0
    );
    assert_eq!(heard.0[heard.0.len() - 2..], ["stderr warned".to_owned(), "closed exit code 0".to_owned()]);
    plan.setup.spawner.shut_down().await;
}

#[tokio::test]
async fn a_session_is_resumed_by_its_id_in_a_mode() {
    let plan = agent("gemini", "echo '{\"type\":\"result\",\"status\":\"success\"}'");
    let asked = ExecuteRequest {
        session: SessionChoice::Resume("abc-1".to_owned()),
        permission_mode: Some("acceptEdits".to_owned()),
        ..request("go on")
    };
    let done = execute(&plan.setup, asked, &mut ()).await;
    assert!(done.success, "{done:?}");
    assert_eq!(done.session_id.as_deref(), Some("abc-1"));
    let args = noted(plan.folder.path(), "args");
    assert!(args[0].ends_with("--approval-mode=auto_edit --resume=abc-1"), "{args:?}");
    for odd in ["--yolo", "", "a b", "a;b"] {
        let asked = ExecuteRequest { session: SessionChoice::Resume(odd.to_owned()), ..request("x") };
        assert!(!execute(&plan.setup, asked, &mut ()).await.success, "{odd}");
    }
    assert_eq!(noted(plan.folder.path(), "args").len(), 1, "nothing was started for them");
    plan.setup.spawner.shut_down().await;
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_ended_with_its_whole_tree() {
    let plan = agent("gemini", "sleep 600 & sleep 600");
    let asked = ExecuteRequest { timeout: Duration::from_millis(1), ..request("x") };
    let done = execute(&plan.setup, asked, &mut ()).await;
    assert_eq!(done.error.map(|failure| failure.kind), Some(FailureKind::TimedOut));
    assert!(!done.success);
    plan.setup.spawner.shut_down().await;
    assert_eq!(plan.setup.spawner.living(), 0);
}

#[tokio::test]
async fn a_failure_has_its_exit_code_and_its_reason() {
    let plan = agent("gemini", "echo 'Please set an Auth method' >&2; exit 41");
    let done = execute(&plan.setup, request("x"), &mut ()).await;
    let failure = done.error.unwrap();
    assert_eq!((done.exit_code, failure.kind), (Some(41), FailureKind::NeedsLogin));
    assert!(failure.message.contains("set an Auth method"), "{failure}");
    let mut acp = agent("gemini", "exit 0").setup;
    acp.profile.headless = None;
    assert!(execute(&acp, request("x"), &mut ()).await.error.unwrap().message.contains("does not run headless"));
    let asked = ExecuteRequest { permission_mode: Some("sudo".to_owned()), ..request("x") };
    assert!(execute(&plan.setup, asked, &mut ()).await.error.unwrap().message.contains("has no mode `sudo`"));
    plan.setup.spawner.shut_down().await;
}

#[test]
fn capabilities_are_told_without_starting_anything() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    gembridge_testkit::write_script(&program, "#!/bin/sh\n").unwrap();
    let environment = Environment::from([("PATH".to_owned(), folder.path().display().to_string())]);
    let of = |name: &str| {
        let profile = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == name).unwrap();
        capabilities(&profile, &environment, &Disk)
    };
    let claude = of("claude").unwrap();
    assert_eq!((claude.installed, claude.path, claude.thinking), (true, Some(program), true));
    let gemini = of("gemini").unwrap();
    assert!(!gemini.installed && gemini.web_search && gemini.slash_commands && !gemini.thinking);
    assert!(gemini.models.contains(&"gemini-2.5-pro".to_owned()));
    assert_eq!(of("codex"), None);
}
