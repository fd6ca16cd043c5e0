//! Answers that end where the client wants them to.

use serde_json::{Value, json};

use crate::openai::support::server::{TestServer, chat, chat_with};
use crate::openai::support::{done, text, thought};
use gembridge_core::test_support::{Order, ScriptedAgents};

fn counting() -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(|_| {
        let mut batches: Vec<_> =
            ["one tw", "o thr", "ee ST", "OP four"].iter().map(|piece| vec![text(piece)]).collect();
        batches.push(vec![done()]);
        batches
    })
}

async fn both(server: &TestServer, fields: Value) -> [(String, String); 2] {
    let mut request = chat_with(&[("user", "count")], fields);
    let whole = server.ask(&request).await;
    request["stream"] = json!(true);
    let stream = server.stream(&request).await.whole().await;
    let reason = stream.chunks().last().unwrap()["choices"][0]["finish_reason"].as_str().unwrap().to_owned();
    [(whole.text(), whole.finish()), (stream.streamed(0), reason)]
}

#[tokio::test]
async fn a_stop_that_spans_chunks_ends_the_answer_before_it() {
    let server = TestServer::new(&counting()).await;
    for answer in both(&server, json!({"stop": "STOP"})).await {
        assert_eq!(answer, ("one two three ".into(), "stop".into()));
    }
    for answer in both(&server, json!({"stop": ["four", "three"]})).await {
        assert_eq!(answer, ("one two ".into(), "stop".into()));
    }
    // What looked like the beginning of a stop and was none is not lost.
    for answer in both(&server, json!({"stop": ["fourteen"]})).await {
        assert_eq!(answer, ("one two three STOP four".into(), "stop".into()));
    }
}

#[tokio::test]
async fn a_limit_of_tokens_ends_the_answer_with_length() {
    let server = TestServer::new(&counting()).await;
    for field in ["max_tokens", "max_completion_tokens"] {
        for answer in both(&server, json!({field: 2})).await {
            assert_eq!(answer, ("one two ".into(), "length".into()));
        }
    }
    for answer in both(&server, json!({"max_tokens": 100})).await {
        assert_eq!(answer, ("one two three STOP four".into(), "stop".into()));
    }
}

#[tokio::test]
async fn a_cut_answer_is_counted_although_its_agent_has_not_told() {
    // The agent goes on for ever: what it used is never told.
    let server = TestServer::new(&ScriptedAgents::new(|_| vec![vec![text("one two three STOP")]])).await;
    for (fields, completion) in [(json!({"max_tokens": 2}), 2), (json!({"stop": "STOP"}), 4)] {
        let mut request = chat_with(&[("user", "count")], fields);
        let tokens = |usage: &Value| (usage["prompt_tokens"].clone(), usage["completion_tokens"].clone());
        assert_eq!(tokens(&server.ask(&request).await.json()["usage"]), (json!(2), json!(completion)));
        request["stream"] = json!(true);
        request["stream_options"] = json!({"include_usage": true});
        let stream = server.stream(&request).await.whole().await;
        assert_eq!(tokens(&stream.chunks().last().unwrap()["usage"]), (json!(2), json!(completion)));
    }
}

#[tokio::test]
async fn thoughts_count_into_the_limit_of_the_whole_completion() {
    let agents = ScriptedAgents::new(|_| vec![vec![thought("12345678"), text("abcdefgh"), done()]]);
    let server = TestServer::new(&agents).await;
    assert_eq!(server.ask(&chat_with(&[("user", "x")], json!({"max_tokens": 1}))).await.text(), "abcd");
    let answer = server.ask(&chat_with(&[("user", "x")], json!({"max_completion_tokens": 3}))).await;
    assert_eq!(answer.text(), "abcd");
}

#[tokio::test]
async fn a_cut_turn_is_cancelled_and_its_session_no_longer_matches() {
    let agents = ScriptedAgents::new(|scene| match scene.prompt.as_str() {
        "count" => vec![vec![text("one STOP two")]],
        _ => vec![vec![text("fine"), done()]],
    });
    let server = TestServer::new(&agents).await;
    let answer = server.ask(&chat_with(&[("user", "count")], json!({"stop": "STOP"}))).await;
    assert_eq!(answer.text(), "one ");
    agents.until_cancelled(0).await;
    let next = server.ask(&chat(&[("user", "count"), ("assistant", "one "), ("user", "on")])).await;
    assert_eq!(next.text(), "fine");
    assert_eq!(agents.prompts(0), ["count"]);
    assert_eq!(agents.prompts(1), ["[User]\ncount\n\n[Assistant]\none \n\n[User]\non"]);
    assert!(!agents.orders(1).contains(&Order::Cancel));
}
