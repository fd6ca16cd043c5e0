//! The tool server that we give to an agent: how it is named, how it is reached, and whose permissions we answer.

use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{Answer, AnsweredBy, Event};
use gembridge_core::session::NewSession;
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::PermissionSign;
use serde_json::{Value, json};

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent, eventually};

fn server(name: &str) -> ToolServer {
    let headers = vec![("Authorization".to_owned(), format!("Bearer token-of-{name}"))];
    ToolServer { name: name.into(), url: format!("http://127.0.0.1:9/{name}"), headers, origin: ServerOrigin::Ours }
}

/// One that a client named.
fn of_a_client(name: &str) -> ToolServer {
    ToolServer { origin: ServerOrigin::Others, ..server(name) }
}

async fn session_with(fixture: &AgentFixture, servers: &[ToolServer]) -> Client {
    fixture.session_with(NewSession { tool_servers: servers.to_vec(), ..fixture.new_session() }).await
}

/// What the agent was told of tool servers.
async fn servers_given(fixture: &AgentFixture, servers: &[ToolServer]) -> Value {
    session_with(fixture, servers).await.turn("say hello").await.finished();
    fixture.received("session/new", 1).await["params"]["mcpServers"].clone()
}

#[tokio::test]
async fn our_server_has_the_name_of_the_profile_and_the_others_keep_theirs() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.profile.mcp.server_name = "our-tools".to_owned();
    let fixture = plan.start();
    let given = servers_given(&fixture, &[server("anything"), of_a_client("second")]).await;
    let expected = |name: &str, place: &str| {
        json!({"type": "http", "name": name, "url": format!("http://127.0.0.1:9/{place}"),
            "headers": [{"name": "Authorization", "value": format!("Bearer token-of-{place}")}]})
    };
    assert_eq!(given, json!([expected("our-tools", "anything"), expected("second", "second")]));
    fixture.end().await;
}

#[tokio::test]
async fn the_server_of_a_client_keeps_its_name_where_it_is_the_only_one() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let given = servers_given(&fixture, &[of_a_client("weather")]).await;
    assert_eq!(given[0]["name"], "weather");
    fixture.end().await;
}

#[tokio::test]
async fn the_server_of_a_client_cannot_pose_as_ours() {
    let fixture = prefixed().start();
    // Alone it gets no permission of ours, whatever it calls its tools.
    let mut client = session_with(&fixture, &[of_a_client("weather")]).await;
    let tool = json!({"toolCallId": "c1", "title": "mcp__host-tools__get_weather", "kind": "other"});
    let (outcome, _) = answer_to(&fixture, &mut client, 61, tool).await;
    assert_eq!(outcome["optionId"], "no");
    // Beside ours it cannot have the same name.
    for servers in [vec![server("anything"), of_a_client("host-tools")], vec![of_a_client("host-tools")]] {
        let turned = session_with(&fixture, &servers).await.turn("say hello").await;
        assert!(turned.failure().message.contains("`host-tools`"), "{}", turned.failure());
    }
    fixture.end().await;
}

#[tokio::test]
async fn an_agent_that_takes_no_http_servers_gets_our_own_program_with_the_token_in_its_environment() {
    let fixture = ScriptedAgent::fake(&["--without", "http"]).start();
    let given = servers_given(&fixture, &[server("anything")]).await;
    assert_eq!(
        given,
        json!([{"name": "host-tools", "command": "/our/own/program", "args": ["mcp-shim"], "env": [
            {"name": "GEMBRIDGE_MCP_URL", "value": "http://127.0.0.1:9/anything"},
            {"name": "GEMBRIDGE_MCP_TOKEN", "value": "token-of-anything"},
        ]}])
    );
    fixture.end().await;
}

#[tokio::test]
async fn without_that_program_such_an_agent_is_refused_for_client_tools_only() {
    let mut plan = ScriptedAgent::fake(&["--without", "http"]);
    plan.setup.shim = None;
    let fixture = plan.start();
    let turned = session_with(&fixture, &[server("anything")]).await.turn("say hello").await;
    assert!(turned.failure().message.contains("takes no tool servers over HTTP"), "{}", turned.failure());
    assert_eq!(fixture.session().await.turn("say hello").await.finished(), "hello");
    fixture.end().await;
}

/// Lets the agent ask for a tool, and says what it was answered.
async fn answer_to(fixture: &AgentFixture, client: &mut Client, id: u64, tool: Value) -> (Value, AnsweredBy) {
    client.turn("say hello").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
    "sessionId": *name, "toolCall": tool, "options": [
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "once", "name": "Once", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]}});
    let (gate, path) = fixture.gate(&format!("gate-{id}"));
    let turn = client.prompt(&format!("raw {request} ;; until {path}")).await;
    let by = client.until(|event| if let Event::Answered { by, .. } = event { Some(*by) } else { None }).await;
    let answer = eventually("the answer", || {
        fixture.record.messages().into_iter().find(|message| message["id"] == id && message.get("method").is_none())
    })
    .await;
    std::fs::write(gate, "").unwrap();
    client.finish(turn).await.finished();
    (answer["result"]["outcome"].clone(), by)
}

fn prefixed() -> ScriptedAgent {
    let mut plan = ScriptedAgent::fake(&[]).policy(PermissionPolicy::reject());
    "mcp__{mcp_server}__".clone_into(&mut plan.setup.profile.mcp.tool_prefix);
    plan
}

#[tokio::test]
async fn a_permission_for_a_tool_of_our_server_is_given_once_whatever_the_policy() {
    let fixture = prefixed().start();
    let mut client = session_with(&fixture, &[server("anything")]).await;
    let tool = json!({"toolCallId": "c1", "title": "mcp__host-tools__get_weather", "kind": "other"});
    let (outcome, by) = answer_to(&fixture, &mut client, 71, tool).await;
    assert_eq!((&outcome["optionId"], by), (&json!("once"), AnsweredBy::Policy));
    fixture.end().await;
}

#[tokio::test]
async fn a_permission_for_anything_else_is_never_given_by_us() {
    let fixture = prefixed().start();
    let mut client = session_with(&fixture, &[server("anything")]).await;
    for (id, tool) in [
        (81, json!({"toolCallId": "c1", "title": "mcp__host-tools__get_weather", "kind": "execute"})),
        (82, json!({"toolCallId": "c2", "title": "mcp__host-tools__x && rm -rf .", "kind": "other"})),
        (83, json!({"toolCallId": "c3", "title": "mcp__other__x", "kind": "other"})),
        (84, json!({"toolCallId": "c4", "name": "Bash", "title": "mcp__host-tools__x", "kind": "other"})),
        (85, json!({"toolCallId": "mcp__host-tools__x__1", "kind": "other"})),
    ] {
        let (outcome, by) = answer_to(&fixture, &mut client, id, tool.clone()).await;
        assert_eq!((&outcome["optionId"], by), (&json!("no"), AnsweredBy::Policy), "{tool}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn without_our_server_no_permission_is_about_our_tools() {
    let fixture = prefixed().start();
    let mut client = fixture.session().await;
    let tool = json!({"toolCallId": "c1", "title": "mcp__host-tools__get_weather", "kind": "other"});
    let (outcome, _) = answer_to(&fixture, &mut client, 91, tool).await;
    assert_eq!(outcome["optionId"], "no");
    fixture.end().await;
}

#[tokio::test]
async fn a_permission_for_our_tool_that_could_only_be_given_for_good_is_not_given() {
    let fixture = prefixed().start();
    let mut client = session_with(&fixture, &[server("anything")]).await;
    client.turn("say hello").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 95, "method": "session/request_permission", "params": {
        "sessionId": *name, "toolCall": {"toolCallId": "c1", "title": "mcp__host-tools__x", "kind": "other"},
        "options": [{"optionId": "always", "name": "Always", "kind": "allow_always"}]}});
    let (gate, path) = fixture.gate("gate");
    let turn = client.prompt(&format!("raw {request} ;; until {path}")).await;
    let answer =
        client.until(|event| if let Event::Answered { answer, .. } = event { Some(answer.clone()) } else { None });
    assert_eq!(answer.await, Answer::Cancelled);
    std::fs::write(gate, "").unwrap();
    client.finish(turn).await.finished();
    fixture.end().await;
}

/// What the agent is answered when it announces a call and then asks about it without a name.
async fn answer_to_announced(id: u64, announced: Value, meta: Value) -> Value {
    let mut plan = ScriptedAgent::fake(&[]).policy(PermissionPolicy::reject());
    plan.setup.profile.mcp.permission_sign = PermissionSign::AnnouncedCall;
    let fixture = plan.start();
    let mut client = session_with(&fixture, &[server("anything")]).await;
    client.turn("say hello").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    let update =
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": *name, "update": announced}});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": *name, "toolCall": {"toolCallId": "c1", "kind": "execute", "status": "pending"}, "_meta": meta,
        "options": [{"optionId": "once", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]}});
    let (gate, path) = fixture.gate("gate");
    let turn = client.prompt(&format!("raw {update} ;; raw {request} ;; until {path}")).await;
    let answer = client.until(|event| match event {
        Event::Answered { answer: Answer::Option(option), .. } => Some(option.to_string()),
        _ => None,
    });
    let answer = json!(answer.await);
    std::fs::write(gate, "").unwrap();
    client.finish(turn).await.finished();
    fixture.end().await;
    answer
}

#[tokio::test]
async fn r29_a_permission_without_a_name_is_known_by_the_call_that_was_announced() {
    let call = |server: &str, is_mcp: bool| {
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "execute", "title": "mcp.host-tools.pick",
            "rawInput": {"server": server, "tool": "pick", "arguments": {}}, "_meta": {"is_mcp_tool_call": is_mcp}})
    };
    let other_call = {
        let mut call = call("host-tools", true);
        call["toolCallId"] = json!("c2");
        call
    };
    let approval = json!({"is_mcp_tool_approval": true});
    for (id, announced, meta, answer) in [
        (101, call("host-tools", true), approval.clone(), "once"),
        (102, call("another", true), approval.clone(), "no"),
        (103, call("host-tools", false), approval.clone(), "no"),
        (104, call("host-tools", true), json!({}), "no"),
        (105, other_call, approval, "no"),
    ] {
        assert_eq!(answer_to_announced(id, announced, meta).await, answer, "{id}");
    }
}
