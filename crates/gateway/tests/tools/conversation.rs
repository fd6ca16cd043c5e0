//! A client with tools: it asks, is told what to call, and gives the results.

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, post};
use crate::support::http::Answer;

pub struct Conversation<'a> {
    gateway: &'a Gateway,
    key: String,
    tools: Value,
    pub model: &'static str,
    pub messages: Vec<Value>,
    /// The tokens of the prompt of each answer that came.
    pub prompt_tokens: Vec<u64>,
}

/// A call of a tool, as the client reads it.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

impl<'a> Conversation<'a> {
    pub fn new(gateway: &'a Gateway, tools: &[&str], prompt: &str) -> Self {
        Self::with_key(gateway, &gateway.key, tools, prompt)
    }

    pub fn with_key(gateway: &'a Gateway, key: &str, tools: &[&str], prompt: &str) -> Self {
        let messages = vec![json!({"role": "user", "content": prompt})];
        let tools = tools.iter().map(|name| tool(name)).collect();
        Self { gateway, key: key.to_owned(), tools, model: "default", messages, prompt_tokens: Vec::new() }
    }

    /// A client that comes with what was said before.
    pub fn again(gateway: &'a Gateway, messages: Vec<Value>) -> Self {
        Self { messages, ..Self::new(gateway, &["pick"], "") }
    }

    /// Sends the conversation as it stands.
    pub fn answer(&self) -> Answer {
        let mut connection = self.gateway.connect();
        let body = json!({"model": self.model, "messages": self.messages, "tools": self.tools});
        post(&mut connection, &self.key, &body, &[]);
        connection.answer().unwrap()
    }

    /// Sends the conversation, and is told to call these.
    #[track_caller]
    pub fn calls(&mut self) -> Vec<Call> {
        let choice = self.choice();
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        let calls = choice["message"]["tool_calls"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let call = |call: &Value| Call {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            arguments: serde_json::from_str(&text(&call["function"]["arguments"])).unwrap(),
        };
        calls.map(call).collect()
    }

    /// Sends the conversation, and reads the end of the answer.
    #[track_caller]
    pub fn text(&mut self) -> String {
        let choice = self.choice();
        assert_eq!(choice["finish_reason"], "stop", "{choice}");
        choice["message"]["content"].as_str().unwrap().to_owned()
    }

    pub fn give(&mut self, call: &Call, content: impl Into<Value>) {
        self.messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content.into()}));
    }

    pub fn say(&mut self, prompt: &str) {
        self.messages.push(json!({"role": "user", "content": prompt}));
    }

    #[track_caller]
    fn choice(&mut self) -> Value {
        let answer = self.answer();
        assert_eq!(answer.status, 200, "{}", answer.body);
        let choice = answer.json()["choices"][0].clone();
        self.prompt_tokens.extend(answer.json()["usage"]["prompt_tokens"].as_u64());
        self.messages.push(choice["message"].clone());
        choice
    }
}

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    json!({"type": "function", "function": {"name": name, "description": "a tool of the tests", "parameters": schema}})
}
