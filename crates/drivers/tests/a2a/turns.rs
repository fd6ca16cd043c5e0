//! What comes of a turn, and in which conversation of the server the next one is.

use gembridge_core::model::{Event, Outcome};
use gembridge_core::session::NewSession;
use gembridge_drivers::profile::AgentConfig;
use gembridge_testkit::a2a_server::{FakeA2aServer, Manner, Version};

use crate::remote::{VERSIONS, agent, configured, server};

fn message(calls: &[serde_json::Value], nth: usize) -> &serde_json::Value {
    let is_message = |call: &&serde_json::Value| call["params"]["message"].is_object();
    &calls.iter().filter(is_message).nth(nth).unwrap()["params"]["message"]
}

#[tokio::test]
async fn both_versions_answer_and_the_conversation_goes_on_in_the_same_task() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        let mut client = fixture.session().await;
        let turned = client.turn("hello").await;
        assert_eq!(turned.finished(), "You said: hello", "{version:?}");
        let usage = turned.fold();
        assert_eq!((usage.usage().input, usage.usage().output), (Some(3), Some(4)), "{version:?}");
        assert!(turned.events().any(|event| matches!(event, Event::Model(model) if &**model == "fake-1")));
        assert_eq!(client.turn("again").await.finished(), "You said: again");
        let calls = server.requests();
        assert!(message(&calls, 0)["taskId"].is_null() && message(&calls, 0)["contextId"].is_null());
        assert_eq!(message(&calls, 1)["taskId"], "task-1");
        assert_eq!(message(&calls, 1)["contextId"], "context-1");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_task_that_is_completed_is_followed_by_another_in_the_same_context() {
    for version in VERSIONS {
        for manner in [Manner::Plain, Manner::Whole] {
            let server = server(version, manner).await;
            let fixture = agent(&server.url()).start();
            let mut client = fixture.session().await;
            assert_eq!(client.turn("hello").await.finished(), "You said: hello", "{version:?} {manner:?}");
            assert_eq!(client.turn("again").await.finished(), "You said: again", "{version:?} {manner:?}");
            let calls = server.requests();
            assert!(message(&calls, 1)["taskId"].is_null(), "{calls:?}");
            assert_eq!(message(&calls, 1)["contextId"], "context-1");
            fixture.end().await;
        }
    }
}

#[tokio::test]
async fn thoughts_and_progress_are_apart_from_the_answer() {
    let coder = server(Version::V03, Manner::Coder).await;
    let fixture = agent(&coder.url()).start();
    let turned = fixture.session().await.turn("think").await;
    assert_eq!(turned.finished(), "You said: think");
    let thoughts: Vec<String> = turned.events().filter_map(thought).collect();
    assert_eq!(thoughts, ["**Plan**\nlook first\n"]);
    fixture.end().await;
    let plain = server(Version::V10, Manner::Plain).await;
    let fixture = agent(&plain.url()).start();
    let turned = fixture.session().await.turn("hello").await;
    assert_eq!(turned.finished(), "You said: hello");
    assert_eq!(turned.events().filter_map(thought).collect::<Vec<_>>(), ["looking\n"]);
    fixture.end().await;
}

fn thought(event: &Event) -> Option<String> {
    match event {
        Event::Thought(text) => Some(text.to_str().into_owned()),
        _ => None,
    }
}

#[tokio::test]
async fn a_server_may_answer_with_a_message_and_no_task() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        assert_eq!(fixture.session().await.turn("message").await.finished(), "just this", "{version:?}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_task_and_the_conversation_goes_on() {
    for (version, method) in [(Version::V03, "tasks/cancel"), (Version::V10, "CancelTask")] {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        let mut client = fixture.session().await;
        let turn = client.prompt("hang").await;
        client.said("word").await;
        client.handle.cancel().await.unwrap();
        assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
        assert_eq!(client.ends_of(turn).await, 1);
        assert_eq!(server.called(method, 1).await["params"]["id"], "task-1");
        assert_eq!(client.turn("again").await.finished(), "You said: again");
        let calls = server.requests();
        assert!(message(&calls, 1)["taskId"].is_null() && message(&calls, 1)["contextId"] == "context-1");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_conversation_that_the_server_lost_is_begun_anew_and_told_what_was_said() {
    let server = server(Version::V03, Manner::Coder).await;
    let fixture = agent(&server.url()).start();
    let mut client = fixture.session().await;
    client.turn("the first word").await.finished();
    // Another session makes the server forget.
    let mut other = fixture.session().await;
    other.turn("forget").await.finished();
    let told = client.turn("the second").await.finished();
    assert!(told.contains("the first word") && told.ends_with("the second"), "{told}");
    fixture.end().await;
}

#[tokio::test]
async fn the_key_is_sent_and_the_model_named() {
    let server = FakeA2aServer::start_with(Version::V03, Manner::Coder, Some("a-key-of-the-operator")).await.unwrap();
    let url = Some(server.url());
    let config = AgentConfig { url, key_variable: Some("REMOTE_KEY".to_owned()), ..AgentConfig::default() };
    let mut plan = configured(&config);
    plan.setup.environment.insert("REMOTE_KEY".to_owned(), "a-key-of-the-operator".to_owned());
    let fixture = plan.start();
    let new = NewSession { model: Some("big".into()), ..fixture.new_session() };
    assert_eq!(fixture.session_with(new).await.turn("hello").await.finished(), "You said: hello");
    assert_eq!(message(&server.requests(), 0)["metadata"]["_model"], "big");
    fixture.end().await;
    let fixture = configured(&config).start();
    let turned = fixture.session().await.turn("hello").await;
    assert!(turned.failure().message.contains("`REMOTE_KEY`"), "{}", turned.failure());
    fixture.end().await;
}

#[tokio::test]
async fn a_shutdown_ends_turns_that_run() {
    let server = server(Version::V10, Manner::Coder).await;
    let fixture = agent(&server.url()).start();
    let mut client = fixture.session().await;
    client.prompt("hang").await;
    client.said("word").await;
    fixture.end().await;
}
