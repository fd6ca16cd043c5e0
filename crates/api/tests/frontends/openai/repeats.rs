//! Requests that are sent again because their answer was lost on the way.

use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Event, Failure, FailureKind, Seq};
use serde_json::{Value, json};

use crate::openai::support::http::Answer;
use crate::openai::support::server::{TestServer, chat, chat_with};
use crate::openai::support::{done, text};
use gembridge_core::driver::Signal;
use gembridge_core::test_support::{ScriptedAgents, done_cancelled};

const RETRY: [(&str, &str); 1] = [("x-stainless-retry-count", "1")];

/// Answers with how many prompts it has had.
fn counting() -> std::sync::Arc<ScriptedAgents> {
    let prompts = std::sync::atomic::AtomicUsize::new(0);
    ScriptedAgents::new(move |_| {
        let number = prompts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        vec![vec![text("answer ")], vec![text(&number.to_string()), done()]]
    })
}

async fn retry(server: &TestServer, request: &Value) -> Answer {
    server.ask_as("ann", &RETRY, request).await
}

#[tokio::test]
async fn a_retry_is_told_the_turn_that_the_request_began() {
    let agents = counting();
    let server = TestServer::new(&agents).await;
    let request = chat(&[("user", "do it")]);
    let first = server.ask(&request).await;
    let again = retry(&server, &request).await;
    assert_eq!((first.text(), again.text()), ("answer 1".to_owned(), "answer 1".to_owned()));
    assert_eq!(again.header("x-session-id"), first.header("x-session-id"));
    assert_eq!((first.header("x-gembridge-repeated"), again.header("x-gembridge-repeated")), (None, Some("true")));
    assert_eq!(agents.opened(), 1);
    assert_eq!(agents.prompts(0), ["do it"]);
}

#[tokio::test]
async fn a_retry_of_a_stream_streams_the_same_again_and_the_conversation_goes_on() {
    let agents = counting();
    let server = TestServer::new(&agents).await;
    let request = chat_with(&[("user", "do it")], json!({ "stream": true }));
    assert_eq!(server.ask(&request).await.streamed(0), "answer 1");
    assert_eq!(retry(&server, &request).await.streamed(0), "answer 1");
    let next = chat(&[("user", "do it"), ("assistant", "answer 1"), ("user", "and that")]);
    assert_eq!(server.ask(&next).await.text(), "answer 2");
    assert_eq!(agents.prompts(0), ["do it", "and that"], "one session of the agent");
}

#[tokio::test]
async fn whoever_asks_the_same_again_without_having_lost_an_answer_gets_another() {
    let agents = counting();
    let server = TestServer::new(&agents).await;
    let request = chat(&[("user", "do it")]);
    assert_eq!(server.ask(&request).await.text(), "answer 1");
    assert_eq!(server.ask(&request).await.text(), "answer 2");
    assert_eq!(retry(&server, &chat(&[("user", "do that")])).await.text(), "answer 3", "it never came here");
}

#[tokio::test]
async fn nobody_is_told_the_answer_to_the_same_request_of_another_key() {
    let agents = counting();
    let server = TestServer::new(&agents).await;
    let request = chat(&[("user", "do it")]);
    assert_eq!(server.ask(&request).await.text(), "answer 1");
    assert_eq!(server.ask_as("bob", &RETRY, &request).await.text(), "answer 2");
}

#[tokio::test]
async fn a_turn_that_went_on_for_its_watcher_is_found_by_its_own_client() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let request = chat_with(&[("user", "hi")], json!({ "stream": true }));
    let mut stream = server.stream(&request).await;
    stream.until("\"a\"").await;
    let handle = server.session(&stream.headers).await;
    let mut watcher = handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    drop(stream);
    while handle.describe().await.unwrap().followers > 1 {
        tokio::task::yield_now().await;
    }
    agents.does(0, [text("b"), done()]).await;
    loop {
        let batch = watcher.follow.recv().await.expect("the session is there");
        if batch.iter().any(|entry| matches!(entry.event, Event::Ended(_))) {
            break;
        }
    }
    // It says nothing of a retry, but cannot have had the end.
    assert_eq!(server.ask(&request).await.streamed(0), "ab");
    assert_eq!(agents.prompts(0), ["hi"]);
}

#[tokio::test]
async fn a_turn_that_was_cancelled_with_its_client_is_begun_anew() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let request = chat_with(&[("user", "hi")], json!({ "stream": true }));
    let mut stream = server.stream(&request).await;
    stream.until("\"a\"").await;
    drop(stream);
    agents.until_cancelled(0).await;
    agents.does(0, [done_cancelled()]).await;
    let mut again = server.stream_as("ann", &RETRY, &request).await;
    again.until("\"a\"").await;
    assert_eq!(again.headers.get("x-gembridge-repeated"), None);
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn a_failure_after_which_the_agent_may_have_acted_asks_not_to_be_tried_again() {
    let failed = || Failure::new(FailureKind::Crashed, "it broke");
    let agents = ScriptedAgents::new(move |_| vec![vec![text("a"), Signal::Failed(failed())]]);
    let server = TestServer::new(&agents).await;
    let answer = server.ask(&chat(&[("user", "hi")])).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, Some("false")));
    let wrong = server.ask(&json!({ "model": "played", "messages": [] })).await;
    assert_eq!((wrong.status, wrong.header("x-should-retry")), (400, None));
}
