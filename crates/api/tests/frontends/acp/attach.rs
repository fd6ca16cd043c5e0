//! A client that comes back goes on where it was.

use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{Command, Event, Opaque};
use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::{said, seqs};
use crate::acp::support::server::TestServer;
use crate::acp::support::{done, text};

#[tokio::test]
async fn a_client_that_comes_back_with_its_last_number_misses_nothing_and_sees_nothing_twice() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "count").await;
    agents.until_prompts(0, 1).await;
    let mut heard = String::new();
    let mut last = 0;
    for round in 0..5 {
        let pieces: Vec<_> = (0..20).map(|n| text(&format!("{round}.{n} "))).collect();
        agents.does(0, pieces).await;
        // Somewhere in the middle of it the connection breaks.
        let wanted = last + 7;
        let messages = client.until(|message| seqs(std::slice::from_ref(message)).first() >= Some(&wanted)).await;
        heard.push_str(&said(&messages));
        last = seqs(&messages).into_iter().max().unwrap();
        drop(client);
        client = server.attached(&session, &format!("&after={last}")).await;
    }
    agents.does(0, [done()]).await;
    let messages = client.until(|message| message["method"] == "_gembridge/turn_ended").await;
    heard.push_str(&said(&messages));
    let expected: String = (0..5).flat_map(|round| (0..20).map(move |n| format!("{round}.{n} "))).collect();
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn several_sessions_share_one_socket_without_mixing() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let (one, two) = (client.new_session().await, client.new_session().await);
    let (first, second) = (client.prompt(&one, "1").await, client.prompt(&two, "2").await);
    client.answer(first).await.unwrap();
    client.answer(second).await.unwrap();
    client.call("$/ping", json!({})).await.unwrap();
    for (session, expected) in [(&one, "you said 1"), (&two, "you said 2")] {
        let update = client
            .find(|message| {
                message["params"]["sessionId"] == session.as_str()
                    && message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
            })
            .await;
        assert_eq!(update["params"]["update"]["content"]["text"], expected);
    }
}

/// What a client is told of the session apart from the entries that it is shown.
fn present(messages: &[Value]) -> Vec<Value> {
    let updates = messages.iter().map(|message| &message["params"]);
    let present = updates.filter(|params| params["_meta"]["gembridge"] == json!({ "present": true }));
    present.map(|params| params["update"].clone()).collect()
}

#[tokio::test]
async fn a_client_that_is_not_shown_everything_is_told_what_the_session_is() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let bare = |event| Signal::Update(Update { event, frame: None });
    let command = Command { name: "plan".into(), description: "plans".into(), hint: Some("what".into()) };
    let options = br#"[{"id":"o","name":"O","type":"boolean","currentValue":true}]"#;
    let commands = bare(Event::Commands([command].into()));
    agents.does(0, [commands, bare(Event::Options(Opaque(bytes::Bytes::from_static(options))))]).await;
    for number in 1..=3 {
        let id = client.prompt(&session, &format!("q{number}")).await;
        client.answer(id).await.unwrap();
    }
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await.unwrap();
    let expected = json!([
        { "sessionUpdate": "current_mode_update", "currentModeId": "plan" },
        { "sessionUpdate": "available_commands_update", "availableCommands": [
            { "name": "plan", "description": "plans", "input": { "hint": "what" } },
        ] },
        { "sessionUpdate": "config_option_update", "configOptions": [
            { "id": "o", "name": "O", "type": "boolean", "currentValue": true },
        ] },
        { "sessionUpdate": "session_info_update", "title": "q1" },
    ]);
    for query in ["&limit=1", "&limit=0", "&since=99999999999999", "&before=1", "&after=12"] {
        let mut late = server.attached(&session, query).await;
        let messages = late.until(|message| message["method"] == "_gembridge/replay_ended").await;
        assert_eq!(json!(present(&messages)), expected, "{query}");
        let ended = &messages.last().unwrap()["params"];
        assert_eq!(
            (&ended["modes"]["currentModeId"], &ended["models"]["currentModelId"]),
            (&json!("plan"), &json!("m1"))
        );
    }
    // Whoever sees everything has seen it.
    let mut late = server.attached(&session, "").await;
    let messages = late.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert!(present(&messages).is_empty());
    let mut resumed = server.client().await;
    resumed.call("session/resume", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await.unwrap();
    resumed.call("_gembridge/sessions", json!({})).await.unwrap();
    let told =
        resumed.find(|message| message["params"]["update"]["sessionUpdate"] == "available_commands_update").await;
    assert_eq!(told["params"]["update"], expected[1]);

    // Also when its agent is gone and only the log knows.
    let handle = server.sessions.get(session.parse().unwrap(), &gembridge_core::session::Viewer::Admin).await.unwrap();
    handle.close().await.unwrap();
    let mut later = server.attached(&session, "&limit=1").await;
    let messages = later.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert_eq!(json!(present(&messages)), expected);
    assert_eq!(messages.last().unwrap()["params"]["modes"]["currentModeId"], "plan");
    assert_eq!(agents.opened(), 1, "attaching opens no agent");
}
