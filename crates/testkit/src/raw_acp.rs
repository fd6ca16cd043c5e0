//! An ACP client with nothing between it and the pipe: what a test compares the gateway with.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{programs::fake_agent_path, record::DEADLINE};

/// A child process that speaks ACP. Dropping it kills the process (not its offspring).
pub struct RawAcp {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next_id: u64,
}

/// A response, and everything that came before it.
#[derive(Debug)]
pub struct Exchange {
    pub response: Value,
    pub before: Vec<Value>,
}

impl RawAcp {
    /// Starts the program with stdin and stdout as pipes; the caller sets all else.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the child has no stdout"))?;
        let (sender, lines) = sync_channel(1024);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, stdin, lines, next_id: 1 })
    }

    /// The fake agent with these arguments and our environment.
    pub fn fake(arguments: &[&str]) -> Self {
        match Self::start(Command::new(fake_agent_path()).args(arguments)) {
            Ok(agent) => agent,
            Err(error) => panic!("the fake agent did not start: {error}"),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Value) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or_else(|| io::Error::other("stdin is closed"))?;
        stdin.write_all(format!("{message}\n").as_bytes())
    }

    /// Sends a request and gives its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let sent = self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        assert!(sent.is_ok(), "`{method}` could not be sent: {sent:?}");
        id
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        let sent = self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        assert!(sent.is_ok(), "`{method}` could not be sent: {sent:?}");
    }

    /// The next line with its newline, as bytes; `None` when stdout has ended.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the agent was silent for {DEADLINE:?}"),
        }
    }

    /// What comes within a time, for a test that asserts silence.
    pub fn line_within(&mut self, time: Duration) -> Option<Vec<u8>> {
        self.lines.recv_timeout(time).ok()
    }

    /// The next line that is a JSON object; `None` when stdout has ended.
    pub fn message(&mut self) -> Option<Value> {
        loop {
            let line = self.line()?;
            if let Ok(message @ Value::Object(_)) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
    }

    /// Reads up to the response to a request, answering the agent's own requests by `answer` (the result to give).
    pub fn finish(&mut self, id: u64, mut answer: impl FnMut(&Value) -> Value) -> Exchange {
        let mut before = Vec::new();
        loop {
            let message = self.message();
            let Some(message) = message else { panic!("the agent ended before its response; it sent {before:#?}") };
            if message.get("method").is_none() && message["id"] == id {
                return Exchange { response: message, before };
            }
            if message.get("method").is_some() && message.get("id").is_some() {
                let sent = self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer(&message)}));
                assert!(sent.is_ok(), "an answer could not be sent: {sent:?}");
            }
            before.push(message);
        }
    }

    /// Sends a request and reads up to its response; nothing may be asked of us meanwhile.
    pub fn call(&mut self, method: &str, params: &Value) -> Exchange {
        let id = self.request(method, params);
        self.finish(id, |message| panic!("the agent asked {message}"))
    }

    /// `initialize` without any client capability.
    pub fn initialize(&mut self) -> Value {
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        self.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities})).response
    }

    /// `session/new` in a folder; gives the session's id.
    pub fn open_session(&mut self, cwd: &str) -> String {
        let response = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []})).response;
        let id = response["result"]["sessionId"].as_str();
        assert!(id.is_some(), "no session: {response}");
        id.unwrap_or_default().to_owned()
    }

    /// Sends a prompt of one text and gives the request's id.
    pub fn start_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> Exchange {
        let id = self.start_prompt(session, text);
        self.finish(id, |message| panic!("the agent asked {message}"))
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) => assert!(Instant::now() < deadline, "the agent did not end"),
                Err(error) => panic!("the agent cannot be waited for: {error}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Exchange {
    /// The text of the answer, its chunks joined.
    pub fn text(&self) -> String {
        self.updates("agent_message_chunk").iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// The updates of one kind.
    pub fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.before.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).cloned().collect()
    }

    /// The agent's requests of one method.
    pub fn requests(&self, method: &str) -> Vec<Value> {
        self.before.iter().filter(|message| message["method"] == method).cloned().collect()
    }
}

impl Drop for RawAcp {
    fn drop(&mut self) {
        // The process may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
