//! The fake Gemini API over bare HTTP.

use std::{net::SocketAddr, time::Duration};

use gembridge_testkit::gemini_api::FakeGemini;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    /// The objects of an event stream.
    fn events(&self) -> Vec<Value> {
        let data = self.body.split("\r\n").filter_map(|line| line.strip_prefix("data: "));
        data.map(|json| serde_json::from_str(json).unwrap()).collect()
    }

    fn text(&self) -> String {
        let parts =
            self.events().into_iter().map(|event| event["candidates"][0]["content"]["parts"][0]["text"].clone());
        parts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }
}

async fn send(api: &FakeGemini, head: &str, body: &str) -> TcpStream {
    let address: SocketAddr = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn ask(api: &FakeGemini, head: &str, body: &Value) -> Answer {
    let mut stream = send(api, head, &body.to_string()).await;
    let mut bytes = Vec::new();
    // A cut connection may end in an error: what came before counts.
    stream.read_to_end(&mut bytes).await.ok();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    Answer { status, body: body.to_owned() }
}

fn user(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

fn scripted(calls: &Value) -> Value {
    user(&format!("SCRIPT:{}:END", json!({"calls": calls})))
}

const STREAM: &str = "POST /v1beta/models/m:streamGenerateContent?alt=sse";
const WHOLE: &str = "POST /v1beta/models/m:generateContent";

#[tokio::test]
async fn a_plain_prompt_is_echoed_with_its_tokens() {
    let api = FakeGemini::start().await.unwrap();
    let answer = ask(&api, STREAM, &user("hello")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "You said: hello"));
    let events = answer.events();
    assert_eq!(events.len(), 2);
    assert!(events[0]["candidates"][0].get("finishReason").is_none());
    assert_eq!(events[1]["candidates"][0]["finishReason"], "STOP");
    assert_eq!(events[1]["usageMetadata"]["promptTokenCount"], 1000);
}

#[tokio::test]
async fn steps_decide_the_stream() {
    let api = FakeGemini::start().await.unwrap();
    let call = json!({"name": "f", "args": {"a": 1}, "id": "fc1"});
    let steps = json!([[{"thought": "hm"}, {"call": call}, {"delay_ms": 1}, {"repeat": {"text": "x", "times": 3}}, {"finish": "MAX_TOKENS"}]]);
    let events = ask(&api, STREAM, &scripted(&steps)).await.events();
    let parts: Vec<&Value> = events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(parts.len(), 5);
    assert_eq!(*parts[0], json!({"text": "hm", "thought": true}));
    assert_eq!(*parts[1], json!({"functionCall": call}));
    assert_eq!(*parts[4], json!({"text": "x"}));
    assert_eq!(events[4]["candidates"][0]["finishReason"], "MAX_TOKENS");

    let ended = ask(&api, STREAM, &scripted(&json!([[{"text": "a"}, {"end": true}]]))).await;
    assert!(ended.events()[0]["candidates"][0].get("finishReason").is_none());
    let blocked = ask(&api, STREAM, &scripted(&json!([[{"block": "SAFETY"}]]))).await;
    assert_eq!(blocked.events()[0]["promptFeedback"]["blockReason"], "SAFETY");
    let cut = ask(&api, STREAM, &scripted(&json!([[{"text": "partial"}, {"cut": true}]]))).await;
    assert!(cut.body.contains("partial") && !cut.body.ends_with("0\r\n\r\n"), "{}", cut.body);
}

#[tokio::test]
async fn failures_come_with_their_status_and_retries_see_the_next_attempt() {
    let api = FakeGemini::start().await.unwrap();
    let body = json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}});
    let request =
        scripted(&json!([{"attempts": [[{"status": 500}], [{"status": 429}, {"body": body}], [{"text": "at last"}]]}]));
    let statuses = [ask(&api, STREAM, &request).await, ask(&api, STREAM, &request).await];
    assert_eq!([statuses[0].status, statuses[1].status], [500, 429]);
    assert_eq!(serde_json::from_str::<Value>(&statuses[1].body).unwrap(), body);
    for _ in 0..2 {
        assert_eq!(ask(&api, STREAM, &request).await.text(), "at last");
    }
    let broken = ask(&api, STREAM, &user("SCRIPT:{nonsense}:END")).await;
    assert_eq!(broken.status, 400);
    assert!(broken.body.contains("cannot be read"), "{}", broken.body);
    assert_eq!(ask(&api, "GET /v1beta/nothing", &json!(null)).await.status, 404);
}

#[tokio::test]
async fn a_question_with_a_schema_gets_an_example_of_it() {
    let api = FakeGemini::start().await.unwrap();
    let mut request = user("who speaks next?");
    request["generationConfig"]["responseJsonSchema"] = json!({"type": "object", "properties": {
        "reasoning": {"type": "string"}, "next_speaker": {"type": "string", "enum": ["user", "model"]}, "score": {"type": "INTEGER"}}});
    let answer: Value = serde_json::from_str(&ask(&api, WHOLE, &request).await.body).unwrap();
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    let example: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&example["next_speaker"], &example["score"]), (&json!("user"), &json!(1)));
    let counted = ask(&api, "POST /v1beta/models/m:countTokens", &user("hello")).await;
    assert!(counted.body.contains("totalTokens"), "{}", counted.body);
}

#[tokio::test]
async fn requests_are_remembered_until_forgotten() {
    let api = FakeGemini::start().await.unwrap();
    let request = user("remember me");
    ask(&api, STREAM, &request).await;
    let recorded = api.wait_for(1).await;
    assert_eq!(recorded[0].body, request);
    assert_eq!(recorded[0].body_bytes, request.to_string().len());
    assert_eq!(recorded[0].path, "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(recorded[0].header("Host"), Some("x"));
    let listed: Value = serde_json::from_str(&ask(&api, "GET /__requests", &json!(null)).await.body).unwrap();
    assert_eq!(listed[0]["body"], request);
    ask(&api, "DELETE /__requests", &json!(null)).await;
    assert!(api.requests().is_empty());
}

#[tokio::test]
async fn a_stalled_stream_stays_open_and_dropping_the_api_ends_it() {
    let api = FakeGemini::start().await.unwrap();
    let mut stream =
        send(&api, STREAM, &scripted(&json!([[{"text": "first"}, {"delay_ms": 1}, {"stall": true}]])).to_string())
            .await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("first") {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
    }
    drop(api);
    let end = timeout(Duration::from_mins(1), stream.read_to_end(&mut bytes)).await;
    assert!(end.is_ok(), "the connection outlived the API");
}
