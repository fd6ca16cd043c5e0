//! Answers as they come.

use std::time::Duration;

use gembridge_core::model::{Content, Event, ToolCall, ToolCallId, ToolContent, ToolStatus, Usage};
use serde_json::{Value, json};

use crate::openai::support::server::{ServerSetup, TestServer, chat, chat_with};
use crate::openai::support::{done, done_with, escaped, text, thought, update};
use gembridge_core::test_support::ScriptedAgents;

fn streaming(fields: Value) -> Value {
    let mut request = chat_with(&[("user", "hi")], fields);
    request["stream"] = json!(true);
    request
}

#[tokio::test]
async fn deltas_arrive_while_the_agent_still_works() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    let request = streaming(json!({}));
    let (stream, ()) = tokio::join!(server.stream(&request), async {
        agents.until_prompted(0).await;
        agents.does(0, [text("Hel")]).await;
    });
    let mut stream = stream;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    stream.until("Hel").await;
    agents.does(0, [text("lo")]).await;
    stream.until("lo").await;
    agents.does(0, [done()]).await;
    let answer = stream.whole().await;
    assert_eq!(answer.streamed(0), "Hello");
}

#[tokio::test]
async fn the_role_comes_first_and_the_reason_last() {
    let agents = ScriptedAgents::new(|_| vec![vec![thought("hm"), text("yes"), done()]]);
    let server = TestServer::new(&agents).await;
    let answer = server.stream(&streaming(json!({}))).await.whole().await;
    let chunks = answer.chunks();
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "hm"}),
        json!({"content": "yes"}),
        json!({}),
    ];
    assert_eq!(deltas, expected.iter().collect::<Vec<_>>());
    let reasons: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons, [&Value::Null, &Value::Null, &Value::Null, &json!("stop")]);
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert!(chunk["id"].as_str().unwrap().starts_with("chatcmpl-"));
        assert!(chunk["created"].as_u64().unwrap() > 1_600_000_000);
        assert!(chunk["system_fingerprint"].as_str().unwrap().starts_with("fp_"));
        assert!(chunk.get("usage").is_none(), "nobody asked for it");
    }
    assert!(answer.header("x-session-id").is_some());
    assert!(answer.header("x-queue-ms").unwrap().parse::<u64>().is_ok());
    assert!(answer.header("openai-processing-ms").is_some());
}

fn tokens() -> Usage {
    Usage { input: Some(11), output: Some(5), thought: Some(2), cached_read: Some(4), ..Usage::default() }
}

fn tokens_on_the_wire() -> Value {
    json!({
        "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2},
    })
}

#[tokio::test]
async fn usage_stands_in_a_last_chunk_without_choices() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("x"), done_with(tokens())]]);
    let server = TestServer::new(&agents).await;
    let answer = server.stream(&streaming(json!({"stream_options": {"include_usage": true}}))).await.whole().await;
    let chunks = answer.chunks();
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &tokens_on_the_wire()));
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(server.ask(&chat(&[("user", "hi")])).await.json()["usage"], tokens_on_the_wire());
}

#[tokio::test]
async fn an_agent_that_counts_nothing_is_counted_for() {
    let agents = ScriptedAgents::new(|_| vec![vec![thought("hm"), text("日本 "), text("nine"), done()]]);
    let server = TestServer::new(&agents).await;
    let answer = server.ask(&chat(&[("user", "what is this?")])).await;
    let counted = json!({
        "prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 1},
    });
    assert_eq!(answer.json()["usage"], counted);
}

#[tokio::test]
async fn scripts_of_the_world_come_through_unharmed_however_they_are_cut() {
    let pieces = ["日本", "語 ", "👩‍", "👩‍👧 ", "مرحبا ", "\u{202e}x\u{202c}", "\"\\\n\r\t\u{1}", "é"];
    let agents = ScriptedAgents::new(move |_| {
        let mut batches: Vec<_> = pieces.iter().map(|piece| vec![text(piece)]).collect();
        // Halves of one character, in two updates.
        batches.push(vec![escaped("\\ud83d")]);
        batches.push(vec![escaped("\\ude00!")]);
        batches.push(vec![done()]);
        batches
    });
    let server = TestServer::new(&agents).await;
    let expected = pieces.concat() + "😀!";
    assert_eq!(server.ask(&chat(&[("user", "hi")])).await.text(), expected);
    assert_eq!(server.stream(&streaming(json!({}))).await.whole().await.streamed(0), expected);
    assert_eq!(server.stream(&streaming(json!({"max_tokens": 1000}))).await.whole().await.streamed(0), expected);
}

#[tokio::test]
async fn several_answers_come_from_sessions_of_their_own() {
    let agents = ScriptedAgents::new(|scene| vec![vec![text(&format!("from {}", scene.agent)), done_with(tokens())]]);
    let server = TestServer::new(&agents).await;
    let answer = server.ask(&chat_with(&[("user", "hi")], json!({"n": 3}))).await;
    let body = answer.json();
    let mut texts: Vec<_> =
        body["choices"].as_array().unwrap().iter().map(|choice| choice["message"]["content"].clone()).collect();
    texts.sort_by_key(Value::to_string);
    assert_eq!(texts, ["from 0", "from 1", "from 2"]);
    let indices: Vec<_> = body["choices"].as_array().unwrap().iter().map(|choice| choice["index"].clone()).collect();
    assert_eq!(indices, [0, 1, 2]);
    assert_eq!(body["usage"]["completion_tokens"], 21);
    assert_eq!(body["usage"]["prompt_tokens"], 11, "it is the same prompt");
    assert!(!answer.header("x-session-id").unwrap().contains(','), "a client can go on with one");

    let answer = server.stream(&streaming(json!({"n": 3}))).await.whole().await;
    for index in 0..3 {
        assert!(answer.streamed(index).starts_with("from "), "{}", answer.body);
    }
    assert_eq!(agents.opened(), 6);
}

#[tokio::test]
async fn the_agents_own_tools_are_no_tool_calls() {
    let call = || {
        let mut call = ToolCall::update(ToolCallId::new("1"));
        call.title = Some("read `a.txt`".into());
        call.status = Some(ToolStatus::Completed);
        call.content = Some(vec![ToolContent::Content(Content::text("one\ntwo"))]);
        update(Event::ToolCall(Box::new(call)))
    };
    let agents = ScriptedAgents::new(move |scene| match scene.prompt.as_str() {
        "again" => vec![vec![text("I look again."), call(), text("The same."), done()]],
        _ => vec![vec![call(), text("It says one, two."), done()]],
    });
    let hidden = TestServer::new(&agents).await;
    let answer = hidden.ask(&chat(&[("user", "hi")])).await;
    assert_eq!(answer.text(), "It says one, two.");
    assert!(!answer.body.contains("tool_calls"));

    let mut setting = ServerSetup::default();
    setting.exchange.show_agent_tools = true;
    let shown = TestServer::with(&[("played", &agents)], setting).await;
    let answer = shown.ask(&chat(&[("user", "hi")])).await;
    assert_eq!(answer.text(), "### read `a.txt`\n\n> one\n> two\n\nIt says one, two.");
    // A heading in the middle of an answer begins a line.
    let said = ("assistant", answer.text());
    let answer = shown.ask(&chat(&[("user", "hi"), (said.0, &said.1), ("user", "again")])).await;
    assert_eq!(answer.text(), "I look again.\n\n### read `a.txt`\n\n> one\n> two\n\nThe same.");
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_lives() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let mut setting = ServerSetup::default();
    setting.config.first_sign = Duration::from_millis(20);
    setting.config.keep_alive = Duration::from_millis(20);
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let request = streaming(json!({}));
    // The agent says nothing for longer than a status may wait; then the stream begins without it.
    let mut stream = server.stream(&request).await;
    assert_eq!(stream.status, 200);
    stream.until(": keep-alive\n\n").await;
    agents.does(0, [text("late"), done()]).await;
    assert_eq!(stream.whole().await.streamed(0), "late");
}
