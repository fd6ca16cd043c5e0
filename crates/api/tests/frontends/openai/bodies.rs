//! What a request may hold, and what becomes of what it may not.

use gembridge_core::model::{Content, PromptAbilities};
use serde_json::{Value, json};

use crate::openai::support::http::{Answer, post};
use crate::openai::support::server::{TestServer, chat, chat_with};
use crate::openai::support::{done, text};
use gembridge_core::test_support::ScriptedAgents;

const EVERYTHING: PromptAbilities = PromptAbilities { image: true, audio: true, embedded: true };

fn polite() -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(|_| vec![vec![text("ok"), done()]])
}

async fn send(server: &TestServer, body: impl Into<String>) -> Answer {
    post(server.address, "/v1/chat/completions", &[], body.into()).await.whole().await
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let server = TestServer::new(&polite()).await;
    for (fields, param) in [
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"tool_choice": "sometimes"}), "tool_choice"),
        (json!({"tool_choice": {"type": "function"}}), "tool_choice"),
        (json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}), "tool_choice.function.name"),
        (json!({"response_format": {"type": "yaml"}}), "response_format.type"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema"),
        // Nothing is there that could offer tools or check forms.
        (json!({"tools": [{"type": "function", "function": {"name": "f"}}]}), "tools"),
        (json!({"response_format": {"type": "json_object"}}), "response_format"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"n": 0}), "n"),
        (json!({"n": 9}), "n"),
        (json!({"stop": [""]}), "stop"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_completion_tokens": 0}), "max_completion_tokens"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": [{"role": "narrator", "content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}), "messages[0].content[0].type"),
        (json!({"messages": [{"role": "user", "content": ""}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": " \n"}]}),
            "messages[1].content",
        ),
        (json!({"messages": [{"role": "user", "content": []}]}), "messages[0].content"),
        (json!({"messages": [{"role": "user", "content": 5}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}),
            "messages[0].content[0].text",
        ),
        (json!({"messages": [{"role": 7, "content": "x"}]}), "messages[0].role"),
        (json!({"messages": "hello"}), "messages"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"n": "two"}), "n"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"logit_bias": []}), "logit_bias"),
        (json!({"user": 5}), "user"),
        (json!({"service_tier": 5}), "service_tier"),
        (
            json!({"messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "2", "type": "function"},
                ]},
            ]}),
            "messages[1].tool_calls[1]",
        ),
        (json!({"store": "yes"}), "store"),
        (json!({"model": 5}), "model"),
        (json!({"model": null}), "model"),
        (json!({"model": "--yolo"}), "model"),
        (json!({"model": "a\nb"}), "model"),
    ] {
        let answer = server.ask(&chat_with(&[("user", "hi")], fields.clone())).await;
        assert_eq!(answer.error(), (400, "invalid_request_error".into(), param.into()), "{fields}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_error_does_not_send_a_large_body_back() {
    let server = TestServer::new(&polite()).await;
    let image = "x".repeat(1_000_000);
    let parts = json!([{"type": "image_url", "image_url": image}]);
    let answer = server.ask(&json!({"model": "played", "messages": [{"role": "user", "content": parts}]})).await;
    assert_eq!(answer.error().0, 400);
    assert!(answer.body.len() < 1_000, "{} bytes", answer.body.len());
    assert!(answer.body.contains("expected an object at line 1 column"), "{}", answer.body);
}

#[tokio::test]
async fn what_has_no_effect_is_reported_back() {
    let server = TestServer::new(&polite()).await;
    let answer = server
        .ask(&json!({
            "model": "played",
            "messages": [{"role": "user", "content": "hi", "shiny": 1, "name": "ann", "refusal": null}],
            "temperature": 0.5, "top_p": 1, "seed": null, "reasoning_effort": "low", "brand new": {"a": [1]},
            "user": "u", "metadata": {"k": "v"}, "store": false, "prompt_cache_key": "k", "service_tier": "auto",
            "tool_choice": "auto", "tools": [], "logprobs": false, "response_format": {"type": "text"},
            "max_tokens": 10, "max_completion_tokens": 10, "stream": false, "nothing": null,
        }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let ignored = "temperature, top_p, reasoning_effort, max_tokens, brand new, messages.shiny, messages.name";
    assert_eq!(answer.header("x-gembridge-ignored"), Some(ignored));
    assert_eq!(server.ask(&chat(&[("user", "hi")])).await.header("x-gembridge-ignored"), None);
    for (tier, ignored) in [("default", None), ("flex", Some("service_tier"))] {
        let answer = server.ask(&chat_with(&[("user", "hi")], json!({"service_tier": tier}))).await;
        assert_eq!(answer.header("x-gembridge-ignored"), ignored, "{tier}");
    }
}

#[tokio::test]
async fn a_strangers_field_name_cannot_break_the_header() {
    let server = TestServer::new(&polite()).await;
    let answer = server.ask(&chat_with(&[("user", "hi")], json!({"a\r\nset-cookie: x": 1, "é": 2}))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-gembridge-ignored"), Some("a\\r\\nset-cookie: x, \\u{e9}"));
    assert_eq!(answer.header("set-cookie"), None);
}

#[tokio::test]
async fn s26_bodies_out_of_bounds_are_refused() {
    let server = TestServer::new(&polite()).await;
    let deep = |depth: usize| {
        format!(
            r#"{{"model":"played","messages":[{{"role":"user","content":"x"}}],"x":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    assert_eq!(send(&server, deep(100)).await.status, 200);
    assert_eq!(send(&server, deep(128)).await.status, 400);
    assert_eq!(send(&server, deep(100_000)).await.status, 400);

    let messages = |count: usize| {
        let message = r#"{"role":"user","content":"x"}"#;
        format!(r#"{{"model":"played","messages":[{}]}}"#, vec![message; count].join(","))
    };
    assert_eq!(send(&server, messages(10_000)).await.status, 200);
    assert_eq!(send(&server, messages(10_001)).await.status, 400);

    let parts = |count: usize| {
        let part = r#"{"type":"text","text":"x"}"#;
        let parts = vec![part; count].join(",");
        format!(r#"{{"model":"played","messages":[{{"role":"user","content":[{parts}]}}]}}"#)
    };
    assert_eq!(send(&server, parts(64)).await.status, 200);
    assert_eq!(send(&server, parts(65)).await.status, 400);

    let tools = format!(r#"{{"model":"played","messages":[],"tools":[{}]}}"#, vec!["{}"; 257].join(","));
    assert!(send(&server, tools).await.body.contains("more than 256"));

    for twice in [
        r#"{"model":"played","model":"played","messages":[{"role":"user","content":"x"}]}"#,
        r#"{"model":"played","messages":[{"role":"user","role":"user","content":"x"}]}"#,
        r#"{"model":"played","messages":[{"role":"user","content":"x"}],"odd":1,"odd":1}"#,
        r#"{"model":"played","messages":[{"role":"user","content":"x"}],"odd":{"a":1,"b":2,"c":3,"d":4,"e":5,"e":6}}"#,
    ] {
        let answer = send(&server, twice).await;
        assert_eq!(answer.status, 400, "{twice}");
        assert!(answer.body.contains("stands twice"), "{}", answer.body);
    }
    for broken in ["", "{", "[]", "null", "\u{feff}{}", r#"{"model":1}"#, r#"{"messages":{}}"#] {
        assert_eq!(send(&server, broken).await.status, 400, "{broken}");
    }
}

#[tokio::test]
async fn parts_become_blocks_of_the_prompt() {
    let agents = polite().with_abilities(EVERYTHING);
    let server = TestServer::new(&agents).await;
    let request = json!({"model": "played", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "DATA:image/PNG;charset=x;BASE64,iVBORw0="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"filename": "../a b.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
    ]}]});
    assert_eq!(server.ask(&request).await.text(), "ok");
    let blocks = agents.last_blocks(0);
    assert_eq!(blocks[0], Content::text("look"));
    assert_eq!(blocks[1], Content::Image { mime: "image/png".into(), data: "iVBORw0=".into(), uri: None });
    assert_eq!(blocks[2], Content::Audio { mime: "audio/wav".into(), data: "UklGRg==".into() });
    let (uri, mime) = ("file:///a%20b.pdf".into(), Some("application/pdf".into()));
    let blob = Content::Blob { uri, mime, data: "JVBERi0=".into() };
    assert_eq!(blocks[3], blob);
}

#[tokio::test]
async fn a_folded_history_keeps_its_images_in_place() {
    let agents = polite().with_abilities(EVERYTHING);
    let server = TestServer::new(&agents).await;
    let request = json!({"model": "played", "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "what is"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
            {"type": "text", "text": "this"},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "1", "content": "a cat"},
        {"role": "user", "content": "well?"},
    ]});
    assert_eq!(server.ask(&request).await.text(), "ok");
    let image = Content::Image { mime: "image/png".into(), data: "iVBORw0=".into(), uri: None };
    let rest = "this\n\n[Assistant]\ncalled the tool look with {}\n\n[Tool]\nlook gave back:\na cat\n\n[User]\nwell?";
    assert_eq!(agents.last_blocks(0), [Content::text("[User]\nwhat is"), image, Content::text(rest)]);
}

#[tokio::test]
async fn calls_of_custom_tools_in_a_history_are_told_like_functions() {
    let agents = polite();
    let server = TestServer::new(&agents).await;
    let request = json!({"model": "played", "messages": [
        {"role": "user", "content": "draw"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "custom", "custom": {"name": "sketch", "input": "a cat"}},
        ]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "user", "content": "well?"},
    ]});
    assert_eq!(server.ask(&request).await.text(), "ok");
    let told = "[User]\ndraw\n\n[Assistant]\ncalled the tool sketch with a cat\n\n[Tool]\nsketch gave back:\ndone\n\n[User]\nwell?";
    assert_eq!(agents.prompts(0), [told]);
}

#[tokio::test]
async fn what_the_agent_cannot_take_is_refused_by_name() {
    let server = TestServer::new(&polite()).await;
    let parts = [
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}}),
        json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}}),
        json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}}),
    ];
    for part in parts {
        let request = json!({"model": "played", "messages": [{"role": "user", "content": [part]}]});
        let answer = server.ask(&request).await;
        assert_eq!(answer.error().2, "messages[0].content");
        assert!(answer.body.contains("agent `played` takes no"), "{}", answer.body);
    }
}

#[tokio::test]
async fn media_that_is_not_sound_is_refused_by_name() {
    let server = TestServer::new(&polite().with_abilities(EVERYTHING)).await;
    let cases: [(Value, &str); 7] = [
        (json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}), "image_url"),
        (json!({"type": "image_url", "image_url": {"url": "data:text/html;base64,AAAA"}}), "image_url"),
        (json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,a b"}}), "image_url"),
        (json!({"type": "image_url"}), "image_url"),
        (json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "flac"}}), "input_audio.format"),
        (json!({"type": "file", "file": {"file_id": "f-1"}}), "file"),
        (json!({"type": "text"}), "text"),
    ];
    for (part, field) in cases {
        let request = json!({"model": "played", "messages": [{"role": "user", "content": [part]}]});
        let answer = server.ask(&request).await;
        let expected = (400, "invalid_request_error".into(), format!("messages[0].content[0].{field}"));
        assert_eq!(answer.error(), expected, "{}", answer.body);
    }
}

#[tokio::test]
async fn both_addresses_answer() {
    let server = TestServer::new(&polite()).await;
    let body = chat(&[("user", "hi")]).to_string();
    assert_eq!(post(server.address, "/chat/completions", &[], body).await.whole().await.text(), "ok");
}
