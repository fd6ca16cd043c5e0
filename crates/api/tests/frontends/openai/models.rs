//! Names of models.

use std::collections::BTreeMap;

use gembridge_core::driver::{Change, Signal};
use gembridge_core::exchange::UnknownModels;
use gembridge_core::model::{Failure, FailureKind};
use serde_json::{Value, json};

use crate::openai::support::http::get;
use crate::openai::support::server::{ServerSetup, TestServer, chat_with};
use crate::openai::support::{done, text};
use gembridge_core::test_support::ScriptedAgents;

fn agents(models: &[&'static str]) -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(|_| vec![vec![text("ok"), done()]]).with_models(models)
}

fn mapped() -> BTreeMap<String, String> {
    BTreeMap::from([("gpt-4".into(), "big".into()), ("gpt-3.5-turbo".into(), "gone".into())])
}

#[tokio::test]
async fn the_list_has_agents_their_models_and_mapped_names() {
    let (first, second) = (agents(&["big", "small"]), agents(&["small", "other"]));
    let setting = ServerSetup { mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &first), ("second", &second)], setting).await;
    let answer = get(server.address, "/v1/models").await;
    let list = answer.json();
    assert_eq!(list["object"], "list");
    let ids: Vec<&str> = list["data"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["first", "second", "big", "small", "second/small", "other", "gpt-3.5-turbo", "gpt-4"]);
    for entry in list["data"].as_array().unwrap() {
        assert_eq!(entry["object"], "model");
        assert!(entry["created"].as_u64().is_some());
        assert_eq!((&entry["type"], &entry["display_name"]), (&entry["object"], &entry["id"]), "for other dialects");
        assert!(entry["created_at"].as_str().unwrap().ends_with('Z'));
    }
    assert_eq!(
        (&list["first_id"], &list["last_id"], &list["has_more"]),
        (&"first".into(), &"gpt-4".into(), &false.into())
    );
    for (id, owner) in [("big", "first"), ("second/small", "second"), ("first/big", "first"), ("gpt-4", "first")] {
        let entry = get(server.address, &format!("/v1/models/{id}")).await;
        assert_eq!((entry.json()["id"].as_str(), entry.json()["owned_by"].as_str()), (Some(id), Some(owner)));
    }
    assert_eq!(get(server.address, "/v1/models/first%2Fbig").await.json()["id"], "first/big");
    assert_eq!(get(server.address, "/v1/models/anthropic/big").await.json()["id"], "big");
    assert_eq!(get(server.address, "/v1/models/unheard-of").await.error().0, 404);
    assert_eq!(get(server.address, "/v1/models/first/other").await.error().0, 404);
}

#[tokio::test]
async fn a_name_that_is_no_text_is_refused_like_everything_else() {
    let server = TestServer::with(&[("first", &agents(&[]))], ServerSetup::default()).await;
    let answer = get(server.address, "/v1/models/%ff").await;
    assert_eq!(answer.error(), (400, "invalid_request_error".into(), "id".into()));
}

#[tokio::test]
async fn every_kind_of_name_finds_its_agent_and_model() {
    let (first, second) = (agents(&["big", "small"]), agents(&["small", "other"]));
    let setting = ServerSetup { mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &first), ("second", &second)], setting).await;
    get(server.address, "/v1/models").await;
    for (name, shown, agent, model) in [
        ("first", "first", &first, None),
        ("second", "second", &second, None),
        ("second/small", "small", &second, Some("small")),
        ("small", "small", &first, Some("small")),
        ("other", "other", &second, Some("other")),
        ("gpt-4", "big", &first, Some("big")),
    ] {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": name}))).await;
        assert_eq!(answer.json()["model"], shown, "{name}");
        assert_eq!(answer.header("x-gembridge-model-fallback"), None, "{name}");
        let spec = agent.spec(agent.opened() - 1);
        assert_eq!(spec.model.as_deref(), model, "{name}");
    }
}

#[tokio::test]
async fn a_name_that_nobody_has_falls_back_and_says_so() {
    let agent = agents(&["big"]);
    let setting = ServerSetup { mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &agent)], setting).await;
    // The agent has not said yet what it has: it is asked, and refuses.
    for name in ["unheard-of", "unheard-of", "gpt-3.5-turbo", "first/gone"] {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": name}))).await;
        assert_eq!(answer.text(), "ok", "{name}");
        assert_eq!(answer.json()["model"], "first", "{name}");
        assert_eq!(answer.header("x-gembridge-model-fallback"), Some("first"), "{name}");
        assert_eq!(agent.spec(agent.opened() - 1).model, None, "{name}");
    }
    assert_eq!(kept(&server).await, 4, "what was tried before is not kept beside the answers");
}

/// Sessions that stay when everything has settled.
async fn kept(server: &TestServer) -> usize {
    server.exchanges.settle().await;
    server.sessions.list(&gembridge_core::session::Viewer::Admin, 100).await.unwrap().len()
}

#[tokio::test]
async fn a_stream_of_a_model_that_was_refused_names_the_one_that_answers() {
    let agent = agents(&["big"]);
    let server = TestServer::with(&[("first", &agent)], ServerSetup::default()).await;
    let request = chat_with(&[("user", "hi")], json!({"model": "unheard-of", "stream": true}));
    let answer = server.stream(&request).await.whole().await;
    assert!(answer.chunks().iter().all(|chunk| chunk["model"] == "first"), "{}", answer.body);
    assert_eq!(answer.streamed(0), "ok");
}

#[tokio::test]
async fn a_named_session_answers_with_its_own_model_and_says_so() {
    for (unknown, begun_with, answers) in [
        (UnknownModels::FallBack, "big", "big"),
        (UnknownModels::FallBack, "first", "first"),
        (UnknownModels::Refuse, "big", "big"),
        (UnknownModels::Refuse, "first", "first"),
    ] {
        let setting = ServerSetup { unknown, ..ServerSetup::default() };
        let server = TestServer::with(&[("first", &agents(&["big", "small"]))], setting).await;
        let begun = server.ask(&chat_with(&[("user", "hi")], json!({"model": begun_with}))).await;
        let pin = [("x-session-id", begun.header("x-session-id").unwrap())];
        for name in ["first", begun_with] {
            let same = server.ask_as("ann", &pin, &chat_with(&[("user", "hi")], json!({"model": name}))).await;
            assert_eq!(same.header("x-gembridge-model-fallback"), None, "{name}");
            assert_eq!(same.json()["model"], answers, "{name}");
        }
        let other = server.ask_as("ann", &pin, &chat_with(&[("user", "hi")], json!({"model": "small"}))).await;
        if unknown == UnknownModels::Refuse {
            assert_eq!(other.error(), (400, "invalid_request_error".into(), "model".into()));
            let message = other.json()["error"]["message"].to_string();
            assert!(message.contains(&format!("`{answers}`")) && message.contains("`small`"), "{message}");
        } else {
            assert_eq!(other.header("x-gembridge-model-fallback"), Some(answers));
            assert_eq!(other.json()["model"], answers);
        }
    }
}

#[tokio::test]
async fn a_session_that_was_given_another_model_does_not_answer_for_the_one_asked_for() {
    let agent = agents(&["big", "small"]);
    let server = TestServer::new(&agent).await;
    let mut talk = vec![("user", "hi".to_owned())];
    let ask = async |talk: &[(&str, String)]| {
        let said: Vec<_> = talk.iter().map(|(role, text)| (*role, text.as_str())).collect();
        server.ask(&chat_with(&said, json!({"model": "big"}))).await
    };
    let first = ask(&talk).await;
    let session = server.session(&first.headers).await;
    talk.extend([("assistant", first.text()), ("user", "more".to_owned())]);
    session.change(Change::Model("small".into())).await.unwrap();
    let next = ask(&talk).await;
    assert_ne!(next.header("x-session-id"), first.header("x-session-id"));
    assert_eq!((next.status, &next.json()["model"]), (200, &json!("big")));
    assert_eq!(agent.spec(agent.opened() - 1).model.as_deref(), Some("big"));
}

#[tokio::test]
async fn in_strict_mode_a_name_that_nobody_has_is_not_found() {
    let agent = agents(&["big"]);
    let setting = ServerSetup { unknown: UnknownModels::Refuse, mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &agent)], setting).await;
    for name in ["unheard-of", "first/gone", "unheard-of"] {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": name}))).await;
        assert_eq!(answer.error(), (404, "not_found_error".into(), "model".into()), "{name}: {}", answer.body);
    }
    let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": "big"}))).await;
    assert_eq!(answer.text(), "ok");
}

#[tokio::test]
async fn in_strict_mode_a_mapped_name_whose_model_the_agent_refuses_gets_the_default() {
    let agent = agents(&["big"]);
    let setting = ServerSetup { unknown: UnknownModels::Refuse, mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &agent)], setting).await;
    // Refused by the agent the first time, known to be refused the second.
    for _ in 0..2 {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": "gpt-3.5-turbo"}))).await;
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.json()["model"], "first");
        assert_eq!(answer.header("x-gembridge-model-fallback"), Some("first"));
    }
    assert_eq!(get(server.address, "/v1/models/gpt-3.5-turbo").await.json()["id"], "gpt-3.5-turbo");
}

#[tokio::test]
async fn what_a_mapped_name_stands_for_counts_as_listed() {
    let agent = agents(&["big"]);
    let setting = ServerSetup { unknown: UnknownModels::Refuse, mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &agent)], setting).await;
    get(server.address, "/v1/models").await;
    assert_eq!(get(server.address, "/v1/models/gone").await.json()["id"], "gone");
    let answer = server.ask(&chat_with(&[("user", "hi")], json!({"model": "gone"}))).await;
    assert_eq!(answer.header("x-gembridge-model-fallback"), Some("first"), "{}", answer.body);
}

#[tokio::test]
async fn a_mapped_model_that_fails_at_the_prompt_makes_way_for_the_default() {
    let agent = ScriptedAgents::new(|scene| match scene.agent {
        0 => {
            let message = "agent `first` failed (500): models/gone is not found for API version v1beta";
            vec![vec![Signal::Failed(Failure::new(FailureKind::UnknownModel { code: 500 }, message))]]
        }
        _ => vec![vec![text("ok"), done()]],
    })
    .with_models(&["gone"]);
    let setting = ServerSetup { mapped: mapped(), ..ServerSetup::default() };
    let server = TestServer::with(&[("first", &agent)], setting).await;
    let request = chat_with(&[("user", "hi")], json!({"model": "gpt-3.5-turbo", "stream": true}));
    let answer = server.stream(&request).await.whole().await;
    assert_eq!(answer.streamed(0), "ok", "{}", answer.body);
    assert_eq!(answer.header("x-gembridge-model-fallback"), Some("first"));
    assert_eq!((agent.spec(0).model.as_deref(), agent.spec(1).model.as_deref()), (Some("gone"), None));
    assert_eq!(kept(&server).await, 1);
}

#[tokio::test]
async fn the_description_names_every_route_and_type() {
    use utoipa::OpenApi as _;

    let description: Value =
        serde_json::from_str(&gembridge_api::openai::Description::openapi().to_json().unwrap()).unwrap();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/chat/completions", "/v1/chat/completions", "/v1/models", "/v1/models/{id}"]);
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let requests = ["ChatRequest", "Message", "Part", "Tool", "Function", "ToolChoice", "ResponseFormat", "JsonSchema"];
    let answers = ["Completion", "CompletionChunk", "CalledTool", "Usage", "ModelList"];
    for name in requests.iter().chain(&answers).copied() {
        assert!(schemas.contains_key(name), "{name} is missing: {:?}", schemas.keys());
    }
    // Every reference leads somewhere.
    let text = description.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "`{name}` is named and not described");
    }
}
