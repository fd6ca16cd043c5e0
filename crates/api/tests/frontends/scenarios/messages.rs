//! The Messages API, whole and as a stream.

use std::sync::Arc;

use gembridge_api::dialect::DialectConfig;
use serde_json::{Value, json};

use super::api::{Answered, Ask, Called, Failed, HttpApi, Said};
use super::gateway::Gateway;
use crate::openai::support::http::{Stream, post};
use crate::openai::support::server::TestServer;

pub struct Messages<const STREAM: bool>(TestServer);

impl<const STREAM: bool> HttpApi for Messages<STREAM> {
    async fn serve(gateway: &Gateway) -> Self {
        let (sessions, exchanges) = (Arc::clone(&gateway.sessions), Arc::clone(&gateway.exchanges));
        Self(TestServer::over(sessions, exchanges, DialectConfig::default()).await)
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let call = |called: &Called| {
            let input: Value = serde_json::from_str(&called.arguments).expect("JSON");
            json!({ "type": "tool_use", "id": called.id, "name": called.tool, "input": input })
        };
        let message = |said: &Said| match said {
            Said::User(text) => json!({ "role": "user", "content": text }),
            Said::Image(data) => {
                let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
                json!({ "role": "user", "content": [{ "type": "image", "source": source }] })
            }
            Said::Assistant(text) => json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] }),
            Said::Called(calls) => {
                json!({ "role": "assistant", "content": calls.iter().map(call).collect::<Vec<_>>() })
            }
            Said::Result { id, text } => {
                json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": text }] })
            }
        };
        let messages: Vec<Value> = ask.messages.iter().map(message).collect();
        let mut request = json!({
            "model": "played", "max_tokens": 1000, "messages": messages, "stream": STREAM,
            "thinking": { "type": "adaptive" },
        });
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "name": name, "input_schema": { "type": "object" } });
            request["tools"] = ask.tools.iter().map(tool).collect();
        }
        if ask.json {
            request["output_config"] = json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } });
        }
        post(self.0.address, "/v1/messages", &[], request.to_string()).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered::default();
        let events: Vec<Value> = match status {
            200 if STREAM => {
                let events = body.split("\n\n").filter_map(|event| event.split_once("data: "));
                events.map(|(_, data)| serde_json::from_str(data).expect("JSON")).collect()
            }
            _ => vec![serde_json::from_str(body).expect("JSON")],
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for event in &events {
            if let Some(message) = event["error"]["message"].as_str() {
                answered.failed = Some(Failed::new(status, message));
            }
            answered.text += &text(&event["delta"]["text"]);
            answered.thoughts += &text(&event["delta"]["thinking"]);
            if let Some(arguments) = event["delta"]["partial_json"].as_str() {
                arguments.clone_into(&mut answered.calls.last_mut().expect("a call is open").arguments);
            }
            let whole = event["content"].as_array().into_iter().flatten();
            for block in whole.chain(event.get("content_block")) {
                answered.text += &text(&block["text"]);
                answered.thoughts += &text(&block["thinking"]);
                if block["type"] == "tool_use" {
                    let (id, tool) = (text(&block["id"]), text(&block["name"]));
                    answered.calls.push(Called { id, tool, arguments: block["input"].to_string() });
                }
            }
            let reason = if STREAM { &event["delta"]["stop_reason"] } else { &event["stop_reason"] };
            answered.finish += match reason.as_str() {
                Some("end_turn") => "stop",
                Some("tool_use") => "tool_calls",
                Some(other) => other,
                None => "",
            };
        }
        answered
    }
}
