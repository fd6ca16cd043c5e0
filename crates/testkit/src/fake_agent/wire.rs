//! Writes messages to stdout, with the noise around them that the modes ask for.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    process,
    sync::{Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};

use super::{mode::Mode, options::Options};

/// Lines are gathered up to a little less than a pipe holds, so that a write rarely blocks half way.
pub const WRITE_SIZE: usize = 60_000;

pub struct Wire {
    stdout: Mutex<File>,
    noise: Vec<Noise>,
    ends_when_nobody_reads: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Noise {
    Banner,
    Garbage,
    BadUtf8,
    Batch,
    DupReply,
    UnknownId,
}

impl Wire {
    pub fn new(options: &Options) -> io::Result<Self> {
        let noise = options.modes.iter().filter_map(|mode| match mode {
            Mode::Banner => Some(Noise::Banner),
            Mode::Garbage => Some(Noise::Garbage),
            Mode::BadUtf8 => Some(Noise::BadUtf8),
            Mode::Batch => Some(Noise::Batch),
            Mode::DupReply => Some(Noise::DupReply),
            Mode::UnknownId => Some(Noise::UnknownId),
            _ => None,
        });
        // A plain file: `Stdout` would look for line ends in what is already whole lines.
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self {
            stdout: Mutex::new(stdout),
            noise: noise.collect(),
            ends_when_nobody_reads: !options.has(&Mode::IgnoreEof),
        })
    }

    pub fn send(&self, message: &Value) {
        let is_response = message.get("method").is_none();
        let mut bytes = Vec::with_capacity(256);
        for noise in &self.noise {
            add_noise(*noise, message, is_response, &mut bytes);
        }
        add_line(&mut bytes, message);
        if is_response && self.noise.contains(&Noise::DupReply) {
            add_line(&mut bytes, message);
        }
        self.write(&bytes);
    }

    /// Writes bytes as they are; the caller gives whole lines, or means not to.
    pub fn write(&self, bytes: &[u8]) {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        if stdout.write_all(bytes).is_ok() {
            return;
        }
        if self.ends_when_nobody_reads {
            process::exit(0);
        }
        loop {
            thread::park();
        }
    }
}

fn add_noise(noise: Noise, message: &Value, is_response: bool, bytes: &mut Vec<u8>) {
    let updated_session = message.pointer("/params/sessionId").filter(|_| message["method"] == "session/update");
    match noise {
        Noise::Banner => bytes.extend_from_slice(b"Loaded cached credentials. Welcome!\n"),
        Noise::Garbage => bytes.extend_from_slice(GARBAGE),
        Noise::BadUtf8 => {
            bytes.extend_from_slice(b"\xff\xfe\xfd alone\n");
            if let Some(Value::String(session)) = updated_session {
                let line = update(session, &chunk("bad-?-utf8 ")).to_string().into_bytes();
                bytes.extend(line.into_iter().map(|byte| if byte == b'?' { 0xff } else { byte }));
                bytes.push(b'\n');
            }
        }
        Noise::Batch => {
            let session = updated_session.and_then(Value::as_str).unwrap_or_default();
            add_line(
                bytes,
                &json!([update(session, &chunk("batched")), {"jsonrpc": "2.0", "id": 987_654_321, "result": {}}]),
            );
        }
        Noise::UnknownId if is_response => {
            add_line(bytes, &json!({"jsonrpc": "2.0", "id": 987_654_321, "result": {"stopReason": "end_turn"}}));
            add_line(
                bytes,
                &json!({"jsonrpc": "2.0", "id": "nobody", "error": {"code": -32603, "message": "not yours"}}),
            );
        }
        Noise::UnknownId | Noise::DupReply => {}
    }
}

const GARBAGE: &[u8] = b"}{ not json\n[1,2]\n\"a string\"\nnull\n\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"method\":\n\x00\x1b[31m\x07\n";

pub fn update(session: &str, update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})
}

pub fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn add_line(bytes: &mut Vec<u8>, message: &Value) {
    bytes.extend_from_slice(message.to_string().as_bytes());
    bytes.push(b'\n');
}
