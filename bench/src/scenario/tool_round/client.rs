//! A client that is told what to call and gives results.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::{Connection, Target};

pub struct Client {
    target: Target,
    connection: Connection,
    session: Option<String>,
    messages: Vec<Value>,
}

impl Client {
    /// Asks, and is told the first calls.
    pub async fn begin(gateway: &Gateway, prompt: &str) -> anyhow::Result<Self> {
        let target = gateway.target.clone();
        let connection = target.connect().await?;
        let messages = vec![json!({"role": "user", "content": prompt})];
        let mut client = Self { target, connection, session: None, messages };
        client.ask().await?;
        Ok(client)
    }

    /// Says one thing more in its session, and is told the calls that it leads to.
    pub async fn say(&mut self, prompt: &str) -> anyhow::Result<()> {
        self.messages = vec![json!({"role": "user", "content": prompt})];
        self.ask().await
    }

    /// How many calls wait for it.
    pub fn calls(&self) -> usize {
        self.open().count()
    }

    /// Gives all results, and reads what comes of it.
    pub async fn round(&mut self) -> anyhow::Result<Duration> {
        let results: Vec<Value> =
            self.open().map(|id| json!({"role": "tool", "tool_call_id": id, "content": "a result"})).collect();
        anyhow::ensure!(!results.is_empty(), "nothing waits for the client");
        // Only the last assistant message and what follows it counts: the request stays as small as it can be.
        self.messages.extend(results);
        let since = Instant::now();
        self.ask().await?;
        Ok(since.elapsed())
    }

    fn open(&self) -> impl Iterator<Item = &str> {
        let calls = self.messages.last().and_then(|message| message["tool_calls"].as_array());
        calls.into_iter().flatten().filter_map(|call| call["id"].as_str())
    }

    async fn ask(&mut self) -> anyhow::Result<()> {
        let request = self.target.with_tool(&Value::Array(self.messages.clone()), self.session.as_deref());
        let head = self.connection.ask(&request).await?;
        let body = self.connection.text(&head).await?;
        anyhow::ensure!(head.status == 200, "status {}: {}", head.status, String::from_utf8_lossy(&body));
        self.session = head.session;
        let answer: Value = serde_json::from_slice(&body)?;
        let message = answer["choices"][0].get("message").context("an answer without a message")?.clone();
        // The conversation so far is in the agent's turn; what the client repeats of it is the least that is understood.
        self.messages.truncate(1);
        self.messages.push(message);
        Ok(())
    }
}
