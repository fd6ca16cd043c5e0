//! Turns of sessions: what the program is given, what comes of it, and that nothing of it outlives its turn.

use gembridge_core::model::{Event, FailureKind, Outcome, Stop, ToolStatus};
use gembridge_core::session::NewSession;
use gembridge_drivers::setup::Audience;

use crate::agent_fixture::{AgentFixture, eventually};
use crate::scripted::{agent, noted};

const HELLO: &str = r#"echo '{"type":"init","session_id":"'$session'","model":"flash"}'
echo 'a line that is no event'
echo '{"type":"message","role":"user","content":"echo"}'
echo '{"type":"message","role":"assistant","content":"Hel","delta":true}'
echo '{"type":"message","role":"assistant","content":"lo","delta":true}'
echo '{"type":"result","status":"success","stats":{"total_tokens":16,"input_tokens":10,"output_tokens":4,"cached":3}}'"#;

fn args(fixture: &AgentFixture) -> Vec<String> {
    noted(fixture.folder.path(), "args")
}

#[tokio::test]
async fn the_prompt_comes_on_standard_input_and_the_session_goes_on_in_the_next_process() {
    let fixture = agent("gemini", HELLO).start();
    let mut client = fixture.session().await;
    let secret = "a prompt; $(touch made) \"quoted\"\nin two lines";
    assert_eq!(client.turn(secret).await.finished(), "Hello");
    assert_eq!(client.turn("again").await.finished(), "Hello");
    assert_eq!(
        noted(fixture.folder.path(), "prompts"),
        ["a prompt; $(touch made) \"quoted\"", "in two lines", "again"]
    );
    let args = args(&fixture);
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    assert!(
        args[0].contains("--output-format=stream-json") && args[0].ends_with(&format!("--session-id={name}")),
        "{args:?}"
    );
    assert!(args[1].ends_with(&format!("--resume={name}")), "{args:?}");
    assert!(!args.concat().contains("prompt"), "nothing that was said is an argument: {args:?}");
    let usage = client.seen().iter().find_map(|entry| match &entry.event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    let usage = usage.expect("the tokens of the turn");
    assert_eq!((usage.input, usage.output, usage.thought, usage.cached_read), (Some(10), Some(4), Some(2), Some(3)));
    fixture.end().await;
}

#[tokio::test]
async fn tools_are_shown_with_their_results() {
    let script = r#"echo '{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"ls"}}'
echo '{"type":"tool_result","tool_id":"t1","status":"error","output":"no","error":{"type":"x","message":"not found"}}'
echo '{"type":"result","status":"success"}'"#;
    let fixture = agent("gemini", script).start();
    let mut client = fixture.session().await;
    client.turn("go").await.finished();
    let calls: Vec<_> = client
        .seen()
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::ToolCall(call) => Some((call.title.as_deref().map(str::to_owned), call.status)),
            _ => None,
        })
        .collect();
    let title = Some("run_shell_command: ls".to_owned());
    assert_eq!(calls[0], (title, Some(ToolStatus::InProgress)));
    assert_eq!(calls.last().unwrap().1, Some(ToolStatus::Failed));
    fixture.end().await;
}

#[tokio::test]
async fn a_cancelled_turn_ends_the_whole_tree_and_the_session_lives_on() {
    let script = format!(
        "if [ \"$prompt\" = wait ]; then sleep 600 & echo $! > \"$here/child\"; echo '{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"working\"}}'; wait; fi\n{HELLO}"
    );
    let fixture = agent("gemini", &script).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("wait").await;
    client.said("working").await;
    assert_eq!(fixture.driver.processes().len(), 1);
    let child = noted(fixture.folder.path(), "child")[0].clone();
    client.handle.cancel().await.unwrap();
    assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
    let is_gone = || (!std::path::Path::new("/proc").join(&child).exists()).then_some(());
    eventually("what the program started is gone", is_gone).await;
    assert_eq!(client.turn("go on").await.finished(), "Hello");
    assert!(args(&fixture)[1].contains("--resume="), "{:?}", args(&fixture));
    fixture.end().await;
}

#[tokio::test]
async fn a_shutdown_ends_turns_that_run() {
    let script = "echo '{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"working\"}'; exec sleep 600";
    let fixture = agent("gemini", script).start();
    let mut client = fixture.session().await;
    client.prompt("wait").await;
    client.said("working").await;
    fixture.end().await;
}

#[tokio::test]
async fn failures_have_the_kind_that_the_program_means() {
    for (script, kind) in [
        ("echo 'Please set an Auth method' >&2; exit 41", FailureKind::NeedsLogin),
        (
            "echo '{\"type\":\"result\",\"status\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"slow\"}}'; exit 173",
            FailureKind::RateLimited,
        ),
        ("exit 0", FailureKind::Crashed),
        ("echo untrusted >&2; exit 55", FailureKind::Forbidden),
    ] {
        let fixture = agent("gemini", script).start();
        let mut client = fixture.session().await;
        match client.turn("go").await.outcome {
            Outcome::Interrupted(failure) => assert_eq!(failure.kind, kind, "{script}: {failure}"),
            other => panic!("{script}: {other:?}"),
        }
        fixture.end().await;
    }
}

#[tokio::test]
async fn the_bound_of_turns_is_a_stop_and_no_failure() {
    let script = "echo '{\"type\":\"result\",\"status\":\"error\",\"error\":{\"type\":\"FatalTurnLimitedError\",\"message\":\"m\"}}'; exit 53";
    let fixture = agent("gemini", script).start();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("go").await.outcome, Outcome::Finished(Stop::MaxTurnRequests));
    fixture.end().await;
}

#[tokio::test]
async fn a_session_that_the_program_no_longer_has_begins_anew_and_is_told_what_was_said() {
    let script = format!(
        "case \"$*\" in *--resume=*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac\n{}",
        r#"echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Hello"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}'"#
    );
    let fixture = agent("claude", &script).start();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("the first word").await.finished(), "Hello");
    assert_eq!(client.turn("the second").await.finished(), "Hello");
    let args = args(&fixture);
    assert_eq!(
        args.iter().map(|args| args.contains("--resume=")).collect::<Vec<_>>(),
        [false, true, false],
        "{args:?}"
    );
    let prompts = noted(fixture.folder.path(), "prompts").join("\n");
    assert!(prompts.ends_with("[User]\nthe first word\n\n[Assistant]\nHello\n\n[User]\nthe second"), "{prompts}");
    fixture.end().await;
}

#[tokio::test]
async fn modes_and_models_become_arguments() {
    let fixture = agent("claude", "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}'").start();
    for (mode, flag) in [
        (None, "--permission-mode=default"),
        (Some("acceptEdits"), "--permission-mode=acceptEdits"),
        (Some("bypassPermissions"), "--permission-mode=bypassPermissions"),
        (Some("plan"), "--permission-mode=plan"),
    ] {
        let new = NewSession { mode: mode.map(Into::into), model: Some("opus".into()), ..fixture.new_session() };
        fixture.session_with(new).await.turn("go").await.finished();
        let args = args(&fixture).pop().unwrap();
        assert!(args.contains(flag) && args.contains("--model=opus"), "{args}");
    }
    let new = NewSession { mode: Some("sudo".into()), ..fixture.new_session() };
    let turned = fixture.session_with(new).await.turn("go").await;
    assert!(matches!(&turned.outcome, Outcome::Interrupted(failure) if failure.message.contains("has no mode `sudo`")));
    fixture.end().await;
}

#[tokio::test]
async fn guests_and_tools_of_clients_are_refused_by_name() {
    let mut plan = agent("gemini", HELLO);
    plan.setup.audience = Audience::Guests;
    let fixture = plan.start();
    let turned = fixture.session().await.turn("go").await;
    assert!(matches!(&turned.outcome, Outcome::Interrupted(failure) if failure.kind == FailureKind::Forbidden));
    assert_eq!(args(&fixture), [] as [&str; 0], "nothing was started");
    fixture.end().await;
}
