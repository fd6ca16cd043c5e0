//! Reads what a `fake-agent --record FILE` received, and waits for what is still to come.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Long enough for a machine that does many things at once; a test that passes never waits for it.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// A record file, which may not exist yet.
#[derive(Debug, Clone)]
pub struct Record {
    path: PathBuf,
}

/// One line of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub pid: u32,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A process started, with these arguments.
    Started(Vec<String>),
    /// A JSON message came in.
    Received(Value),
    /// A line came in that is no JSON.
    Noise(String),
    /// Stdin ended.
    Eof,
}

impl Record {
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything so far; a line that is still being written is left for later.
    pub fn entries(&self) -> Vec<Entry> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Entry::parse).collect()
    }

    /// The messages received so far, by all processes that share the file.
    pub fn messages(&self) -> Vec<Value> {
        let received = self.entries().into_iter().filter_map(|entry| match entry.event {
            Event::Received(message) => Some(message),
            Event::Started(_) | Event::Noise(_) | Event::Eof => None,
        });
        received.collect()
    }

    /// The messages of one method.
    pub fn messages_of(&self, method: &str) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// The arguments of each process, in the order of their starts.
    pub fn starts(&self) -> Vec<Vec<String>> {
        let starts = self.entries().into_iter().filter_map(|entry| match entry.event {
            Event::Started(argv) => Some(argv),
            Event::Received(_) | Event::Noise(_) | Event::Eof => None,
        });
        starts.collect()
    }

    /// Waits for the `nth` message, counted from 1.
    pub fn wait_for_message(&self, nth: usize) -> Value {
        self.wait(&format!("message {nth}"), |record| record.messages().into_iter().nth(nth - 1))
    }

    /// Waits for the `nth` message of a method, counted from 1.
    pub fn wait_for(&self, method: &str, nth: usize) -> Value {
        self.wait(&format!("`{method}` {nth}"), |record| record.messages_of(method).into_iter().nth(nth - 1))
    }

    /// Waits for the `nth` process, counted from 1, and gives its arguments.
    pub fn wait_for_start(&self, nth: usize) -> Vec<String> {
        self.wait(&format!("start {nth}"), |record| record.starts().into_iter().nth(nth - 1))
    }

    /// Looks again and again until something is found. Blocks: from async code call it in `spawn_blocking`.
    pub fn wait<T>(&self, wanted: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < deadline, "{wanted} never reached the agent; it received {:#?}", self.entries());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Entry {
    fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let pid = value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
        let event = match (&value["argv"], value.get("recv"), &value["noise"]) {
            (Value::Array(argv), ..) => {
                Event::Started(argv.iter().filter_map(|argument| argument.as_str().map(str::to_owned)).collect())
            }
            (_, Some(message), _) => Event::Received(message.clone()),
            (_, _, Value::String(line)) => Event::Noise(line.clone()),
            _ => Event::Eof,
        };
        Self { pid, event }
    }
}
