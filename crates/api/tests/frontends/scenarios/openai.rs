//! OpenAI's chat completions, whole and as a stream.

use std::sync::Arc;

use gembridge_api::dialect::DialectConfig;
use serde_json::{Value, json};

use super::api::{Answered, Ask, Called, Failed, HttpApi, Said};
use super::gateway::Gateway;
use crate::openai::support::http::{Stream, post};
use crate::openai::support::server::TestServer;

pub struct OpenAi<const STREAM: bool>(TestServer);

impl<const STREAM: bool> HttpApi for OpenAi<STREAM> {
    async fn serve(gateway: &Gateway) -> Self {
        let (sessions, exchanges) = (Arc::clone(&gateway.sessions), Arc::clone(&gateway.exchanges));
        Self(TestServer::over(sessions, exchanges, DialectConfig::default()).await)
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let call = |called: &Called| {
            let function = json!({ "name": called.tool, "arguments": called.arguments });
            json!({ "id": called.id, "type": "function", "function": function })
        };
        let message = |said: &Said| match said {
            Said::User(text) => json!({ "role": "user", "content": text }),
            Said::Image(data) => {
                let url = format!("data:image/png;base64,{data}");
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] })
            }
            Said::Assistant(text) => json!({ "role": "assistant", "content": text }),
            Said::Called(calls) => {
                json!({ "role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>() })
            }
            Said::Result { id, text } => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        };
        let messages: Vec<Value> = ask.messages.iter().map(message).collect();
        let mut request = json!({ "model": "played", "messages": messages, "stream": STREAM });
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "type": "function", "function": { "name": name } });
            request["tools"] = ask.tools.iter().map(tool).collect();
        }
        if ask.json {
            request["response_format"] = json!({ "type": "json_object" });
        }
        post(self.0.address, "/v1/chat/completions", &[], request.to_string()).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered::default();
        let events: Vec<Value> = match status {
            200 if STREAM => {
                let events = body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
                events.filter_map(|event| serde_json::from_str(event).ok()).collect()
            }
            _ => vec![serde_json::from_str(body).expect("JSON")],
        };
        for event in &events {
            if let Some(message) = event["error"]["message"].as_str() {
                answered.failed = Some(Failed::new(status, message));
            }
            let choice = &event["choices"][0];
            let message = if STREAM { &choice["delta"] } else { &choice["message"] };
            answered.text += message["content"].as_str().unwrap_or_default();
            answered.thoughts += message["reasoning_content"].as_str().unwrap_or_default();
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let field = |value: &Value| value.as_str().expect("a string").to_owned();
                let (tool, arguments) = (field(&call["function"]["name"]), field(&call["function"]["arguments"]));
                answered.calls.push(Called { id: field(&call["id"]), tool, arguments });
            }
            answered.finish += choice["finish_reason"].as_str().unwrap_or_default();
        }
        answered
    }
}
