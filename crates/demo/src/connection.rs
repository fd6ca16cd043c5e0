//! One client on stdio: reads its lines, answers its requests, asks it questions, and owns every running task.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use crate::flags::Flags;
use crate::methods;
use crate::outbox::Outbox;
use crate::session::{Cancel, Sessions};
use crate::stdio;
use crate::wire::{
    ClientCapabilities, Failure, Incoming, Notification, Request, RpcError, SessionUpdate, Success, Version,
};

/// The longest line accepted; a prompt with images stays well below.
const LONGEST_LINE: u64 = 128 * 1024 * 1024;
/// How long the last messages may take once the input has closed.
const LAST_WRITES: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    pub flags: Flags,
    pub outbox: Outbox,
    pub sessions: Sessions,
    pub client: RefCell<ClientCapabilities>,
    tasks: RefCell<JoinSet<()>>,
    asked: RefCell<HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>>,
    next_question: Cell<u64>,
    crash: RefCell<Option<u8>>,
    crashed: Notify,
}

/// Serves the client until its input closes, it stops reading, or a prompt asks for a crash.
pub(crate) async fn serve(flags: Flags) -> ExitCode {
    tokio::time::sleep(flags.start_delay).await;
    let connection = Rc::new(Connection::new(flags));
    let mut writer = JoinSet::new();
    let writing = Rc::clone(&connection);
    writer.spawn_local(async move { writing.outbox.write_to(stdio::output()).await });

    let code = tokio::select! {
        code = connection.read(stdio::input()) => code,
        code = connection.crash_asked() => code,
        _client_stopped_reading = writer.join_next() => ExitCode::FAILURE,
    };
    connection.outbox.close();
    let mut tasks = std::mem::take(&mut *connection.tasks.borrow_mut());
    tasks.shutdown().await;
    // A client that no longer reads is not waited for.
    drop(tokio::time::timeout(LAST_WRITES, writer.join_next()).await);
    code
}

impl Connection {
    fn new(flags: Flags) -> Self {
        Self {
            flags,
            outbox: Outbox::new(),
            sessions: Sessions::new(),
            client: RefCell::default(),
            tasks: RefCell::default(),
            asked: RefCell::default(),
            next_question: Cell::new(0),
            crash: RefCell::default(),
            crashed: Notify::new(),
        }
    }

    /// Runs a task that ends with the connection at the latest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
    }

    /// Ends the process with this exit code, after what was said before is written.
    pub(crate) fn crash(&self, code: u8) {
        *self.crash.borrow_mut() = Some(code);
        self.crashed.notify_one();
    }

    /// Sends a `session/update`.
    pub(crate) async fn update(&self, session_id: &str, update: impl Serialize) {
        self.outbox.send(&session_update(session_id, update)).await;
    }

    /// A cancel for a session that is gone has nothing to end.
    pub(crate) fn cancel_session(&self, id: &str) {
        if let Ok(session) = self.sessions.find(id) {
            session.cancel(Cancel::Turn);
        }
    }

    pub(crate) async fn reply(&self, id: &RawValue, outcome: Result<Value, RpcError>) {
        match outcome {
            Ok(result) => self.outbox.send(&Success { jsonrpc: Version, id, result: &result }).await,
            Err(error) => self.reject(Some(id), &error).await,
        }
    }

    /// Asks the client. Dropping the future withdraws the question with `$/cancel_request`.
    pub(crate) async fn ask(&self, method: &str, params: impl Serialize) -> Result<Value, RpcError> {
        let id = self.next_question.get();
        self.next_question.set(id + 1);
        let (answer, answered) = oneshot::channel();
        self.asked.borrow_mut().insert(id, answer);
        let _withdraw_when_dropped = Question { connection: self, id };
        self.outbox.send(&Request { jsonrpc: Version, id, method, params }).await;
        answered.await.unwrap_or_else(|_| Err(RpcError::new(-32603, "the connection has ended")))
    }

    async fn read(self: &Rc<Self>, input: impl AsyncRead + Unpin) -> ExitCode {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
                Ok(0) => return ExitCode::SUCCESS,
                Ok(_) if line.last() == Some(&b'\n') => self.receive(&line).await,
                Ok(read) if read as u64 == LONGEST_LINE => {
                    crate::complain(&format!("a line is longer than {LONGEST_LINE} bytes; send large files by path"));
                    return ExitCode::FAILURE;
                }
                Ok(_half_a_line_at_the_end) => return ExitCode::SUCCESS,
                Err(error) => {
                    crate::complain(&format!("stdin cannot be read: {error}"));
                    return ExitCode::FAILURE;
                }
            }
        }
    }

    async fn receive(self: &Rc<Self>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let message: Incoming = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                let code = if error.is_data() { -32600 } else { -32700 };
                return self.reject(None, &RpcError::new(code, format!("not a JSON-RPC 2.0 message: {error}"))).await;
            }
        };
        match (message.method, message.id) {
            (Some(method), Some(id)) => methods::answer(self, &method, id, message.params).await,
            (Some(method), None) => methods::notice(self, &method, message.params),
            (None, Some(id)) => self.answered(id, message.result, message.error),
            (None, None) => {
                let error = RpcError::invalid_request("a message needs a `method` or an `id`");
                self.reject(None, &error).await;
            }
        }
    }

    fn answered(&self, id: &RawValue, result: Option<&RawValue>, error: Option<RpcError>) {
        let waiting = id.get().parse().ok().and_then(|id: u64| self.asked.borrow_mut().remove(&id));
        // An answer that comes after its question was withdrawn has nobody to go to.
        let Some(waiting) = waiting else { return };
        let answer = match (error, result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => {
                serde_json::from_str(result.get()).map_err(|error| RpcError::new(-32603, error.to_string()))
            }
            (None, None) => Ok(Value::Null),
        };
        drop(waiting.send(answer));
    }

    async fn reject(&self, id: Option<&RawValue>, error: &RpcError) {
        self.outbox.send(&Failure { jsonrpc: Version, id, error }).await;
    }

    async fn crash_asked(&self) -> ExitCode {
        self.crashed.notified().await;
        ExitCode::from(self.crash.borrow().unwrap_or(1))
    }
}

pub(crate) fn session_update<U>(session_id: &str, update: U) -> Notification<'static, SessionUpdate<'_, U>> {
    Notification { jsonrpc: Version, method: "session/update", params: SessionUpdate { session_id, update } }
}

/// A question to the client that waits for its answer.
struct Question<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.connection.asked.borrow_mut().remove(&self.id).is_some() {
            let params = serde_json::json!({"requestId": self.id});
            self.connection.outbox.send_now(&Notification { jsonrpc: Version, method: "$/cancel_request", params });
        }
    }
}
