//! Ollama's chat, whole and as a stream.

use std::sync::Arc;

use gembridge_api::dialect::DialectConfig;
use serde_json::{Value, json};

use super::api::{Answered, Ask, Called, Failed, HttpApi, Said};
use super::gateway::Gateway;
use crate::openai::support::http::{Stream, post};
use crate::openai::support::server::TestServer;

pub struct Ollama<const STREAM: bool>(TestServer);

impl<const STREAM: bool> HttpApi for Ollama<STREAM> {
    async fn serve(gateway: &Gateway) -> Self {
        let (sessions, exchanges) = (Arc::clone(&gateway.sessions), Arc::clone(&gateway.exchanges));
        Self(TestServer::over(sessions, exchanges, DialectConfig::default()).await)
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let call = |called: &Called| {
            let arguments: Value = serde_json::from_str(&called.arguments).expect("JSON");
            json!({ "id": called.id, "function": { "name": called.tool, "arguments": arguments } })
        };
        let message = |said: &Said| match said {
            Said::User(text) => json!({ "role": "user", "content": text }),
            Said::Image(data) => json!({ "role": "user", "content": "", "images": [data] }),
            Said::Assistant(text) => json!({ "role": "assistant", "content": text }),
            Said::Called(calls) => {
                json!({ "role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>() })
            }
            Said::Result { id, text } => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        };
        let messages: Vec<Value> = ask.messages.iter().map(message).collect();
        let mut request = json!({ "model": "played:latest", "messages": messages, "stream": STREAM });
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "type": "function", "function": { "name": name } });
            request["tools"] = ask.tools.iter().map(tool).collect();
        }
        if ask.json {
            request["format"] = json!("json");
        }
        post(self.0.address, "/api/chat", &[], request.to_string()).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered::default();
        let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(STREAM || lines.len() == 1, "{body}");
        for line in &lines {
            if let Some(message) = line["error"].as_str() {
                answered.failed = Some(Failed::new(status, message));
            }
            let message = &line["message"];
            answered.text += message["content"].as_str().unwrap_or_default();
            answered.thoughts += message["thinking"].as_str().unwrap_or_default();
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let field = |value: &Value| value.as_str().expect("a string").to_owned();
                let arguments = call["function"]["arguments"].to_string();
                answered.calls.push(Called {
                    id: field(&call["id"]),
                    tool: field(&call["function"]["name"]),
                    arguments,
                });
            }
            answered.finish += line["done_reason"].as_str().unwrap_or_default();
        }
        if !answered.calls.is_empty() {
            // There is no reason of its own for calls.
            assert_eq!(answered.finish, "stop");
            "tool_calls".clone_into(&mut answered.finish);
        }
        answered
    }
}
