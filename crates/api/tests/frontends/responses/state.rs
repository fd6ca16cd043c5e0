//! What is kept of responses, and how they are gone on with.

use std::sync::Arc;

use gembridge_api::dialect::DialectConfig;
use gembridge_core::store::MemoryStore;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use super::support::{asking, call, create, response, text_of};
use crate::openai::support::http::post;
use crate::openai::support::server::TestServer;
use crate::scenarios::gateway::{Gateway, Setup};

fn echo() -> Arc<ScriptedAgents> {
    ScriptedAgents::new(|prompted| vec![vec![text(&format!("heard {}", prompted.prompt.len())), done()]])
}

fn after(previous: &Value, input: &str) -> Value {
    asking(input, json!({ "previous_response_id": previous["id"] }))
}

#[tokio::test]
async fn the_newest_response_goes_on_in_its_session_and_an_older_one_in_another_that_is_told_the_history() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let first = response(&server, &asking("one", json!({ "instructions": "be brief" }))).await;
    let second = asking("two", json!({ "previous_response_id": first["id"], "instructions": "be brief" }));
    let second = response(&server, &second).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_eq!(agents.prompts(0), ["[System]\nbe brief\n\n[User]\none", "two"], "the agent hears what is new");

    let before = agents.opened();
    response(&server, &asking("back", json!({ "previous_response_id": first["id"] }))).await;
    let told: Vec<String> = (before..agents.opened()).flat_map(|agent| agents.prompts(agent)).collect();
    assert_eq!(told, ["[User]\none\n\n[Assistant]\na\n\n[User]\nback"], "a branch, without the instructions of before");
    assert_eq!(agents.prompts(0).len(), 2, "the live session was left alone");
}

#[tokio::test]
async fn a_response_is_had_again_and_gone_on_with_after_a_restart_out_of_the_log() {
    let (agents, store) = (ScriptedAgents::new(|_| vec![vec![text("a"), done()]]), MemoryStore::new());
    let gateway = Gateway::with(&agents, Setup { store: store.clone(), ..Setup::default() });
    let server = TestServer::over(gateway.sessions.clone(), gateway.exchanges.clone(), DialectConfig::default()).await;
    let first = response(&server, &asking("one", json!({}))).await;
    let second = response(&server, &after(&first, "two")).await;
    gateway.sessions.shutdown().await;

    let gateway = Gateway::with(&agents, Setup { store, ..Setup::default() });
    let server = TestServer::over(gateway.sessions.clone(), gateway.exchanges.clone(), DialectConfig::default()).await;
    let again = call(&server, "GET", &format!("responses/{}", first["id"].as_str().unwrap())).await.json();
    assert_eq!((&again["id"], &again["status"], text_of(&again)), (&first["id"], &json!("completed"), "a".to_owned()));
    let opened = agents.opened();
    response(&server, &after(&second, "three")).await;
    let told: Vec<String> = (opened..agents.opened()).flat_map(|agent| agents.prompts(agent)).collect();
    assert_eq!(told, ["[User]\none\n\n[Assistant]\na\n\n[User]\ntwo\n\n[Assistant]\na\n\n[User]\nthree"]);
    let other = post(server.address, "/v1/responses", &[("x-test-principal", "bob")], after(&second, "x").to_string());
    assert_eq!(other.await.whole().await.error(), (400, "invalid_request_error".into(), "previous_response_id".into()));
}

#[tokio::test]
async fn what_is_not_stored_or_was_deleted_is_not_found() {
    let (agents, server) = {
        let agents = echo();
        let server = TestServer::new(&agents).await;
        (agents, server)
    };
    let unkept = response(&server, &asking("one", json!({ "store": false }))).await;
    let deleted = response(&server, &asking("one", json!({}))).await;
    let path = |response: &Value| format!("responses/{}", response["id"].as_str().unwrap());
    let gone = call(&server, "DELETE", &path(&deleted)).await.json();
    assert_eq!(gone, json!({ "id": deleted["id"], "object": "response", "deleted": true }));
    for response in [&unkept, &deleted, &json!({ "id": "resp_a96702b642b941f18c7b844b" })] {
        assert_eq!(call(&server, "GET", &path(response)).await.status, 404, "{response}");
        assert_eq!(call(&server, "DELETE", &path(response)).await.status, 404, "{response}");
        let refused = create(&server, &after(response, "two")).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("previous_response_not_found")));
    }
    assert_eq!(agents.prompts(0).len() + agents.prompts(1).len(), 2, "nothing was asked of an agent");
}

#[tokio::test]
async fn after_a_restart_what_was_deleted_is_gone_and_what_was_cut_says_so() {
    let agents = ScriptedAgents::new(|prompted| match prompted.prompt.as_str() {
        "two" => vec![vec![text("b")]],
        _ => vec![vec![text("a"), done()]],
    });
    let store = MemoryStore::new();
    let gateway = Gateway::with(&agents, Setup { store: store.clone(), ..Setup::default() });
    let server = TestServer::over(gateway.sessions.clone(), gateway.exchanges.clone(), DialectConfig::default()).await;
    let kept = response(&server, &asking("one", json!({}))).await;
    let deleted = response(&server, &asking("other", json!({}))).await;
    let path = |response: &Value| format!("responses/{}", response["id"].as_str().unwrap());
    assert_eq!(call(&server, "DELETE", &path(&deleted)).await.status, 200);
    let cut = json!({ "previous_response_id": kept["id"], "background": true });
    let cut = response(&server, &asking("two", cut)).await;
    agents.until_prompts(0, 2).await;
    gateway.sessions.shutdown().await;

    let gateway = Gateway::with(&agents, Setup { store, ..Setup::default() });
    let server = TestServer::over(gateway.sessions.clone(), gateway.exchanges.clone(), DialectConfig::default()).await;
    assert_eq!(call(&server, "GET", &path(&kept)).await.json()["status"], "completed");
    assert_eq!(call(&server, "GET", &path(&deleted)).await.status, 404);
    let refused = create(&server, &after(&deleted, "more")).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found");
    let again = call(&server, "GET", &path(&cut)).await.json();
    assert_eq!((&again["id"], &again["status"]), (&cut["id"], &json!("failed")), "{again}");
}

#[tokio::test]
async fn a_reference_to_an_item_stands_for_what_was_said_up_to_the_end_of_its_response() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let first = response(&server, &asking("one", json!({}))).await;
    let reference = json!({ "type": "item_reference", "id": first["output"][0]["id"] });
    let input = json!([{ "role": "user", "content": "one" }, reference, { "role": "user", "content": "two" }]);
    let second = response(&server, &asking(input, json!({}))).await;
    assert_eq!(agents.prompts(0), ["one", "two"], "the same session goes on");
    assert_eq!(second["previous_response_id"], json!(null));
}

#[tokio::test]
async fn input_items_are_listed_in_pages() {
    let agents = echo();
    let server = TestServer::new(&agents).await;
    let first = response(&server, &asking("one", json!({}))).await;
    let second = response(&server, &after(&first, "two")).await;
    let path = format!("responses/{}/input_items", second["id"].as_str().unwrap());
    let all = call(&server, "GET", &format!("{path}?order=asc")).await.json();
    let roles: Vec<&str> = all["data"].as_array().unwrap().iter().filter_map(|item| item["role"].as_str()).collect();
    assert_eq!((roles, &all["has_more"]), (vec!["user", "assistant", "user"], &json!(false)));
    let page = call(&server, "GET", &format!("{path}?limit=1")).await.json();
    assert_eq!((&page["data"][0]["content"][0]["text"], &page["has_more"]), (&json!("two"), &json!(true)));
    let rest = call(&server, "GET", &format!("{path}?after={}", page["last_id"].as_str().unwrap())).await.json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 2);
    assert_eq!(call(&server, "GET", &format!("{path}?limit=0")).await.error().2, "limit");
}

#[tokio::test]
async fn a_conversation_grows_with_its_responses_and_stays_in_one_session() {
    let agents = echo();
    let server = TestServer::new(&agents).await;
    let body = json!({ "metadata": { "a": "b" }, "items": [{ "role": "system", "content": "be brief" }] });
    let made = post(server.address, "/v1/conversations", &[], body.to_string()).await.whole().await.json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["object"], &made["metadata"]), (&json!("conversation"), &json!({ "a": "b" })));
    for input in ["one", "two"] {
        let answered = response(&server, &asking(input, json!({ "conversation": id }))).await;
        assert_eq!(answered["conversation"], json!({ "id": id }));
    }
    assert_eq!(agents.prompts(0), ["[System]\nbe brief\n\n[User]\none", "two"]);
    let items = call(&server, "GET", &format!("conversations/{id}/items")).await.json();
    assert_eq!(items["data"].as_array().unwrap().len(), 5);
    let both = asking("x", json!({ "conversation": id, "previous_response_id": "resp_1" }));
    assert_eq!(create(&server, &both).await.error(), (400, "invalid_request_error".into(), "conversation".into()));
    let gone = call(&server, "DELETE", &format!("conversations/{id}")).await.json();
    assert_eq!(gone["object"], "conversation.deleted");
    assert_eq!(create(&server, &asking("x", json!({ "conversation": id }))).await.status, 404);
}

#[tokio::test]
async fn tokens_are_counted_and_a_compaction_stands_for_what_it_was_made_of() {
    let agents = echo();
    let server = TestServer::new(&agents).await;
    let send = |path: &'static str, body: Value| async move {
        post(server.address, path, &[], body.to_string()).await.whole().await
    };
    let counted = send("/v1/responses/input_tokens", asking("four four four four", json!({}))).await.json();
    assert_eq!(counted, json!({ "object": "response.input_tokens", "input_tokens": 5 }));
    assert_eq!(send("/v1/responses/compact", json!({ "input": "x" })).await.error().2, "model");
    let made = send("/v1/responses/compact", asking("the word is slate", json!({}))).await.json();
    assert_eq!((&made["object"], &made["output"][0]["type"]), (&json!("response.compaction"), &json!("compaction")));
    let input = json!([made["output"][0], { "role": "user", "content": "go on" }]);
    let answered = send("/v1/responses", asking(input, json!({}))).await;
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert_eq!(agents.prompts(0), ["[User]\nthe word is slate\n\n[User]\ngo on"]);
}
