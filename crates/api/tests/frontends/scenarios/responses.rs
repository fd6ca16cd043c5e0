//! OpenAI's responses, whole and as a stream of events.

use std::sync::Arc;

use gembridge_api::dialect::DialectConfig;
use serde_json::{Value, json};

use super::api::{Answered, Ask, Called, Failed, HttpApi, Said};
use super::gateway::Gateway;
use crate::openai::support::http::{Stream, post};
use crate::openai::support::server::TestServer;

pub struct ResponsesApi<const STREAM: bool>(TestServer);

impl<const STREAM: bool> HttpApi for ResponsesApi<STREAM> {
    async fn serve(gateway: &Gateway) -> Self {
        let (sessions, exchanges) = (Arc::clone(&gateway.sessions), Arc::clone(&gateway.exchanges));
        Self(TestServer::over(sessions, exchanges, DialectConfig::default()).await)
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let call = |called: &Called| json!({ "type": "function_call", "call_id": called.id, "name": called.tool, "arguments": called.arguments });
        let items = |said: &Said| match said {
            Said::User(text) => vec![json!({ "role": "user", "content": text })],
            Said::Image(data) => {
                let url = format!("data:image/png;base64,{data}");
                vec![json!({ "role": "user", "content": [{ "type": "input_image", "image_url": url }] })]
            }
            Said::Assistant(text) => {
                let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
                vec![json!({ "type": "message", "role": "assistant", "content": content })]
            }
            Said::Called(calls) => calls.iter().map(call).collect(),
            Said::Result { id, text } => {
                vec![json!({ "type": "function_call_output", "call_id": id, "output": text })]
            }
        };
        let input: Vec<Value> = ask.messages.iter().flat_map(items).collect();
        let mut request = json!({ "model": "played", "input": input, "stream": STREAM });
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "type": "function", "name": name });
            request["tools"] = ask.tools.iter().map(tool).collect();
        }
        if ask.json {
            request["text"] = json!({ "format": { "type": "json_object" } });
        }
        post(self.0.address, "/v1/responses", &[], request.to_string()).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        if status != 200 {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let told = body["error"]["message"].as_str().expect("a message");
            return Answered { failed: Some(Failed::new(status, told)), ..Answered::default() };
        }
        let response = if STREAM { last_response(body) } else { serde_json::from_str(body).expect("JSON") };
        let mut answered = Answered::default();
        for item in response["output"].as_array().expect("items") {
            let field = |name: &str| item[name].as_str().expect("a string").to_owned();
            match item["type"].as_str() {
                Some("message") => answered.text += item["content"][0]["text"].as_str().unwrap_or_default(),
                Some("reasoning") => answered.thoughts += item["summary"][0]["text"].as_str().unwrap_or_default(),
                Some("function_call") => {
                    let (id, tool, arguments) = (field("call_id"), field("name"), field("arguments"));
                    answered.calls.push(Called { id, tool, arguments });
                }
                other => panic!("{other:?}"),
            }
        }
        match response["status"].as_str().expect("a status") {
            "failed" => {
                let told = response["error"]["message"].as_str().expect("a message");
                answered.failed = Some(Failed::new(status, told));
            }
            "completed" => answered.finish += if answered.calls.is_empty() { "stop" } else { "tool_calls" },
            other => answered.finish += other,
        }
        answered
    }
}

/// The response in the last event.
fn last_response(stream: &str) -> Value {
    let events = stream.split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    let (_, last) = events.last().expect("an event");
    serde_json::from_str::<Value>(last).expect("JSON")["response"].clone()
}
