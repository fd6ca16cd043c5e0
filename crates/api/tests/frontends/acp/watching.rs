//! The live view: sessions of every face appear as they run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::{Client, soon};
use crate::acp::support::server::{ADMIN, BOB, TestServer};
use crate::acp::support::{asks, done, text};

async fn changed(client: &mut Client, mut fits: impl FnMut(&Value) -> bool) -> Value {
    let fits =
        |message: &Value| message["method"] == "_gembridge/session_changed" && fits(&message["params"]["session"]);
    client.find(fits).await["params"]["session"].clone()
}

#[tokio::test]
async fn a_session_that_another_face_began_appears_runs_waits_and_rests() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut watcher = server.client().await;
    let listed = watcher.call("_gembridge/watch_sessions", json!({})).await.unwrap();
    assert_eq!(listed, json!({ "sessions": [] }));
    let mut stranger = server.connect_as(BOB, "/acp").await;
    stranger.initialize().await;
    stranger.call("_gembridge/watch_sessions", json!({})).await.unwrap();

    let handle = server.foreign_session("ann").await;
    let id = handle.id().to_string();
    server.prompt(&handle, "count the geese").await;
    let running = changed(&mut watcher, |session| session["state"] == "running").await;
    assert_eq!((&running["sessionId"], &running["title"]), (&json!(id), &json!("count the geese")));
    assert_eq!((&running["agent"], &running["queued"]), (&json!("played"), &json!(0)));
    assert!(running["createdAt"].as_str().unwrap().contains('T'));
    agents.until_prompts(0, 1).await;
    agents.does(0, [asks(1)]).await;
    assert_eq!(changed(&mut watcher, |session| session["state"] == "waiting").await["openRequests"], 1);
    // It is attached to, approved and seen to its end.
    watcher.call("_gembridge/attach", json!({ "sessionId": id })).await.unwrap();
    let request = watcher.named("session/request_permission").await;
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    watcher.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": yes })).await;
    agents.until("the answer", |agents| !agents.answers(0).is_empty()).await;
    agents.does(0, [text("two"), done()]).await;
    watcher.named("_gembridge/turn_ended").await;
    changed(&mut watcher, |session| session["state"] == "idle").await;
    handle.rename("geese".into()).await.unwrap();
    changed(&mut watcher, |session| session["title"] == "geese").await;
    handle.close().await.unwrap();
    changed(&mut watcher, |session| session["state"] == "stored").await;
    watcher.call("session/delete", json!({ "sessionId": id })).await.unwrap();
    assert_eq!(watcher.named("_gembridge/session_removed").await["params"]["sessionId"], id);
    // A stranger saw nothing of it.
    stranger.call("$/ping", json!({})).await.unwrap();
    let new = stranger.new_session().await;
    let seen = stranger.named("_gembridge/session_changed").await;
    assert_eq!(seen["params"]["session"]["sessionId"], new);
}

#[tokio::test]
async fn sessions_are_listed_newest_first_searched_and_hidden_until_used() {
    let server = TestServer::new(&agents::echo());
    let unused = server.foreign_session("ann").await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for title in ["ducks", "geese", "swans"] {
        let handle = server.foreign_session("ann").await;
        server.prompt(&handle, title).await;
        ids.push(handle.id().to_string());
        // Each is used in a later millisecond than the one before.
        let now = gembridge_core::model::Timestamp::now();
        while gembridge_core::model::Timestamp::now() <= now {
            tokio::task::yield_now().await;
        }
    }
    let titles = |listed: &Value| -> Vec<String> {
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["title"].as_str().unwrap().to_owned()).collect()
    };
    let listed = client.call("_gembridge/sessions", json!({})).await.unwrap();
    assert_eq!(titles(&listed), ["swans", "geese", "ducks"], "one in which nothing was said is not shown");
    let found = client.call("_gembridge/sessions", json!({ "search": "GEE" })).await.unwrap();
    assert_eq!(titles(&found), ["geese"]);
    let few = client.call("_gembridge/sessions", json!({ "limit": 1 })).await.unwrap();
    assert_eq!(titles(&few), ["swans"]);
    unused.close().await.unwrap();
    let mut admin = server.connect_as(ADMIN, "/acp").await;
    admin.initialize().await;
    assert_eq!(titles(&admin.call("_gembridge/sessions", json!({})).await.unwrap()).len(), 3);
}

#[tokio::test]
async fn sessions_that_are_hidden_take_nobody_s_place_in_a_list() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "the only one").await;
    client.answer(id).await.unwrap();
    for _ in 0..120 {
        server.foreign_session("ann").await;
    }
    let listed = client.call("session/list", json!({})).await.unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    let listed = client.call("_gembridge/sessions", json!({ "limit": 3 })).await.unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn followers_are_those_who_are_there_and_an_empty_session_goes_with_the_last() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "something").await;
    client.answer(id).await.unwrap();
    let mut other = server.attached(&session, "").await;
    other.named("_gembridge/replay_ended").await;
    let empty = other.new_session().await;
    let listed = client.call("_gembridge/sessions", json!({})).await.unwrap();
    let found = |listed: &Value, id: &str| {
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.map(Value::clone).find(|session| session["sessionId"] == id)
    };
    assert_eq!(found(&listed, &session).unwrap()["followers"], 2);
    assert_eq!(found(&listed, &empty).unwrap()["followers"], 1);
    drop(other);
    // When it is gone is for the operating system to say.
    let left = async {
        loop {
            let listed = client.call("_gembridge/sessions", json!({})).await.unwrap();
            if found(&listed, &empty).is_none() && found(&listed, &session).unwrap()["followers"] == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(left).await;
}
