//! Clients that leave.

use gembridge_core::log::{From, Pace};
use gembridge_core::model::Seq;
use serde_json::json;

use crate::support::agents::{Order, Troupe};
use crate::support::stage::{Setting, Stage, chat, chat_with};
use crate::support::{done, text};

#[tokio::test]
async fn r8_a_client_that_leaves_its_stream_cancels_its_turn() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let stage = Stage::new(&troupe).await;
    let mut stream = stage.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await;
    stream.until("\"a\"").await;
    drop(stream);
    troupe.until_cancelled(0).await;
}

#[tokio::test]
async fn r8_a_client_that_leaves_before_its_whole_answer_cancels_its_turn() {
    let troupe = Troupe::new(|_| vec![]);
    let stage = Stage::new(&troupe).await;
    let request = chat(&[("user", "hi")]);
    tokio::select! {
        _ = stage.ask(&request) => panic!("nobody answers"),
        () = troupe.until_prompted(0) => {}
    }
    troupe.until_cancelled(0).await;
}

#[tokio::test]
async fn r8_a_turn_that_somebody_else_watches_goes_on() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let stage = Stage::new(&troupe).await;
    let mut stream = stage.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await;
    stream.until("\"a\"").await;
    let handle = stage.session(&stream.headers).await;
    let mut watcher = handle.attach(From::After(Seq::START), Pace::Own).await.unwrap();
    drop(stream);
    stage.exchanges.settle().await;
    // The server sees the connection go at its own pace: the count of followers tells when it did.
    while handle.describe().await.unwrap().followers > 1 {
        tokio::task::yield_now().await;
    }
    stage.exchanges.settle().await;
    troupe.does(0, [text("b"), done()]).await;
    loop {
        let batch = watcher.follow.recv().await.expect("the session is there");
        if batch.iter().any(|entry| matches!(entry.event, gembridge_core::model::Event::Ended(_))) {
            break;
        }
    }
    assert!(!troupe.orders(0).contains(&Order::Cancel), "{:?}", troupe.orders(0));
}

#[tokio::test]
async fn a_waiter_that_leaves_the_line_is_gone() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let mut setting = Setting::default();
    setting.admission.running = 1;
    let stage = Stage::with(&[("played", &troupe)], setting).await;
    let request = chat_with(&[("user", "hi")], json!({"stream": true}));
    let mut first = stage.stream(&request).await;
    first.until("\"a\"").await;
    let waiting = || stage.sessions.queues().map(|(_, status)| status.waiting).sum::<usize>();
    tokio::select! {
        _ = stage.stream(&request) => panic!("there is no room"),
        () = async { while waiting() == 0 { tokio::task::yield_now().await } } => {}
    }
    while waiting() > 0 {
        tokio::task::yield_now().await;
    }
    troupe.does(0, [done()]).await;
    first.whole().await;
    assert_eq!(troupe.opened(), 1);
}
