//! A model on loopback whose answers the prompt decides, so that real agents run offline.
//!
//! Serves three dialects as streams: OpenAI's `POST …/chat/completions` and `POST …/responses`, and Anthropic's
//! `POST …/messages` with `…/messages/count_tokens`. A user text that holds `SCRIPT:<json>:END` is obeyed, any other is
//! echoed as `You said: ` and the text. The script is `{"calls": [[STEP, …], …]}`, one list for each call of the model,
//! chosen by how often the model has spoken since the prompt. A step is one of
//!
//! ```text
//! {"text": T}                               says T
//! {"call": {"name": N, "args": {…}}}        calls a tool; the calls of one list are made together; `namespace` beside the
//!                                           name where tools are declared in groups; `tool_search` of the responses
//! {"results": PREFIX}                       says PREFIX and what the tools have returned since the prompt
//! ```
//!
//! Every request is kept, so that a test can say what never reached the model.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

mod chat;
mod messages;
mod responses;
mod script;
mod server;

/// The running model. Dropping it closes the port and every connection.
pub struct FakeModel {
    address: SocketAddr,
    received: Arc<Received>,
    _serving: JoinSet<()>,
}

/// The number of an answer, for the ids in it. Agents take two answers with one id for the same one.
fn answer_number() -> u64 {
    static ANSWERS: AtomicU64 = AtomicU64::new(1);
    ANSWERS.fetch_add(1, Ordering::Relaxed)
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// With the query.
    pub path: String,
    /// Byte for byte, but for what is not UTF-8.
    pub text: String,
    /// `null` where the body was no JSON.
    pub body: Value,
}

#[derive(Default)]
struct Received(Mutex<Vec<Recorded>>);

impl FakeModel {
    /// Listens on a free port of 127.0.0.1, served by the runtime this is called in.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let received = Arc::<Received>::default();
        let mut serving = JoinSet::new();
        serving.spawn(server::serve(listener, Arc::clone(&received)));
        Ok(Self { address, received, _serving: serving })
    }

    /// What clients of Anthropic take for the base of its addresses.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What clients of OpenAI take for it.
    pub fn url_v1(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far, also those that were refused.
    pub fn requests(&self) -> Vec<Recorded> {
        self.received.all().clone()
    }

    /// The bodies of those that asked the model to speak; an agent's own questions, such as for a title, are left out.
    pub fn model_calls(&self) -> Vec<Value> {
        let requests = self.requests().into_iter();
        requests.filter(server::asks_for_an_answer).map(|request| request.body).collect()
    }

    pub fn forget_requests(&self) {
        self.received.all().clear();
    }
}

impl Received {
    fn add(&self, request: Recorded) {
        self.all().push(request);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
