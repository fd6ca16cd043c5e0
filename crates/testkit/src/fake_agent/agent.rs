//! Reads stdin, answers what needs no waiting, and gives each prompt a thread.

use std::{
    collections::HashMap,
    io::{self, BufRead},
    process,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::{
    methods,
    mode::{Mode, Quirk, StopReading},
    options::Options,
    prompt,
    recorder::Recorder,
    sessions::{Running, Sessions},
    tck,
    turn::{Cancel, Turn},
    wire::Wire,
};

pub struct Agent {
    pub options: Options,
    pub wire: Wire,
    pub authenticated: AtomicBool,
    recorder: Recorder,
    sessions: Mutex<Sessions>,
    awaiting: Mutex<HashMap<u64, Arc<Turn>>>,
    next_request: AtomicU64,
}

/// A JSON-RPC error to answer with.
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

impl Agent {
    pub fn new(options: Options) -> io::Result<Self> {
        Ok(Self {
            wire: Wire::new(&options)?,
            recorder: Recorder::open(&options)?,
            sessions: Mutex::new(Sessions::new(options.state.clone())),
            authenticated: AtomicBool::new(!options.has(&Mode::NeedsAuth)),
            awaiting: Mutex::default(),
            next_request: AtomicU64::new(0),
            options,
        })
    }

    /// Serves until stdin ends, or for ever in the modes that ask for it.
    pub fn serve(self: &Arc<Self>) -> io::Result<()> {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        let mut lines = 0;
        loop {
            if self.stops_reading(lines) {
                park_for_ever();
            }
            line.clear();
            if stdin.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            lines += 1;
            let message: Option<Value> = serde_json::from_slice(&line).ok();
            self.recorder.received(&line, message.as_ref());
            if let Some(message) = message {
                self.receive(&message);
            }
        }
        self.recorder.eof();
        if self.options.has(&Mode::IgnoreEof) {
            park_for_ever();
        }
        Ok(())
    }

    fn stops_reading(&self, lines: usize) -> bool {
        self.options.modes.iter().any(|mode| match mode {
            Mode::NoReadStdin(StopReading::AfterLines(limit)) => lines >= *limit,
            Mode::NoReadStdin(StopReading::OnceASessionIsOpen) => self.sessions().any_open(),
            _ => false,
        })
    }

    fn receive(self: &Arc<Self>, message: &Value) {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/prompt"), Some(id)) => self.begin_prompt(id, params),
            (Some(method), Some(id)) => match methods::answer(self, method, id, params) {
                methods::Answer::Silence | methods::Answer::Sent => {}
                methods::Answer::Result(result) => self.respond(id, &result),
                methods::Answer::Refused(refusal) => self.refuse(id, &refusal),
            },
            (Some("session/cancel"), None) => {
                let mut sessions = self.sessions();
                let session = params["sessionId"].as_str().and_then(|id| sessions.get(id));
                if let Some(running) = session.and_then(|session| session.running.as_ref()) {
                    running.turn.cancel(Cancel::Session);
                }
            }
            (Some("$/cancel_request"), None) => {
                let sessions = self.sessions();
                if let Some(running) = sessions.with_running_request(&params["requestId"]) {
                    running.turn.cancel(Cancel::Request);
                }
            }
            (Some(_), None) => {}
            (None, id) => self.route_response(id.and_then(Value::as_u64), message),
        }
    }

    fn route_response(&self, id: Option<u64>, message: &Value) {
        let turn = id.and_then(|id| self.awaiting().remove(&id).map(|turn| (id, turn)));
        match turn {
            Some((id, turn)) => turn.answer(id, message.clone()),
            None => eprintln!("fake-agent: response to a request nobody made: {message}"),
        }
    }

    fn begin_prompt(self: &Arc<Self>, id: &Value, params: &Value) {
        let session_id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let turn = Arc::new(Turn::default());
        {
            let mut sessions = self.sessions();
            let Some(session) = sessions.get(&session_id) else {
                return self.refuse(id, &Refusal { code: -32602, message: format!("Session not found: {session_id}") });
            };
            if let Some(running) = &session.running {
                if !self.options.quirk(Quirk::SecondPromptCancelsFirst) {
                    let message = format!("session `{session_id}` has a prompt running");
                    return self.refuse(id, &Refusal { code: -32600, message });
                }
                running.turn.cancel(Cancel::Session);
            }
            session.running = Some(Running { request: id.clone(), turn: turn.clone() });
        }
        let (agent, id, prompt) = (self.clone(), id.clone(), tck::prompt(&self.options, params));
        thread::spawn(move || prompt::run(&agent, &id, &session_id, &prompt, &turn));
    }

    /// Sends a request of ours; the answer arrives at the turn.
    pub fn request(&self, turn: &Arc<Turn>, method: &str, params: &Value) -> u64 {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        self.awaiting().insert(id, turn.clone());
        self.wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&self, method: &str, params: &Value) {
        self.wire.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn respond(&self, id: &Value, result: &Value) {
        self.wire.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub fn refuse(&self, id: &Value, refusal: &Refusal) {
        let error = json!({"code": refusal.code, "message": refusal.message});
        self.wire.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awaiting(&self) -> MutexGuard<'_, HashMap<u64, Arc<Turn>>> {
        self.awaiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process stays, this thread does nothing more.
pub fn park_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// Ends the process from whatever thread notices that it should.
pub fn end_process(code: i32) -> ! {
    process::exit(code)
}
