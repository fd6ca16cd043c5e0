//! A Gemini API on loopback whose answers the prompt decides, so that the real Gemini CLI runs offline.
//!
//! Serves `/v1beta/models/MODEL:streamGenerateContent`, `:generateContent` and `:countTokens`. A user text that holds
//! `SCRIPT:<json>:END` is obeyed, any other is echoed as `You said: ` and the text, in two chunks; the weather of San Francisco is
//! asked of a tool that tells it. The script:
//!
//! ```text
//! {"calls": [ CALL, CALL, … ]}      one CALL for each model call of the turn, chosen by the model turns since the prompt
//! CALL = [STEP, …]                  or {"attempts": [[STEP, …], …]}: what a client that retries gets each time, the last one for ever
//! STEP = {"text": T} | {"thought": T} | {"call": {"name": N, "args": {…}, "id": I}} | {"repeat": {"text": T, "times": N}}
//!      | {"delay_ms": N} | {"finish": "MAX_TOKENS"} | {"block": "SAFETY"} | {"usage": {…}}
//!      | {"end": true}              no finish reason        | {"cut": true}   the connection breaks
//!      | {"stall": true}            nothing more comes      | {"raw": BYTES}  | {"chunk": {…}}
//!      | {"expect": {"declared": {NAME: SCHEMA, …}, "returned": [T, …]}}
//!                                   refused by 400 unless just these functions are declared, their schemas holding these, and
//!                                   the functions called since the prompt have returned texts that hold these, in order
//!      | {"status": 429}            instead of a stream, with {"body": {…}} where the body matters
//! ```
//!
//! `generateContent` with a response schema (the CLI's own questions: which model, who speaks next) is answered by the
//! first example that fits the schema. `GET /__requests` tells what was asked, `DELETE /__requests` forgets it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

mod body;
mod expect;
mod reply;
mod script;
mod server;

/// The running API. Dropping it closes the port and every connection.
pub struct FakeGemini {
    address: SocketAddr,
    state: Arc<server::State>,
    _serving: JoinSet<()>,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// With the query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// `null` where the body was no JSON.
    pub body: Value,
    pub body_bytes: usize,
}

impl FakeGemini {
    /// Listens on a free port of 127.0.0.1, served by the runtime this is called in.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(0).await
    }

    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(server::State::new());
        let mut serving = JoinSet::new();
        serving.spawn(server::serve(listener, state.clone()));
        Ok(Self { address, state, _serving: serving })
    }

    /// What `GOOGLE_GEMINI_BASE_URL` is set to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The newest requests (up to 2000), oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.requests()
    }

    /// Those that asked the model to speak, without counting and routing calls.
    pub fn model_calls(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.path.contains(":streamGenerateContent")).collect()
    }

    pub fn forget_requests(&self) {
        self.state.forget();
    }

    /// Waits until so many requests have come, for at most a minute.
    pub async fn wait_for(&self, count: usize) -> Vec<Recorded> {
        let mut counted = self.state.count.subscribe();
        let arrived = timeout(Duration::from_mins(3), counted.wait_for(|arrived| *arrived >= count)).await;
        assert!(matches!(arrived, Ok(Ok(_))), "{count} requests were expected, {} came", self.requests().len());
        self.requests()
    }
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The names of the tools that were declared to the model.
    pub fn declared_tools(&self) -> Vec<String> {
        expect::declarations(&self.body).map(|(name, _)| name.to_owned()).collect()
    }

    fn to_json(&self) -> Value {
        let headers: serde_json::Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({"method": self.method, "path": self.path, "headers": headers, "body": self.body, "body_bytes": self.body_bytes})
    }
}
