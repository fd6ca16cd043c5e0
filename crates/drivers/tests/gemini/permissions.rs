//! Tools that ask: allowed, refused, and cancelled while the question is open.

use gembridge_core::model::{Event, Outcome, ToolKind, ToolStatus};
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, allow, calling, only_tool_of, output_of, refuse, title_of, turn_answering};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_allowed_runs_and_shows_what_it_printed() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let command = json!({"command": "touch made; echo printed", "description": "makes a file"});
    let turned = turn_answering(&mut client, &calling("run_shell_command", command), allow).await;
    assert_eq!(turned.finished(), "done");
    assert!(fixture.workspace().join("made").exists());
    assert_eq!(turned.asks.len(), 1);
    assert_eq!(&*title_of(&turned.asks[0]), "touch made; echo printed");

    let tool = only_tool_of(&turned);
    assert_eq!(tool.call.name.as_deref(), Some("run_shell_command"));
    assert_eq!((tool.call.kind, tool.call.status), (Some(ToolKind::Execute), Some(ToolStatus::Completed)));
    assert_eq!(tool.call.description.as_deref(), Some("makes a file"));
    assert_eq!(tool.call.working_dir.as_deref(), fixture.workspace().to_str());
    assert_eq!(output_of(&tool).trim(), "printed");
    let announced = turned.events.iter().position(|entry| matches!(entry.event, Event::ToolCall(_)));
    let asked = turned.events.iter().position(|entry| matches!(entry.event, Event::Asked(_)));
    assert!(announced < asked, "the call has a record before its question, though the agent announces none");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_refused_is_closed_and_the_turn_goes_on() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let turned =
        turn_answering(&mut client, &calling("run_shell_command", json!({"command": "touch made"})), refuse).await;
    assert_eq!(turned.finished(), "done");
    assert!(!fixture.workspace().join("made").exists());
    let tool = only_tool_of(&turned);
    assert!(tool.refused);
    let closed = turned.events.iter().any(|entry| {
        matches!(&entry.event, Event::ToolCall(call) if call.id == tool.call.id && call.status == Some(ToolStatus::Failed))
    });
    assert!(closed, "the log itself closes the call, since the agent never does");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_cancelled_while_it_asks_ends_once_and_at_once() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let turn = client.prompt(&calling("run_shell_command", json!({"command": "touch made"}))).await;
    client.asked().await;
    client.handle.cancel().await.unwrap();
    let cancelled = client.finish(turn).await;
    assert_eq!((&cancelled.outcome, client.ends_of(turn).await), (&Outcome::Cancelled, 1));
    assert_eq!(fixture.driver.processes().len(), 1, "the agent obeyed and was not ended");

    let next = client.turn("still there?").await;
    assert_eq!(next.text(), "You said: still there?");
    assert!(!fixture.workspace().join("made").exists());
    assert_eq!(fixture.api.model_calls().len(), 2, "the cancelled turn asked the model nothing more");
    fixture.end().await;
}
