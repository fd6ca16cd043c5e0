//! The line before an agent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gembridge_core::admission::AdmissionLimits;
use gembridge_core::model::{ClientId, Prompt};
use serde_json::json;

use crate::support::agents::Troupe;
use crate::support::http::Stream;
use crate::support::stage::{Setting, Stage, chat, chat_with};
use crate::support::{done, text};

fn setting(running: usize, waiting: usize) -> Setting {
    let mut setting = Setting::default();
    setting.admission = AdmissionLimits { running, waiting, ..AdmissionLimits::default() };
    setting
}

#[tokio::test]
async fn r19_exactly_the_surplus_is_refused() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let stage = Stage::with(&[("played", &troupe)], setting(2, 3)).await;
    let request = chat_with(&[("user", "hi")], json!({"stream": true}));
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(stage.stream(&request).await);
    }
    let release = async {
        let status = || stage.sessions.queues().next().unwrap().1;
        while status().waiting < 3 {
            tokio::task::yield_now().await;
        }
        let refused = stage.stream(&request).await.whole().await;
        assert_eq!(refused.error().0, 429);
        assert_eq!(refused.json()["error"]["code"], "queue_full");
        assert!(refused.header("retry-after").is_some());
        for agent in 0..5 {
            troupe.until_prompted(agent).await;
            troupe.does(agent, [done()]).await;
        }
    };
    let waiting = async { tokio::join!(stage.stream(&request), stage.stream(&request), stage.stream(&request)) };
    let ((first, second, third), ()) = tokio::join!(waiting, release);
    for stream in [first, second, third].into_iter().chain(running) {
        assert_eq!(stream.whole().await.streamed(0), "a");
    }
    assert_eq!(troupe.opened(), 5);
}

#[tokio::test]
async fn the_places_of_a_request_are_free_when_its_answers_are_over() {
    let troupe = Troupe::new(|_| vec![vec![text("a"), done()]]);
    let stage = Stage::with(&[("played", &troupe)], setting(2, 0)).await;
    for _ in 0..3 {
        let answer = stage.ask(&chat_with(&[("user", "hi")], json!({"n": 2}))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!(stage.sessions.queues().next().unwrap().1.running, 0);
}

#[tokio::test]
async fn answers_to_one_request_never_take_more_places_than_there_are() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let stage = Stage::with(&[("played", &troupe)], setting(2, 0)).await;
    let request = chat_with(&[("user", "hi")], json!({"n": 3}));
    let playing = async {
        troupe.until("two prompts", |troupe| (0..2).all(|agent| !troupe.prompts(agent).is_empty())).await;
        let third = stage.ask(&chat_with(&[("user", "and me")], json!({}))).await;
        assert_eq!(third.error().0, 429, "both places are taken");
        assert!(troupe.prompts(2).is_empty(), "the third answer waits for a place");
        troupe.does(0, [done()]).await;
        troupe.until_prompted(2).await;
        troupe.does(1, [done()]).await;
        troupe.does(2, [done()]).await;
    };
    let (answer, ()) = tokio::join!(stage.ask(&request), playing);
    assert_eq!(answer.json()["choices"].as_array().map(Vec::len), Some(3), "{}", answer.body);
}

/// A session whose agent takes its time for the prompt `long`, and runs one.
async fn busy(troupe: &Arc<Troupe>, setting: Setting) -> (Stage, String, Stream) {
    let stage = Stage::with(&[("played", troupe)], setting).await;
    let first = stage.ask(&chat(&[("user", "hi")])).await;
    let session = first.header("x-session-id").expect("the session is named").to_owned();
    let request = chat_with(&[("user", "long")], json!({"stream": true}));
    let mut long = stage.stream_as("ann", &[("x-session-id", &session)], &request).await;
    long.until("\"a\"").await;
    (stage, session, long)
}

fn slow_on_long() -> Arc<Troupe> {
    Troupe::new(|scene| match scene.prompt.as_str() {
        "long" => vec![vec![text("a")]],
        _ => vec![vec![text("b"), done()]],
    })
}

async fn until_waiting(stage: &Stage, count: usize) {
    while stage.sessions.queues().map(|(_, status)| status.waiting).sum::<usize>() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn whoever_waits_for_a_session_takes_no_place_at_its_agent() {
    let troupe = slow_on_long();
    let (stage, session, long) = busy(&troupe, setting(2, 1)).await;
    let pinned = [("x-session-id", session.as_str())];
    let next = chat(&[("user", "next")]);
    let meanwhile = async {
        until_waiting(&stage, 1).await;
        let refused = stage.ask_as("ann", &pinned, &next).await;
        assert_eq!(refused.error().0, 429, "one may wait");
        assert!(refused.body.contains("the queue of the agent is full"), "{}", refused.body);
        let other = stage.ask(&chat(&[("user", "somebody else")])).await;
        assert_eq!((other.status, other.header("x-queue-ms")), (200, Some("0")), "{}", other.body);
        assert_eq!(troupe.prompts(0), ["hi", "long"], "nothing more is sent while the turn runs");
        troupe.does(0, [done()]).await;
        long.whole().await;
    };
    let (answer, ()) = tokio::join!(stage.ask_as("ann", &pinned, &next), meanwhile);
    assert_eq!(answer.text(), "b");
    assert_eq!(troupe.prompts(0), ["hi", "long", "next"]);
}

#[tokio::test]
async fn r8_a_client_that_leaves_while_it_waits_for_its_session_leaves_nothing_to_the_agent() {
    let troupe = slow_on_long();
    let (stage, session, long) = busy(&troupe, setting(4, 8)).await;
    let pinned = [("x-session-id", session.as_str())];
    let gone = chat(&[("user", "gone")]);
    tokio::select! {
        _ = stage.ask_as("ann", &pinned, &gone) => panic!("the session is busy"),
        () = until_waiting(&stage, 1) => {}
    }
    until_waiting(&stage, 0).await;
    troupe.does(0, [done()]).await;
    long.whole().await;
    assert_eq!(stage.ask_as("ann", &pinned, &chat(&[("user", "last")])).await.text(), "b");
    assert_eq!(troupe.prompts(0), ["hi", "long", "last"]);
}

#[tokio::test]
async fn a_request_that_waits_for_a_turn_of_another_api_says_how_long() {
    let troupe = slow_on_long();
    let stage = Stage::with(&[("played", &troupe)], setting(2, 8)).await;
    let first = stage.ask(&chat(&[("user", "hi")])).await;
    let session = first.header("x-session-id").expect("the session is named").to_owned();
    assert_eq!(first.header("x-queue-ms"), Some("0"));
    let handle = stage.session(&first.headers).await;
    handle.prompt(Prompt::text("long"), ClientId(7)).await.expect("the prompt is taken");
    troupe.until("the other turn", |troupe| troupe.prompts(0).len() == 2).await;
    let (pinned, next) = ([("x-session-id", session.as_str())], chat(&[("user", "next")]));
    let meanwhile = async {
        until_waiting(&stage, 1).await;
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(5) {
            tokio::task::yield_now().await;
        }
        troupe.does(0, [done()]).await;
    };
    let (answer, ()) = tokio::join!(stage.ask_as("ann", &pinned, &next), meanwhile);
    let queued: u64 = answer.header("x-queue-ms").expect("the time is told").parse().expect("a number");
    assert!(answer.status == 200 && queued >= 5, "{queued} ms: {}", answer.body);
}
