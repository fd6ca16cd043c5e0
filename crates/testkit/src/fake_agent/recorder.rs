//! Appends what the agent received to a file that a test reads.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    process,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::options::Options;

pub struct Recorder {
    file: Option<Mutex<File>>,
}

impl Recorder {
    pub fn open(options: &Options) -> io::Result<Self> {
        let file = match &options.record {
            Some(path) => Some(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)),
            None => None,
        };
        let recorder = Self { file };
        let argv: Vec<String> = std::env::args().collect();
        recorder.append(json!({"argv": argv}));
        Ok(recorder)
    }

    pub fn received(&self, line: &[u8], message: Option<&Value>) {
        if self.file.is_none() {
            return;
        }
        match message {
            Some(message) => self.append(json!({"recv": message})),
            None => self.append(json!({"noise": String::from_utf8_lossy(line)})),
        }
    }

    pub fn eof(&self) {
        self.append(json!({"eof": true}));
    }

    fn append(&self, mut entry: Value) {
        let Some(file) = &self.file else { return };
        entry["pid"] = process::id().into();
        let mut line = entry.to_string();
        line.push('\n');
        // One write per line, so that two processes may share the file.
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        if let Err(error) = written {
            eprintln!("fake-agent: the record cannot be written: {error}");
        }
    }
}
