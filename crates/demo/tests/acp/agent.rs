//! A client of the agent that checks the shape of every message it reads.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Far longer than anything takes on a loaded machine: reached only when something hangs.
pub const DEADLINE: Duration = Duration::from_mins(2);

pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

/// What came between a prompt and its answer.
pub struct Turn {
    pub updates: Vec<Value>,
    pub outcome: Result<Value, Value>,
}

impl Agent {
    pub fn start() -> Self {
        Self::start_with(&[], json!({}))
    }

    /// Starts the agent and says hello as a client with these capabilities.
    pub fn start_with(args: &[&str], capabilities: Value) -> Self {
        let mut agent = Self::spawn(args);
        let mut hello = json!({"protocolVersion": 1});
        hello["clientCapabilities"] = capabilities;
        agent.call("initialize", hello).unwrap();
        agent
    }

    #[expect(clippy::disallowed_methods, reason = "the agent under test is a process")]
    pub fn spawn(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gembridge-demo-agent"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (found, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if found.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, last_id: 0 }
    }

    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method});
        request["params"] = params;
        self.write(&request.to_string());
        self.last_id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let mut notification = json!({"jsonrpc": "2.0", "method": method});
        notification["params"] = params;
        self.write(&notification.to_string());
    }

    pub fn answer(&mut self, question: &Value, result: Value) {
        let mut answer = json!({"jsonrpc": "2.0", "id": question["id"]});
        answer["result"] = result;
        self.write(&answer.to_string());
    }

    /// Everything the agent writes until it closes its output.
    pub fn output(&mut self) -> String {
        let lines: Vec<_> = std::iter::from_fn(|| self.lines.recv_timeout(DEADLINE).ok()).collect();
        lines.join("\n")
    }

    /// The next message, or `None` once the agent has closed its output.
    pub fn next_or_end(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
                check_shape(&message);
                Some(message)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the agent is silent"),
        }
    }

    pub fn next(&mut self) -> Value {
        self.next_or_end().expect("the agent has closed its output")
    }

    /// Reads on to the first message that fits.
    pub fn next_where(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if fits(&message) {
                return message;
            }
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.finish(id, |question| panic!("unexpected question {question}")).outcome
    }

    /// Opens a session without MCP servers, past its list of commands.
    pub fn session(&mut self) -> String {
        self.session_with(json!([]))
    }

    pub fn session_with(&mut self, mcp_servers: Value) -> String {
        let mut params = json!({"cwd": "/somewhere"});
        params["mcpServers"] = mcp_servers;
        let opened = self.call("session/new", params).unwrap();
        assert_eq!(kind(&self.next()), "available_commands_update");
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> Turn {
        self.prompt_answering(session, text, |question| panic!("unexpected question {question}"))
    }

    /// Prompts, and answers what the agent asks meanwhile.
    pub fn prompt_answering(&mut self, session: &str, text: &str, answer: impl FnMut(&Value) -> Value) -> Turn {
        let id = self.send_prompt(session, text);
        self.finish(id, answer)
    }

    /// Reads until the answer to a request.
    pub fn finish(&mut self, id: u64, mut answer: impl FnMut(&Value) -> Value) -> Turn {
        let mut updates = Vec::new();
        loop {
            let mut message = self.next();
            if message["method"] == "session/update" {
                updates.push(message["params"]["update"].take());
            } else if message.get("method").is_some() && message.get("id").is_some() {
                let result = answer(&message);
                self.answer(&message, result);
            } else if message["id"] == id {
                let outcome = match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
                return Turn { updates, outcome };
            }
        }
    }

    /// Closes the agent's input and returns how it ended.
    pub fn close(mut self) -> ExitStatus {
        drop(self.stdin.take());
        while self.next_or_end().is_some() {}
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < DEADLINE, "the agent does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Turn {
    pub fn text(&self) -> String {
        self.text_of("agent_message_chunk")
    }

    pub fn text_of(&self, kind: &str) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    pub fn stop_reason(&self) -> &str {
        self.outcome.as_ref().unwrap()["stopReason"].as_str().unwrap()
    }

    /// The kinds of updates, runs of one kind told once.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<_> = self.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
        kinds.dedup();
        kinds
    }

    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.updates.iter().filter(move |update| update["sessionUpdate"] == kind)
    }

    /// The statuses that tool calls went through.
    pub fn statuses(&self) -> Vec<&str> {
        self.updates.iter().filter_map(|update| update["status"].as_str()).collect()
    }
}

/// The kind of a `session/update` message.
pub fn kind(message: &Value) -> &str {
    message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default()
}

pub fn chunk_text(message: &Value) -> &str {
    message["params"]["update"]["content"]["text"].as_str().unwrap_or_default()
}

fn check_shape(message: &Value) {
    let mut keys: Vec<_> = message.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    match keys.as_slice() {
        ["id", "jsonrpc", "method", "params"] => assert!(message["id"].is_u64(), "{message}"),
        ["jsonrpc", "method", "params"] => {}
        ["id", "jsonrpc", "result"] => assert!(message["id"].is_u64() || message["id"].is_string(), "{message}"),
        ["error", "id", "jsonrpc"] => {
            assert!(message["error"]["code"].is_i64() && message["error"]["message"].is_string(), "{message}");
        }
        other => panic!("not a JSON-RPC message, its keys are {other:?}: {message}"),
    }
    if message["method"] == "session/update" {
        assert!(message["params"]["sessionId"].is_string() && !kind(message).is_empty(), "{message}");
    }
}
