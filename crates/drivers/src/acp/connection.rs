//! One agent process and the conversation with it: one reader, one writer, one table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::driver::Signal;
use gembridge_core::model::{Failure, FailureKind};
use gembridge_process::{Child, Handle, LineError, LineReader, StderrTail, StopPlan, TreeMemory};
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client_methods::Patience;
use super::outbox::{Backlog, Full, Outbox};
use super::router::{Routed, Router};
use super::routing_table::{CallError, Opening, Pending, RoutingTable, Sink};
use super::{encode, error};

/// Requests of the agent that are worked on at once; more wait.
const MOST_JOBS: usize = 32;
/// Commands whose end the agent waits for at once; one more is refused. They never hold up anything else.
const MOST_WAITS: usize = 256;
/// How long the exit code of a process whose output ended may take to come.
const LAST_WORD: Duration = Duration::from_secs(2);
/// How long the rest of its stderr may take after that.
const LAST_LINES: Duration = Duration::from_millis(500);

pub(super) struct Connection {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    /// The reader and the writer. They end with the connection.
    _tasks: JoinSet<()>,
}

struct Shared {
    router: Router,
    table: Mutex<RoutingTable>,
    outbox: Outbox,
    gone: watch::Sender<bool>,
    stderr: StderrTail,
}

impl Connection {
    pub(super) fn new(child: Child, router: Router) -> Self {
        let (outbox, backlog) = Outbox::new(child.stdin);
        let shared = Arc::new(Shared {
            router,
            table: Mutex::default(),
            outbox,
            gone: watch::Sender::new(false),
            stderr: child.stderr,
        });
        let handle = Arc::new(child.handle);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(Arc::clone(&shared), backlog, Arc::clone(&handle)));
        tasks.spawn(read(Arc::clone(&shared), child.stdout, Arc::clone(&handle)));
        Self { shared, handle, _tasks: tasks }
    }

    pub(super) fn router(&self) -> &Router {
        &self.shared.router
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    pub(super) fn table(&self) -> MutexGuard<'_, RoutingTable> {
        self.shared.table()
    }

    /// Sends a line. A full outbox means an agent that does not read.
    pub(super) fn send(&self, line: Bytes) -> Result<(), Failure> {
        self.not_lost()?;
        self.shared.outbox.send(line).map_err(|full| self.unread(full))
    }

    /// Sends the answer to a request of the agent.
    pub(super) fn answer(&self, line: Bytes) -> Result<(), Failure> {
        self.not_lost()?;
        self.shared.outbox.answer(line).map_err(|full| self.unread(full))
    }

    fn not_lost(&self) -> Result<(), Failure> {
        self.table().lost().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn unread(&self, Full: Full) -> Failure {
        let agent = &self.router().agent;
        let retry_after = Duration::from_secs(1);
        let message = format!("agent `{agent}` does not read what it is sent; try again in a moment");
        Failure::new(FailureKind::Unavailable { retry_after }, message)
    }

    /// One call and its whole result.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        within: Duration,
    ) -> Result<Bytes, Failure> {
        let (reply, answer) = oneshot::channel();
        let id = self.table().expect(Pending::Call(reply))?;
        self.finish_call(id, method, params, answer, within).await
    }

    /// `session/new`: a call whose session begins with its answer.
    pub(super) async fn open(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        opening: Opening,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        let (reply, answer) = oneshot::channel();
        let id = self.table().expect(Pending::Open { opening: Box::new(opening), reply })?;
        self.finish_call(id, method, params, answer, within).await
    }

    async fn finish_call(
        &self,
        id: u64,
        method: &str,
        params: &(impl Serialize + Sync),
        answer: oneshot::Receiver<Result<Bytes, CallError>>,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        if let Err(failure) = self.send(encode::request(id, method, params)) {
            self.table().forget(id);
            return Err(failure);
        }
        let router = self.router();
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(CallError::Refused(rpc)))) => Err(error::failure(&router.agent, &router.quirks, &rpc)),
            Ok(Ok(Err(CallError::Lost(failure)))) => Err(failure),
            Ok(Err(_)) => Err(Failure::new(FailureKind::Internal, format!("the answer to `{method}` got lost"))),
            Err(_) => {
                self.table().forget(id);
                let told = self.send(encode::notification("$/cancel_request", &serde_json::json!({ "requestId": id })));
                if let Err(failure) = told {
                    tracing::debug!(%failure, "the agent could not be told that nobody waits any more");
                }
                let (agent, seconds) = (&router.agent, within.as_secs());
                let message = format!("agent `{agent}` did not answer `{method}` within {seconds} s");
                Err(Failure::new(FailureKind::TimedOut, message).with_stderr(self.stderr_tail()))
            }
        }
    }

    pub(super) fn stderr_tail(&self) -> String {
        self.shared.stderr_tail()
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.shared.gone.borrow()
    }

    /// Resolves when the process can serve nobody any more.
    pub(super) async fn gone(&self) {
        // The sender lives as long as this connection.
        let mut gone = self.shared.gone.subscribe();
        drop(gone.wait_for(|gone| *gone).await);
    }

    /// The same for somebody who must not hold the connection.
    pub(super) fn watch_gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.shared.gone.subscribe();
        // A connection that was dropped is gone as well.
        async move { drop(gone.wait_for(|gone| *gone).await) }
    }

    /// Why the process is gone.
    pub(super) fn last_word(&self) -> String {
        self.table().lost().map_or_else(|| "ended".to_owned(), |failure| failure.message.clone())
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.handle.pid()
    }

    pub(super) async fn memory(&self) -> Option<TreeMemory> {
        self.handle.memory().await.ok()
    }

    /// Ends the process in good order, and resolves when its whole tree is gone.
    pub(super) async fn stop(&self) {
        let exit = self.handle.stop(StopPlan::default()).await;
        tracing::debug!(agent = %self.router().agent, %exit, "the agent was stopped");
    }

    /// Ends the process at once.
    pub(super) fn kill(&self) {
        self.handle.end();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.end();
    }
}

impl Shared {
    /// The agent's last words, line by line, with everything escaped that could forge a log.
    fn stderr_tail(&self) -> String {
        self.stderr.lines().join("\n")
    }

    fn table(&self) -> MutexGuard<'_, RoutingTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn lose(&self, failure: Failure) {
        let deliveries = self.table().lose(&failure);
        self.gone.send_replace(true);
        deliver(deliveries).await;
    }
}

/// The writer: what the agent did not take at once.
async fn write(shared: Arc<Shared>, backlog: Backlog, handle: Arc<Handle>) {
    let error = backlog.write(&shared.outbox).await;
    // The reader says what became of the agent, once its output has ended too.
    tracing::warn!(agent = %shared.router.agent, %error, "the agent's input is broken; ending the agent");
    handle.end();
}

/// The reader: drains the pipe in large reads and hands each session its batch.
async fn read(shared: Arc<Shared>, mut stdout: LineReader, handle: Arc<Handle>) {
    let (mut jobs, mut waits) = (JoinSet::new(), JoinSet::new());
    let failure = loop {
        let batch = tokio::select! {
            batch = stdout.next_batch(), if jobs.len() < MOST_JOBS => batch,
            Some(done) = jobs.join_next(), if !jobs.is_empty() => {
                reply(&shared, done).await;
                continue;
            }
            Some(done) = waits.join_next(), if !waits.is_empty() => {
                reply(&shared, done).await;
                continue;
            }
        };
        let batch = match batch {
            Ok(Some(batch)) => batch,
            Ok(None) => break ended(&shared, &stdout, &handle).await,
            Err(LineError::TooLong { limit, .. }) => {
                handle.end();
                break error::protocol(&shared.router.agent, format!("a line is longer than {limit} bytes"));
            }
            Err(LineError::Read(unread)) => {
                handle.end();
                break error::protocol(&shared.router.agent, unread);
            }
        };
        let mut routed = Routed::default();
        let deliveries = {
            let mut table = shared.table();
            let now = Instant::now();
            for line in &batch {
                shared.router.route(&mut table, line, batch.keep(line), now, &mut routed);
            }
            table.take_deliveries()
        };
        deliver(deliveries).await;
        for line in routed.replies {
            send(&shared, line).await;
        }
        for job in routed.jobs {
            match job.patience() {
                Patience::Short => {
                    jobs.spawn(job.perform());
                }
                Patience::UntilExit if waits.len() < MOST_WAITS => {
                    waits.spawn(job.perform());
                }
                Patience::UntilExit => send(&shared, job.refuse("too many commands are waited for at once")).await,
            }
        }
        if routed.noise > 0 {
            tracing::debug!(agent = %shared.router.agent, lines = routed.noise, "lines that answer nothing were dropped");
        }
    };
    shared.lose(failure).await;
}

async fn reply(shared: &Shared, done: Result<Bytes, tokio::task::JoinError>) {
    match done {
        Ok(line) => send(shared, line).await,
        Err(error) => tracing::error!(%error, "work for the agent panicked"),
    }
}

async fn send(shared: &Shared, line: Bytes) {
    // The writer goes only when the process does, and that ends the reader as well.
    if let Err(Full) = shared.outbox.answer_in_time(line).await {
        tracing::debug!(agent = %shared.router.agent, "the agent is gone; an answer to it was dropped");
    }
}

/// A session that does not keep up slows the agent down. One that has gone wants nothing.
async fn deliver(deliveries: Vec<(Sink, Vec<Signal>)>) {
    for (sink, batch) in deliveries {
        drop(sink.send(batch).await);
    }
}

/// The output ended: what became of the process?
async fn ended(shared: &Shared, stdout: &LineReader, handle: &Handle) -> Failure {
    let half = stdout.unfinished();
    if !half.is_empty() {
        tracing::debug!(
            line = gembridge_process::escape_excerpt(half, 200),
            "half a line at the end of the output is dropped"
        );
    }
    let agent = &shared.router.agent;
    let message = if let Ok(exit) = tokio::time::timeout(LAST_WORD, handle.wait()).await {
        // What it wrote last may still be on its way through the other pipe.
        drop(tokio::time::timeout(LAST_LINES, handle.watch().ended()).await);
        format!("agent `{agent}` ended with {exit}")
    } else {
        handle.end();
        format!("agent `{agent}` closed its output")
    };
    Failure::new(FailureKind::Crashed, message).with_stderr(shared.stderr_tail())
}
