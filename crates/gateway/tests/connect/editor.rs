//! A client that starts its agent and talks to it in lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::PATIENCE;
use crate::support::messages::{is_answer, outcome};

pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    last_id: u64,
}

impl Editor {
    /// As a user of this machine starts it: without an address, with the key of the first run.
    pub fn of_own(home: &Home) -> Self {
        Self::start(home.command(&["connect"]))
    }

    /// The same with the address.
    pub fn of(gateway: &Gateway, query: &str) -> Self {
        let url = format!("ws://{}/acp{query}", gateway.address);
        Self::start(gateway.home.command(&["connect", &url]))
    }

    pub fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, last_id: 0 }
    }

    /// Known to the gateway.
    pub fn known(gateway: &Gateway, query: &str) -> Self {
        let mut editor = Self::of(gateway, query);
        let capabilities = json!({ "fs": { "readTextFile": true }, "terminal": true });
        let meta = json!({ "gembridge": { "extensions": true } });
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "_meta": meta });
        editor.call("initialize", &hello).unwrap();
        editor
    }

    pub fn new_session(&mut self) -> String {
        let result = self.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap();
        result["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        outcome(&self.until_answered(id))
    }

    /// A whole turn: everything that came, its end last.
    pub fn turn(&mut self, session: &str, text: &str) -> Vec<Value> {
        let id = self.prompt(session, text);
        self.until_answered(id)
    }

    #[track_caller]
    pub fn until_answered(&mut self, id: u64) -> Vec<Value> {
        self.until(|message| is_answer(message, id))
    }

    /// Everything up to and with the message that fits.
    #[track_caller]
    pub fn until(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let Ok(message) = self.lines.recv_timeout(PATIENCE) else { panic!("nothing came after {all:#?}") };
            let is_last = fits(&message);
            all.push(message);
            if is_last {
                return all;
            }
        }
    }

    /// Nothing more is said to it.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// How it ended, and what it said about that.
    pub fn ended(&mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it did not end");
            thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status, said)
    }

    /// The exit code, or what a shell makes of the signal.
    pub fn code(&mut self) -> (i32, String) {
        let (status, said) = self.ended();
        (status.code().or(status.signal().map(|signal| 128 + signal)).unwrap(), said)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The option of this kind, as the answer to a question.
pub fn answer(question: &Value, kind: &str) -> Value {
    let options = question["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap()["optionId"].clone();
    let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}
