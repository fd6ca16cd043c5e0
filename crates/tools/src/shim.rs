//! For agents that take no tool servers over HTTP: their standard streams, relayed to the bridge and back.
//!
//! A line is a message in both directions. Messages go over in the order in which they came, except that the answer to a
//! request is awaited beside the others.

mod relay;
mod sse;

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use http::Uri;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use relay::{Messages, Relay, Reply};

/// The longest line of an agent.
const LINE: usize = 16 * 1024 * 1024;
/// How many requests of an agent may be open at once. The next waits, and with it everything behind it.
const OPEN: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error("`{0}` is not the address of a tool server; it looks like `http://127.0.0.1:4711/mcp`")]
    Address(String),
    #[error("a message of the agent is longer than {LINE} bytes")]
    TooLong,
    #[error("the agent's standard streams broke: {0}")]
    Agent(#[from] std::io::Error),
    #[error("the tool server cannot be reached: {0}; is the gateway still running?")]
    Server(String),
}

/// Relays the standard streams of this process, which is nothing but that. Makes the event loop that it needs.
pub fn run_on_stdio(url: &str, token: &str) -> Result<(), ShimError> {
    let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let relayed = event_loop.block_on(run(tokio::io::stdin(), tokio::io::stdout(), url, token));
    // A read of standard input cannot be called back.
    event_loop.shutdown_background();
    relayed
}

/// Relays until the agent closes its end, and then ends the session.
pub async fn run<R, W>(stdin: R, stdout: W, url: &str, token: &str) -> Result<(), ShimError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let address = || ShimError::Address(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| address())?;
    let relay = Arc::new(Relay::new(&uri, token).ok_or_else(address)?);
    let mut shim = Shim {
        relay,
        output: Arc::new(Output(Mutex::new(stdout))),
        room: Arc::new(Semaphore::new(OPEN)),
        wanted: Arc::default(),
        tasks: JoinSet::new(),
    };
    let mut lines = BufReader::new(stdin);
    let mut line = Vec::new();
    while next_line(&mut lines, &mut line).await? {
        shim.pass_on(&line).await?;
        while let Some(done) = shim.tasks.try_join_next() {
            done.map_err(|error| ShimError::Server(error.to_string()))??;
        }
    }
    shim.tasks.shutdown().await;
    shim.relay.end_session().await;
    Ok(())
}

/// Reads the next line that is not empty. `false` at the end.
async fn next_line(lines: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Result<bool, ShimError> {
    loop {
        line.clear();
        let limit = u64::try_from(LINE).unwrap_or(u64::MAX);
        if lines.take(limit).read_until(b'\n', line).await? == 0 {
            return Ok(false);
        }
        if line.len() == LINE && line.last() != Some(&b'\n') {
            return Err(ShimError::TooLong);
        }
        line.truncate(line.trim_ascii_end().len());
        if !line.is_empty() {
            return Ok(true);
        }
    }
}

struct Output<W>(Mutex<W>);

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn line(&self, message: &str) -> Result<(), ShimError> {
        let mut line = String::with_capacity(message.len() + 1);
        line.push_str(message);
        line.push('\n');
        let mut output = self.0.lock().await;
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
        Ok(())
    }
}

/// What has to be known of a message to pass it on.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// What a cancellation says.
#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request: &'a RawValue,
}

/// Ids of requests, as the agent writes them.
#[derive(Default)]
struct Wanted(std::sync::Mutex<HashSet<String>>);

impl Wanted {
    fn add(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
    }

    /// `false` if it was not wanted any more.
    fn remove(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

struct Shim<W> {
    relay: Arc<Relay>,
    output: Arc<Output<W>>,
    room: Arc<Semaphore>,
    /// The requests whose answer the agent still wants.
    wanted: Arc<Wanted>,
    tasks: JoinSet<Result<(), ShimError>>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Shim<W> {
    async fn pass_on(&mut self, line: &[u8]) -> Result<(), ShimError> {
        let Ok(envelope) = serde_json::from_slice::<Envelope>(line) else {
            return self.output.line(&refusal("null", -32700, "this line is not a message")).await;
        };
        match (envelope.id, envelope.method.as_deref()) {
            (Some(id), Some(method)) => {
                let Ok(permit) = self.room.clone().acquire_owned().await else { return Ok(()) };
                let question = Question {
                    id: id.get().to_owned(),
                    relay: self.relay.clone(),
                    output: self.output.clone(),
                    wanted: self.wanted.clone(),
                    _room: permit,
                };
                self.wanted.add(id.get());
                let asked = question.ask(line.to_vec());
                if method == "initialize" {
                    // The session must be there before anything else is sent in it.
                    return asked.await;
                }
                self.tasks.spawn(asked);
                Ok(())
            }
            (_, method) => {
                if method == Some("notifications/cancelled")
                    && let Some(params) = envelope.params
                    && let Ok(cancelled) = serde_json::from_str::<Cancelled>(params.get())
                {
                    self.wanted.remove(cancelled.request.get());
                }
                self.relay.post(line.to_vec()).await?;
                if method == Some("notifications/initialized") {
                    self.tasks.spawn(listen(self.relay.clone(), self.output.clone()));
                }
                Ok(())
            }
        }
    }
}

/// A request of the agent that is open.
struct Question<W> {
    id: String,
    relay: Arc<Relay>,
    output: Arc<Output<W>>,
    wanted: Arc<Wanted>,
    _room: OwnedSemaphorePermit,
}

impl<W: AsyncWrite + Unpin> Question<W> {
    /// Sends it, and writes whatever comes back for it. An agent that still waits at the end is told why.
    async fn ask(self, message: Vec<u8>) -> Result<(), ShimError> {
        let failure = match self.relay.post(message).await {
            Ok(Reply::Messages(messages)) => self.copy(messages).await?,
            Ok(Reply::Refused(status)) => format!("the tool server answered with {status}"),
            Ok(Reply::Accepted) => "the tool server gave no answer".to_owned(),
            Err(error) => error.to_string(),
        };
        if self.wanted.remove(&self.id) { self.output.line(&refusal(&self.id, -32603, &failure)).await } else { Ok(()) }
    }

    /// Gives the reason why nothing comes any more.
    async fn copy(&self, mut messages: Messages) -> Result<String, ShimError> {
        loop {
            match messages.next().await {
                Ok(Some(message)) => {
                    if is_answer(&message, &self.id) {
                        self.wanted.remove(&self.id);
                        self.relay.note(&message);
                    }
                    self.output.line(&message).await?;
                }
                Ok(None) => return Ok("the tool server ended without an answer".to_owned()),
                Err(error) => return Ok(error.to_string()),
            }
        }
    }
}

/// Writes what the server says unasked, for as long as it does.
async fn listen<W: AsyncWrite + Unpin>(relay: Arc<Relay>, output: Arc<Output<W>>) -> Result<(), ShimError> {
    let Ok(Reply::Messages(mut messages)) = relay.get().await else { return Ok(()) };
    while let Ok(Some(message)) = messages.next().await {
        output.line(&message).await?;
    }
    Ok(())
}

fn is_answer(message: &str, id: &str) -> bool {
    serde_json::from_str::<Envelope>(message)
        .is_ok_and(|envelope| envelope.method.is_none() && envelope.id.is_some_and(|answered| answered.get() == id))
}

fn refusal(id: &str, code: i32, message: &str) -> String {
    let message = Value::from(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}
