//! What an evaluation leaves behind: messages, tools, tokens, events for an observer.

use std::sync::{Arc, Mutex};

use gembridge_sdk::{ToolStatus, TurnEvent};
use serde_json::{Value, json};

use crate::fixture::Fake;

#[tokio::test]
async fn chunks_are_merged_and_every_tool_has_one_result() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let script = "think a ;; think b ;; say c ;; say d ;; tool read Look => found ;; tool-fail execute Run ;; say e";
    let reply = adapter.evaluate(script).await.unwrap();
    let messages = serde_json::to_value(&reply.transcript).unwrap();
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"], "{messages:#}");
    assert_eq!(messages[0]["content"], script);
    assert_eq!(messages[1]["content"][0], json!({"type": "thinking", "thinking": "ab"}));
    assert_eq!(messages[1]["content"][1], json!({"type": "text", "text": "cd"}));
    assert_eq!(messages[1]["content"][2]["type"], "tool_use");
    let results: Vec<&Value> = [2, 4].map(|place: usize| &messages[place]["content"][0]).to_vec();
    assert_eq!(results[0]["tool_use_id"], messages[1]["content"][2]["id"]);
    assert_eq!(results[0]["is_error"], Value::Bool(false));
    assert_eq!(results[1]["is_error"], Value::Bool(true));
    assert_eq!(
        reply.tools.iter().map(|tool| tool.status).collect::<Vec<_>>(),
        [ToolStatus::Completed, ToolStatus::Failed]
    );
    adapter.close().await;
}

#[tokio::test]
async fn the_transcript_of_a_session_has_each_prompt_once() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    for said in ["one", "two"] {
        let reply = session.evaluate(format!("say {said}")).await.unwrap();
        let texts: Vec<String> = reply.transcript.iter().map(gembridge_sdk::UnifiedMessage::text).collect();
        assert_eq!(texts, [format!("say {said}"), said.to_owned()]);
    }
    adapter.close().await;
}

#[tokio::test]
async fn every_kind_of_update_and_content_is_tolerated() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let script = "unknown-update ;; unknown-content ;; content image ;; content audio ;; content resource_link ;; \
                  content resource ;; commands ;; title T ;; plan A | B ;; mode default ;; config x y ;; \
                  unknown-stop ;; say done";
    let mut stream = adapter.stream(script).await.unwrap();
    let mut others = Vec::new();
    while let Some(event) = stream.next().await {
        if let TurnEvent::Other(kind) = event {
            others.push(kind);
        }
    }
    let reply = stream.finish().await.unwrap();
    assert!(reply.text.ends_with("done"), "{}", reply.text);
    assert_eq!(reply.plan.len(), 2);
    assert!(!others.is_empty(), "an unknown kind is told by its name");
    adapter.close().await;
}

#[tokio::test]
async fn content_may_be_a_bare_string_a_list_or_nothing() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    for (content, text) in [
        (r#""bare \"quoted\"""#, "bare \"quoted\""),
        (r#"{"type": "text", "text": "block"}"#, "block"),
        (r#"[{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]"#, "one two"),
        (r#"["one ", {"type": "text", "text": "two"}, {"type": "hologram", "depth": 3}]"#, "one two"),
        ("null", ""),
        ("[]", ""),
    ] {
        let reply = adapter.evaluate(format!("content {content} ;; say .")).await.unwrap();
        assert_eq!(reply.text, format!("{text}."), "{content}");
    }
    // What holds no text is no word: the turn counts as one that said nothing.
    let error = adapter.evaluate("content null").await.unwrap_err();
    assert_eq!(error.kind, gembridge_sdk::ErrorKind::EmptyResponse, "{error}");
    adapter.close().await;
}

#[tokio::test]
async fn noise_between_messages_is_passed_over() {
    for mode in ["banner", "garbage", "badutf8", "batch", "dup-reply", "unknown-id"] {
        let fake = Fake::new();
        let adapter = fake.adapter(&["--mode", mode]).build().unwrap();
        let reply = adapter.evaluate("say through").await.unwrap();
        assert!(reply.text.contains("through"), "{mode}: {}", reply.text);
        adapter.close().await;
    }
}

#[tokio::test]
async fn a_line_of_nine_megabytes_comes_through_and_one_of_eleven_ends_the_turn() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--mode", "hugeline:9M"]).build().unwrap();
    assert!(adapter.evaluate("say x").await.unwrap().text.len() >= 9 << 20);
    adapter.close().await;
    let adapter = fake.adapter(&["--mode", "hugeline:11M"]).build().unwrap();
    let error = adapter.evaluate("say x").await.unwrap_err();
    assert_eq!(error.phase, gembridge_sdk::Phase::Request, "{error}");
    adapter.close().await;
}

#[tokio::test]
async fn tokens_come_from_wherever_the_agent_reports_them() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    for script in ["usage", "usage-quota", "usage-chunk"] {
        let usage = adapter.evaluate(format!("say x ;; {script}")).await.unwrap().usage;
        assert!(usage.is_some_and(|usage| usage.input.is_some() || usage.output.is_some()), "{script}: {usage:?}");
    }
    assert_eq!(adapter.evaluate("say x").await.unwrap().usage, None);
    let cached = adapter.evaluate("say x ;; usage").await.unwrap().usage.unwrap();
    assert!(cached.cached.is_some() && cached.thought.is_some(), "{cached:?}");
    adapter.close().await;
}

#[tokio::test]
async fn an_observer_hears_every_event_with_where_it_happened() {
    let fake = Fake::new();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heard);
    let adapter = fake
        .adapter(&[])
        .observer(move |observed| {
            if let TurnEvent::Text(text) = observed.event {
                kept.lock().unwrap().push(format!("{} {} {text}", observed.adapter, observed.session));
            }
        })
        .build()
        .unwrap();
    let reply = adapter.evaluate("say heard").await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [format!("fake_acp {} heard", reply.session)]);
    adapter.close().await;
}

#[tokio::test]
async fn thoughts_stand_before_the_text_for_whoever_wants_both() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).allow_empty_answers().build().unwrap();
    let both = adapter.evaluate("think first ;; say then").await.unwrap();
    assert_eq!(both.text_with_thoughts().as_deref(), Some("firstthen"));
    let silent = adapter.evaluate("think only").await.unwrap();
    assert_eq!(silent.text_with_thoughts(), None, "thoughts alone are no answer");
    adapter.close().await;
}
