//! Sessions as clients begin, change, list and leave them; and whose they are.

use std::path::PathBuf;

use gembridge_api::acp::{AcpConfig, ClientServers, Execution};
use gembridge_core::driver::{Change, SlashCommands};
use serde_json::json;

use crate::acp::support::agents::{self, Order};
use crate::acp::support::server::{ADMIN, ANN, BOB, ServerSetup, TestServer};

#[tokio::test]
async fn a_new_session_tells_what_it_can_be_and_what_of_the_request_meant_nothing() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let result = client.call("session/new", json!({ "cwd": "/etc", "mcpServers": [] })).await.unwrap();
    assert_eq!(result["modes"]["currentModeId"], "default");
    assert_eq!(result["modes"]["availableModes"][1], json!({ "id": "plan", "name": "plan" }));
    let model = json!({ "modelId": "m1", "name": "One", "description": "the first" });
    assert_eq!(result["models"], json!({ "currentModelId": "m1", "availableModels": [model] }));
    let ours = &result["_meta"]["gembridge"];
    assert_eq!((&ours["agent"], &ours["mode"], &ours["ignored"]), (&json!("played"), &json!("chat"), &json!(["cwd"])));
    let spec = agents.spec(0);
    assert_eq!((spec.workspace, spec.slash), (None, SlashCommands::AsText), "a user's words do not command the agent");
    let mut admin = server.connect_as(ADMIN, "/acp").await;
    admin.initialize().await;
    admin.new_session().await;
    assert_eq!(agents.spec(1).slash, SlashCommands::Run);
}

#[tokio::test]
async fn s13b_an_agent_works_only_in_folders_that_the_operator_trusts() {
    let agents = agents::echo();
    let server = TestServer::with(&agents, ServerSetup { execution: Execution::Agent, ..ServerSetup::default() });
    let mut client = server.client().await;
    for untrusted in ["/etc", "/trusted/../etc", "relative", "/trusted-evil"] {
        let error = client.call("session/new", json!({ "cwd": untrusted, "mcpServers": [] })).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("untrusted_cwd")), "{untrusted}");
    }
    assert_eq!(agents.opened(), 0);
    let result = client.call("session/new", json!({ "cwd": "/trusted", "mcpServers": [] })).await.unwrap();
    assert_eq!(result["_meta"]["gembridge"]["workspace"], "/trusted");
    assert_eq!(agents.spec(0).workspace, Some(PathBuf::from("/trusted")));
    let result = client.call("session/new", json!({ "cwd": "/workspace", "mcpServers": [] })).await.unwrap();
    assert_eq!(result["_meta"]["gembridge"]["workspace"], "/workspace");
    assert_eq!(agents.spec(1).workspace, None, "the agent's own folder is the driver's to know");
}

#[tokio::test]
async fn s13b_mcp_servers_of_a_client_are_refused_by_name_unless_the_operator_allows_them() {
    let http = json!({ "type": "http", "name": "weather", "url": "http://127.0.0.1:1/mcp", "headers": [{ "name": "a", "value": "b" }] });
    let stdio = json!({ "name": "shell", "command": "/bin/sh", "args": [], "env": [] });
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let error = client.call("session/new", json!({ "cwd": "/", "mcpServers": [http] })).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("`weather`"), "{error}");
    assert_eq!((error["data"]["code"].as_str(), agents.opened()), (Some("mcp_server_refused"), 0));

    let config = AcpConfig { servers: ClientServers::Allowed, ..AcpConfig::default() };
    let server = TestServer::with(&agents, ServerSetup { config, ..ServerSetup::default() });
    let mut client = server.client().await;
    let error = client.call("session/new", json!({ "cwd": "/", "mcpServers": [stdio] })).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("`shell`"), "nothing a client names is started: {error}");
    client.call("session/new", json!({ "cwd": "/", "mcpServers": [http] })).await.unwrap();
    let server = &agents.spec(0).tool_servers[0];
    assert_eq!((&*server.name, server.url.as_str()), ("weather", "http://127.0.0.1:1/mcp"));
}

#[tokio::test]
async fn modes_models_options_and_an_operators_extension_methods_reach_the_agent() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.connect_as(ADMIN, "/acp").await;
    client.initialize().await;
    let session = client.new_session().await;
    let mut other = server.connect_as(ADMIN, &format!("/acp?session={session}")).await;
    other.initialize().await;
    other.named("_gembridge/replay_ended").await;
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await.unwrap();
    let update = other.find(|message| message["params"]["update"]["sessionUpdate"] == "current_mode_update").await;
    assert_eq!(update["params"]["update"]["currentModeId"], "plan");
    client.call("session/set_model", json!({ "sessionId": session, "modelId": "m1" })).await.unwrap();
    assert_eq!(other.named("_gembridge/model_changed").await["params"]["modelId"], "m1");
    let option = json!({ "sessionId": session, "configId": "depth", "value": { "n": 1 } });
    assert_eq!(client.call("session/set_config_option", option).await.unwrap(), json!({ "done": true }));
    let own = json!({ "sessionId": session, "x": [1] });
    assert_eq!(client.call("_vendor/do", own).await.unwrap(), json!({ "done": true }));
    let changes = agents.orders(0).into_iter().filter_map(|order| match order {
        Order::Change(change) => Some(change),
        _ => None,
    });
    let Some(Change::Extension { method, params }) = changes.last() else { panic!("it did not arrive") };
    let params: serde_json::Value = serde_json::from_slice(&params.0).unwrap();
    assert_eq!((&*method, params), ("_vendor/do", json!({ "sessionId": "agent-0", "x": [1] })));
}

/// Methods of the protocol and of agents, stable and not, that no table of ours has; those of the agent's side too.
const PASSED_BY_NOBODY: [&str; 24] = [
    "session/fork",
    "session/archive",
    "session/unarchive",
    "session/status",
    "session/set_title",
    "session/attach",
    "session/detach",
    "session/update",
    "session/request_permission",
    "auth/status",
    "providers/list",
    "providers/set",
    "providers/disable",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
    "elicitation/create",
    "mcp/message",
    "document/didOpen",
    "nes/start",
];

#[tokio::test]
async fn f1_no_method_outside_the_table_reaches_an_agent() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let stdio = json!([{ "name": "shell", "command": "/bin/sh", "args": [], "env": [] }]);
    for key in [ADMIN, ANN] {
        let mut client = server.connect_as(key, "/acp").await;
        client.initialize().await;
        let session = client.new_session().await;
        let own = if key == ANN { &["_vendor/do", "_gembridge/none"][..] } else { &["_gembridge/none"] };
        for method in PASSED_BY_NOBODY.iter().chain(own) {
            let params = json!({ "sessionId": session, "cwd": "/etc", "mcpServers": stdio });
            let error = client.call(method, params).await.unwrap_err();
            assert_eq!(error["code"], -32601, "{key} {method}: {error}");
        }
    }
    for agent in [0, 1] {
        let changes = agents.orders(agent).into_iter().filter(|order| matches!(order, Order::Change(_)));
        assert_eq!(changes.count(), 0, "nothing reached agent {agent}");
    }
}

#[tokio::test]
async fn a_session_is_listed_renamed_closed_and_deleted() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "about ducks").await;
    client.answer(id).await.unwrap();
    let listed = client.call("session/list", json!({})).await.unwrap();
    let entry = &listed["sessions"][0];
    assert_eq!((&entry["sessionId"], &entry["title"]), (&json!(session), &json!("about ducks")));
    assert!(entry["updatedAt"].as_str().unwrap().ends_with('Z') && entry["cwd"].is_string());
    assert!(listed.get("nextCursor").is_none());
    assert_eq!(client.call("session/list", json!({ "cursor": "x" })).await.unwrap_err()["code"], -32602);

    client.call("_gembridge/rename", json!({ "sessionId": session, "title": "  ducks  " })).await.unwrap();
    let update = client.find(|message| message["params"]["update"]["sessionUpdate"] == "session_info_update").await;
    assert_eq!(update["params"]["update"]["title"], "ducks");
    for bad in ["", "a\nb", &"x".repeat(201)] {
        let error = client.call("_gembridge/rename", json!({ "sessionId": session, "title": bad })).await.unwrap_err();
        assert_eq!(error["code"], -32602);
    }
    client.call("session/close", json!({ "sessionId": session })).await.unwrap();
    assert_eq!(client.named("_gembridge/session_closed").await["params"]["sessionId"], session);
    // Its log stays, and it comes back when somebody speaks to it.
    let id = client.prompt(&session, "and geese").await;
    assert_eq!(client.answer(id).await.unwrap()["stopReason"], "end_turn");
    client.call("session/delete", json!({ "sessionId": session })).await.unwrap();
    assert_eq!(
        client.call("session/resume", json!({ "sessionId": session, "cwd": "/" })).await.unwrap_err()["code"],
        -32002
    );
    assert_eq!(client.call("session/list", json!({})).await.unwrap()["sessions"], json!([]));
}

#[tokio::test]
async fn s11_anothers_session_is_as_unknown_as_one_that_never_was() {
    let server = TestServer::new(&agents::echo());
    let mut ann = server.client().await;
    let session = ann.new_session().await;
    let id = ann.prompt(&session, "private").await;
    ann.answer(id).await.unwrap();
    let nobodys = gembridge_core::model::SessionId::new().to_string();
    let mut bob = server.connect_as(BOB, "/acp").await;
    bob.initialize().await;
    for method in [
        "session/load",
        "session/resume",
        "session/prompt",
        "session/close",
        "session/delete",
        "_gembridge/attach",
        "session/set_mode",
        "session/set_model",
        "_gembridge/rename",
    ] {
        let mut errors = Vec::new();
        for named in [&session, &nobodys] {
            let params = json!({
                "sessionId": named, "cwd": "/", "prompt": [{ "type": "text", "text": "x" }], "modeId": "m",
                "modelId": "m", "title": "t",
            });
            let mut error = bob.call(method, params).await.unwrap_err();
            error["message"] = json!(error["message"].as_str().unwrap().replace(named.as_str(), "ID"));
            errors.push(error);
        }
        assert_eq!(errors[0]["code"], -32002, "{method}: {}", errors[0]);
        assert_eq!(errors[0], errors[1], "{method}");
    }
    bob.notify("session/cancel", json!({ "sessionId": session })).await;
    for named in [&session, &nobodys] {
        let bearer = format!("Bearer {BOB}");
        let path = format!("/acp?session={named}");
        let opened =
            crate::acp::support::client::Client::open(server.address, &path, &[("authorization", &bearer)]).await;
        assert_eq!(opened.map(|_| ()).unwrap_err().0, 404);
    }
    assert_eq!(bob.call("_gembridge/sessions", json!({})).await.unwrap()["sessions"], json!([]));
    let mut admin = server.connect_as(ADMIN, &format!("/acp?session={session}")).await;
    admin.initialize().await;
    admin.named("_gembridge/replay_ended").await;
}

#[tokio::test]
async fn agents_are_listed_and_chosen_by_name() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let listed = client.call("_gembridge/agents", json!({})).await.unwrap();
    assert_eq!(
        listed["agents"],
        json!([{
            "name": "played", "title": "Played", "version": "1.2", "isDefault": true, "isDemo": false, "mode": "chat",
            "models": [{ "id": "m1", "name": "One", "description": "the first" }],
            "modes": [{ "id": "default", "name": "default" }, { "id": "plan", "name": "plan" }],
        }])
    );
    let wish = |agent: &str| json!({ "cwd": "/", "mcpServers": [], "_meta": { "gembridge": { "agent": agent, "model": "m1" } } });
    client.call("session/new", wish("played")).await.unwrap();
    assert_eq!(agents.spec(0).model.as_deref(), Some("m1"));
    assert_eq!(client.call("session/new", wish("other")).await.unwrap_err()["code"], -32602);
}
