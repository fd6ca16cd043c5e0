//! `--tap`: every message of ACP clients as one line of JSON, in a file or on standard output.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use gembridge_api::acp::{Tap, Tapped};
use serde::Serialize;
use serde_json::value::RawValue;

/// Lines that wait for the disk; more are dropped and counted, since no client waits for a tap.
const WAITING: usize = 16_384;

pub struct LineTap {
    /// Gone once the tap is closed.
    lines: Mutex<Option<SyncSender<Vec<u8>>>>,
    dropped: AtomicU64,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl LineTap {
    /// `-` is standard output.
    pub fn open(to: &str) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if to == "-" {
            Box::new(io::stdout())
        } else {
            let mut options = OpenOptions::new();
            Box::new(options.create(true).append(true).mode(0o600).open(Path::new(to))?)
        };
        let (lines, waiting) = sync_channel(WAITING);
        let writer = std::thread::Builder::new().name("tap".to_owned()).spawn(move || write(&waiting, out))?;
        let (lines, writer) = (Mutex::new(Some(lines)), Mutex::new(Some(writer)));
        Ok(Self { lines, dropped: AtomicU64::new(0), writer })
    }

    /// Writes what waits, and ends.
    pub fn close(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the tap's thread panicked");
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "the tap could not keep up; some messages are missing in it");
        }
    }
}

impl Tap for LineTap {
    fn message(&self, tapped: &Tapped<'_>) {
        let line = record(tapped);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = lines.as_ref()
            && let Err(TrySendError::Full(_)) = lines.try_send(line)
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One line of the tap.
#[derive(Serialize)]
struct Record<'a> {
    r#type: &'a str,
    at: u64,
    client: u64,
    session: Option<&'a str>,
    message: Message<'a>,
}

/// The message as the bytes it came as; what is no JSON stands there as a string.
#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

fn record(tapped: &Tapped<'_>) -> Vec<u8> {
    let raw = serde_json::from_str::<&RawValue>(tapped.message);
    let record = Record {
        r#type: tapped.direction.as_str(),
        at: tapped.at.0,
        client: tapped.client.0,
        session: tapped.session,
        message: raw.map_or(Message::Text(tapped.message), Message::Json),
    };
    let mut line = serde_json::to_vec(&record).expect("strings and whole numbers always serialise");
    // A message may span lines where JSON allows blank space; a record does not.
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line
}

fn write(waiting: &Receiver<Vec<u8>>, out: Box<dyn Write + Send>) {
    let mut out = BufWriter::new(out);
    while let Ok(line) = waiting.recv() {
        let mut written = out.write_all(&line);
        while let (Ok(()), Ok(line)) = (&written, waiting.try_recv()) {
            written = out.write_all(&line);
        }
        if let Err(error) = written.and_then(|()| out.flush()) {
            tracing::error!(%error, "the tap cannot be written; it ends here");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use gembridge_api::acp::Direction;
    use gembridge_core::model::{ClientId, Timestamp};

    use super::*;

    #[test]
    fn f15_a_message_stands_in_its_record_as_the_bytes_it_came_as() {
        for (message, stands) in [
            ("{\"id\":1e400}", "{\"id\":1e400}"),
            ("{\n\"at\":\r1.50}", "{ \"at\": 1.50}"),
            ("no \"json\"", r#""no \"json\"""#),
        ] {
            let (client, at) = (ClientId(7), Timestamp(9));
            let tapped = Tapped { direction: Direction::Client, client, session: None, at, message };
            assert_eq!(
                String::from_utf8(record(&tapped)).unwrap(),
                format!(
                    "{{\"type\":\"client:message\",\"at\":9,\"client\":7,\"session\":null,\"message\":{stands}}}\n"
                )
            );
        }
    }
}
