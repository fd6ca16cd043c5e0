//! Clients that leave.

use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::Seq;
use serde_json::json;

use crate::openai::support::server::{ServerSetup, TestServer, chat, chat_with};
use crate::openai::support::{done, text};
use gembridge_core::test_support::{Order, ScriptedAgents};

#[tokio::test]
async fn r8_a_client_that_leaves_its_stream_cancels_its_turn() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let mut stream = server.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await;
    stream.until("\"a\"").await;
    drop(stream);
    agents.until_cancelled(0).await;
}

#[tokio::test]
async fn r8_a_client_that_leaves_before_its_whole_answer_cancels_its_turn() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    let request = chat(&[("user", "hi")]);
    tokio::select! {
        _ = server.ask(&request) => panic!("nobody answers"),
        () = agents.until_prompted(0) => {}
    }
    agents.until_cancelled(0).await;
}

#[tokio::test]
async fn r8_a_turn_that_somebody_else_watches_goes_on() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let mut stream = server.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await;
    stream.until("\"a\"").await;
    let handle = server.session(&stream.headers).await;
    let mut watcher = handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    drop(stream);
    server.exchanges.settle().await;
    // The server sees the connection go at its own backpressure: the count of followers tells when it did.
    while handle.describe().await.unwrap().followers > 1 {
        tokio::task::yield_now().await;
    }
    server.exchanges.settle().await;
    agents.does(0, [text("b"), done()]).await;
    loop {
        let batch = watcher.follow.recv().await.expect("the session is there");
        if batch.iter().any(|entry| matches!(entry.event, gembridge_core::model::Event::Ended(_))) {
            break;
        }
    }
    assert!(!agents.orders(0).contains(&Order::Cancel), "{:?}", agents.orders(0));
}

#[tokio::test]
async fn a_waiter_that_leaves_the_line_is_gone() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let mut setting = ServerSetup::default();
    setting.admission.running = 1;
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let request = chat_with(&[("user", "hi")], json!({"stream": true}));
    let mut first = server.stream(&request).await;
    first.until("\"a\"").await;
    let waiting = || server.sessions.queues().map(|(_, status)| status.waiting).sum::<usize>();
    tokio::select! {
        _ = server.stream(&request) => panic!("there is no room"),
        () = async { while waiting() == 0 { tokio::task::yield_now().await } } => {}
    }
    while waiting() > 0 {
        tokio::task::yield_now().await;
    }
    agents.does(0, [done()]).await;
    first.whole().await;
    assert_eq!(agents.opened(), 1);
}
