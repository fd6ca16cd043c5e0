//! The thread that writes the log, and the bounded queue that leads to it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::file::{RotatingFile, Sink};
use super::record::{AUDIT, Fields, MESSAGE, Record};
use super::{json, text};
use crate::config::settings::Level;

/// Records that may wait for the thread; one more is dropped and counted.
const QUEUE: usize = 4096;

/// How long records gather. The end of the program waits as long, once it has logged anything.
const GATHER: Duration = Duration::from_millis(5);

/// Records that are written with one write at most.
const TOGETHER: usize = 64;

/// Near what the line of a record takes.
const LINE: usize = 512;

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A file that failed is left alone for this long.
const RETRY: Duration = Duration::from_secs(5);

/// What standard error gets.
#[derive(Clone, Copy)]
pub struct Stderr {
    pub level: Level,
    pub is_coloured: bool,
}

pub struct Files<S = RotatingFile> {
    pub all: Option<S>,
    pub errors: Option<S>,
    pub audit: Option<S>,
}

/// The end of the queue that code logs into.
#[derive(Clone)]
pub struct Sender {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Record(Box<Record>),
    /// Everything before this is to be written, then the answer sent.
    Finish(SyncSender<()>),
}

impl Sender {
    pub fn send(&self, record: Record) {
        if self.queue.try_send(Message::Record(Box::new(record))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The running log.
pub struct Log {
    sender: Option<Sender>,
}

impl Log {
    /// No log at all.
    pub fn none() -> Self {
        Self { sender: None }
    }

    /// Waits, for a bounded time, until everything logged so far is written.
    pub fn finish(&self) {
        let Some(sender) = &self.sender else { return };
        let (done, written) = sync_channel(1);
        let deadline = Instant::now() + LAST_LINES;
        let mut message = Message::Finish(done);
        // The queue may be full for a moment; a writer that is stuck must not keep the program from ending.
        while Instant::now() < deadline {
            match sender.queue.try_send(message) {
                Ok(()) => match written.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                    Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
                },
                Err(std::sync::mpsc::TrySendError::Full(back)) => message = back,
                Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return,
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The owner of the files and of standard error.
pub struct Writer<S, E> {
    files: [Option<Guarded<S>>; 3],
    stderr: Stderr,
    write_stderr: E,
    dropped: Arc<AtomicU64>,
    reported: u64,
}

impl<S: Sink + 'static, E: Fn(&str) + Send + 'static> Writer<S, E> {
    /// Starts the thread. It ends when the last sender is gone.
    pub fn start(files: Files<S>, stderr: Stderr, write_stderr: E) -> io::Result<(Sender, Log)> {
        let (queue, records) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let guarded = |sink: Option<S>, wants| sink.map(|sink| Guarded { sink, wants, state: Health::Good });
        let files = [
            guarded(files.all, Wants::Log(Level::Debug)),
            guarded(files.errors, Wants::Log(Level::Error)),
            guarded(files.audit, Wants::Audit),
        ];
        let mut writer = Self { files, stderr, write_stderr, dropped: Arc::clone(&dropped), reported: 0 };
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&records))?;
        let sender = Sender { queue, dropped };
        Ok((sender.clone(), Log { sender: Some(sender) }))
    }

    fn run(&mut self, records: &Receiver<Message>) {
        while let Ok(message) = records.recv() {
            self.take([message]);
            // Where one record comes, more do. Gathered for a moment, they need not wake this thread one by one, which
            // would cost whoever logs more than the record itself.
            thread::sleep(GATHER);
            loop {
                let gathered: Vec<_> = records.try_iter().take(TOGETHER).collect();
                if gathered.is_empty() {
                    break;
                }
                self.take(gathered);
            }
        }
    }

    fn take(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut records = Vec::new();
        for message in messages {
            match message {
                Message::Record(record) => records.push(*record),
                Message::Finish(done) => {
                    self.write(&std::mem::take(&mut records), Instant::now());
                    // Whoever asked may have stopped waiting.
                    done.try_send(()).unwrap_or_default();
                }
            }
        }
        self.write(&records, Instant::now());
    }

    /// Writes these records to each place that wants them with one write.
    fn write(&mut self, records: &[Record], now: Instant) {
        self.report_dropped(now);
        let mut is_shown: Vec<_> =
            records.iter().map(|record| record.level <= self.stderr.level && !record.is_for_audit_alone()).collect();
        let mut shown = String::new();
        let mut lines = Vec::with_capacity(records.len() * LINE);
        for file in self.files.iter_mut().flatten() {
            lines.clear();
            for record in records.iter().filter(|record| file.wants.includes(record)) {
                json::line(&mut lines, record);
            }
            if lines.is_empty() {
                continue;
            }
            let is_lost = match file.append(&lines, now) {
                Appended::Written => false,
                Appended::Failed(error) => {
                    let name = file.sink.name();
                    let trouble = "it goes to standard error until that works";
                    shown.extend([
                        "gembridge: cannot write the log to `",
                        &name,
                        "`: ",
                        &error.to_string(),
                        "; ",
                        trouble,
                        "\n",
                    ]);
                    true
                }
                Appended::Skipped => true,
                Appended::Recovered => {
                    shown.extend(["gembridge: the log goes to `", &file.sink.name(), "` again\n"]);
                    false
                }
            };
            for (record, is_shown) in records.iter().zip(&mut is_shown) {
                *is_shown |= is_lost && file.wants.includes(record);
            }
        }
        for (record, _) in records.iter().zip(is_shown).filter(|(_, is_shown)| *is_shown) {
            text::line(&mut shown, record, self.stderr.is_coloured);
        }
        if !shown.is_empty() {
            (self.write_stderr)(&shown);
        }
    }

    fn report_dropped(&mut self, now: Instant) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped == self.reported {
            return;
        }
        let message = format!(
            "{} log lines were dropped, since they came faster than they could be written",
            dropped - self.reported
        );
        self.reported = dropped;
        let report = Record {
            at: jiff::Timestamp::now(),
            level: Level::Warn,
            target: "gembridge::logging",
            fields: Fields::from_iter([(MESSAGE, message.as_str())]),
            spans: Vec::new(),
        };
        self.write(&[report], now);
    }
}

/// A sink that is left alone for a while after it failed.
struct Guarded<S> {
    sink: S,
    wants: Wants,
    state: Health,
}

/// What goes into a file.
#[derive(Clone, Copy)]
enum Wants {
    /// The log, down to this level.
    Log(Level),
    Audit,
}

impl Wants {
    fn includes(self, record: &Record) -> bool {
        match self {
            Self::Log(least) => record.level <= least && !record.is_for_audit_alone(),
            Self::Audit => record.target == AUDIT,
        }
    }
}

enum Health {
    Good,
    Bad { retry_at: Instant },
}

enum Appended {
    Written,
    /// The first failure: worth a word.
    Failed(io::Error),
    Skipped,
    Recovered,
}

impl<S: Sink> Guarded<S> {
    fn append(&mut self, line: &[u8], now: Instant) -> Appended {
        let was_good = match self.state {
            Health::Bad { retry_at } if now < retry_at => return Appended::Skipped,
            Health::Bad { .. } => false,
            Health::Good => true,
        };
        let appended = self.sink.append(line);
        self.state = if appended.is_ok() { Health::Good } else { Health::Bad { retry_at: now + RETRY } };
        match (appended, was_good) {
            (Ok(()), true) => Appended::Written,
            (Ok(()), false) => Appended::Recovered,
            (Err(error), true) => Appended::Failed(error),
            (Err(_), false) => Appended::Skipped,
        }
    }
}

#[cfg(test)]
mod tests;
