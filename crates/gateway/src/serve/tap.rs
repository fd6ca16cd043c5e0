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
use serde_json::json;
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
        // What is no JSON stands there as a string.
        let raw = serde_json::from_str::<&RawValue>(tapped.message).ok();
        let record = json!({
            "type": tapped.direction.as_str(),
            "at": tapped.at.0,
            "client": tapped.client.0,
            "session": tapped.session,
            "message": raw.map_or_else(|| json!(tapped.message), |raw| json!(raw)),
        });
        let mut line = record.to_string().into_bytes();
        line.push(b'\n');
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = lines.as_ref()
            && let Err(TrySendError::Full(_)) = lines.try_send(line)
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
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
