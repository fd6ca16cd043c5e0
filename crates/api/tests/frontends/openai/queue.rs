//! The line before an agent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gembridge_core::admission::AdmissionLimits;
use gembridge_core::model::{ClientId, Prompt};
use serde_json::json;

use crate::openai::support::http::Stream;
use crate::openai::support::server::{ServerSetup, TestServer, chat, chat_with};
use crate::openai::support::{done, text};
use gembridge_core::test_support::ScriptedAgents;

fn setting(running: usize, waiting: usize) -> ServerSetup {
    let admission = AdmissionLimits { running, waiting, ..AdmissionLimits::default() };
    ServerSetup { admission, ..ServerSetup::default() }
}

#[tokio::test]
async fn r19_exactly_the_surplus_is_refused() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::with(&[("played", &agents)], setting(2, 3)).await;
    let request = chat_with(&[("user", "hi")], json!({"stream": true}));
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(server.stream(&request).await);
    }
    let release = async {
        let status = || server.sessions.queues().next().unwrap().1;
        while status().waiting < 3 {
            tokio::task::yield_now().await;
        }
        let refused = server.stream(&request).await.whole().await;
        assert_eq!(refused.error().0, 429);
        assert_eq!(refused.json()["error"]["code"], "queue_full");
        assert!(refused.header("retry-after").is_some());
        for agent in 0..5 {
            agents.until_prompted(agent).await;
            agents.does(agent, [done()]).await;
        }
    };
    let waiting = async { tokio::join!(server.stream(&request), server.stream(&request), server.stream(&request)) };
    let ((first, second, third), ()) = tokio::join!(waiting, release);
    for stream in [first, second, third].into_iter().chain(running) {
        assert_eq!(stream.whole().await.streamed(0), "a");
    }
    assert_eq!(agents.opened(), 5);
}

#[tokio::test]
async fn the_places_of_a_request_are_free_when_its_answers_are_over() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::with(&[("played", &agents)], setting(2, 0)).await;
    for _ in 0..3 {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"n": 2}))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!(server.sessions.queues().next().unwrap().1.running, 0);
}

#[tokio::test]
async fn answers_to_one_request_never_take_more_places_than_there_are() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::with(&[("played", &agents)], setting(2, 0)).await;
    let request = chat_with(&[("user", "hi")], json!({"n": 3}));
    let playing = async {
        agents.until("two prompts", |agents| (0..2).all(|agent| !agents.prompts(agent).is_empty())).await;
        let third = server.ask(&chat_with(&[("user", "and me")], json!({}))).await;
        assert_eq!(third.error().0, 429, "both places are taken");
        assert!(agents.prompts(2).is_empty(), "the third answer waits for a place");
        agents.does(0, [done()]).await;
        agents.until_prompted(2).await;
        agents.does(1, [done()]).await;
        agents.does(2, [done()]).await;
    };
    let (answer, ()) = tokio::join!(server.ask(&request), playing);
    assert_eq!(answer.json()["choices"].as_array().map(Vec::len), Some(3), "{}", answer.body);
}

/// A session whose agent takes its time for the prompt `long`, and runs one.
async fn busy(agents: &Arc<ScriptedAgents>, setting: ServerSetup) -> (TestServer, String, Stream) {
    let server = TestServer::with(&[("played", agents)], setting).await;
    let first = server.ask(&chat(&[("user", "hi")])).await;
    let session = first.header("x-session-id").expect("the session is named").to_owned();
    let request = chat_with(&[("user", "long")], json!({"stream": true}));
    let mut long = server.stream_as("ann", &[("x-session-id", &session)], &request).await;
    long.until("\"a\"").await;
    (server, session, long)
}

fn slow_on_long() -> Arc<ScriptedAgents> {
    ScriptedAgents::new(|scene| match scene.prompt.as_str() {
        "long" => vec![vec![text("a")]],
        _ => vec![vec![text("b"), done()]],
    })
}

async fn until_waiting(server: &TestServer, count: usize) {
    while server.sessions.queues().map(|(_, status)| status.waiting).sum::<usize>() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn whoever_waits_for_a_session_takes_no_place_at_its_agent() {
    let agents = slow_on_long();
    let (server, session, long) = busy(&agents, setting(2, 1)).await;
    let pinned = [("x-session-id", session.as_str())];
    let next = chat(&[("user", "next")]);
    let meanwhile = async {
        until_waiting(&server, 1).await;
        let refused = server.ask_as("ann", &pinned, &next).await;
        assert_eq!(refused.error().0, 429, "one may wait");
        assert!(refused.body.contains("the queue of the agent is full"), "{}", refused.body);
        let other = server.ask(&chat(&[("user", "somebody else")])).await;
        assert_eq!((other.status, other.header("x-queue-ms")), (200, Some("0")), "{}", other.body);
        assert_eq!(agents.prompts(0), ["hi", "long"], "nothing more is sent while the turn runs");
        agents.does(0, [done()]).await;
        long.whole().await;
    };
    let (answer, ()) = tokio::join!(server.ask_as("ann", &pinned, &next), meanwhile);
    assert_eq!(answer.text(), "b");
    assert_eq!(agents.prompts(0), ["hi", "long", "next"]);
}

#[tokio::test]
async fn r8_a_client_that_leaves_while_it_waits_for_its_session_leaves_nothing_to_the_agent() {
    let agents = slow_on_long();
    let (server, session, long) = busy(&agents, setting(4, 8)).await;
    let pinned = [("x-session-id", session.as_str())];
    let gone = chat(&[("user", "gone")]);
    tokio::select! {
        _ = server.ask_as("ann", &pinned, &gone) => panic!("the session is busy"),
        () = until_waiting(&server, 1) => {}
    }
    until_waiting(&server, 0).await;
    agents.does(0, [done()]).await;
    long.whole().await;
    assert_eq!(server.ask_as("ann", &pinned, &chat(&[("user", "last")])).await.text(), "b");
    assert_eq!(agents.prompts(0), ["hi", "long", "last"]);
}

#[tokio::test]
async fn a_request_that_waits_for_a_turn_of_another_api_says_how_long() {
    let agents = slow_on_long();
    let server = TestServer::with(&[("played", &agents)], setting(2, 8)).await;
    let first = server.ask(&chat(&[("user", "hi")])).await;
    let session = first.header("x-session-id").expect("the session is named").to_owned();
    assert_eq!(first.header("x-queue-ms"), Some("0"));
    let handle = server.session(&first.headers).await;
    handle.prompt(Prompt::text("long"), ClientId(7)).await.expect("the prompt is taken");
    agents.until("the other turn", |agents| agents.prompts(0).len() == 2).await;
    let (pinned, next) = ([("x-session-id", session.as_str())], chat(&[("user", "next")]));
    let meanwhile = async {
        until_waiting(&server, 1).await;
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(5) {
            tokio::task::yield_now().await;
        }
        agents.does(0, [done()]).await;
    };
    let (answer, ()) = tokio::join!(server.ask_as("ann", &pinned, &next), meanwhile);
    let queued: u64 = answer.header("x-queue-ms").expect("the time is told").parse().expect("a number");
    assert!(answer.status == 200 && queued >= 5, "{queued} ms: {}", answer.body);
}
