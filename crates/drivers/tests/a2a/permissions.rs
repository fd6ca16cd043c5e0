//! Tools that wait for a decision.

use gembridge_core::model::{Answer, AskBody, Event, OptionKind, Outcome, ToolKind, ToolStatus};
use gembridge_testkit::a2a_server::{FakeA2aServer, Manner};

use crate::agent_fixture::{Client, Turned};
use crate::remote::{VERSIONS, agent, server};

fn statuses(turned: &Turned) -> Vec<ToolStatus> {
    let of = |event: &Event| match event {
        Event::ToolCall(call) => call.status,
        _ => None,
    };
    turned.events().filter_map(of).collect()
}

async fn decide(client: &mut Client, kind: OptionKind) -> Turned {
    let turn = client.prompt("ask").await;
    let ask = client.asked().await;
    let AskBody::Permission { tool, options, .. } = &ask.body else { panic!("a permission: {ask:?}") };
    assert_eq!(tool.title.as_deref(), Some("run_shell_command: ls"));
    assert_eq!(tool.kind, Some(ToolKind::Execute));
    let chosen = options.iter().find(|option| option.kind == kind).unwrap();
    client.answer(ask.id, Answer::Option(chosen.id.clone())).await.unwrap();
    client.finish(turn).await
}

fn decision(server: &FakeA2aServer) -> serde_json::Value {
    let is_decision = |call: &serde_json::Value| call["params"]["message"]["parts"][0]["data"].is_object();
    let call = server.requests().into_iter().rfind(is_decision).unwrap();
    assert_eq!(call["params"]["message"]["taskId"], "task-1", "it belongs to the task that asked");
    call["params"]["message"]["parts"][0]["data"].clone()
}

#[tokio::test]
async fn an_allowed_tool_runs_on_since_the_connection_that_began_it_is_still_open() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        let mut client = fixture.session().await;
        let turned = decide(&mut client, OptionKind::AllowOnce).await;
        assert_eq!(turned.finished(), "done", "{version:?}");
        assert_eq!(decision(&server)["outcome"], "proceed_once");
        assert_eq!(statuses(&turned).last(), Some(&ToolStatus::Completed), "{:?}", statuses(&turned));
        server.connections_left(0).await;
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_refused_tool_ends_as_failed_and_the_turn_ends_well() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        let mut client = fixture.session().await;
        let turned = decide(&mut client, OptionKind::RejectOnce).await;
        assert_eq!(turned.finished(), "");
        assert_eq!(decision(&server)["outcome"], "cancel");
        assert_eq!(statuses(&turned).last(), Some(&ToolStatus::Failed));
        assert_eq!(client.turn("hello").await.finished(), "You said: hello");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_asks_ends_once() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        let mut client = fixture.session().await;
        let turn = client.prompt("ask").await;
        client.asked().await;
        client.handle.cancel().await.unwrap();
        assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
        assert_eq!(client.ends_of(turn).await, 1);
        assert_eq!(client.turn("hello").await.finished(), "You said: hello");
        fixture.end().await;
    }
}
