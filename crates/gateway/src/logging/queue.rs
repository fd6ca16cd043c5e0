//! The thread that writes the log, and the bounded queue that leads to it.
//!
//! `tracing-appender` is not used: it aborts the program if its thread cannot start, may print to standard output at the
//! end, needs a thread for each file, and has nothing for lines whose file cannot be written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use super::file::{RotatingFile, Sink};
use super::{format, level_of};
use crate::config::settings::Level;

/// Lines that may wait for the thread; one more is dropped and counted.
const QUEUE: usize = 4096;

/// How long lines gather. The end of the program waits as long, once it has logged anything.
const GATHER: Duration = Duration::from_millis(5);

/// Lines that are written with one write at most.
const TOGETHER: usize = 64;

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A file that failed is left alone for this long.
const RETRY: Duration = Duration::from_secs(5);

/// What standard error shows by itself.
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

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    All,
    Errors,
    Audit,
    Stderr,
}

pub struct Line {
    pub to: Destination,
    /// Standard error shows a line of this level too, in its own format.
    pub is_shown: bool,
    pub bytes: Vec<u8>,
}

/// The end of the queue that code logs into.
#[derive(Clone)]
pub struct Sender {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Line(Line),
    /// Everything before this is to be written, then the answer sent.
    Finish(SyncSender<()>),
}

impl Sender {
    pub fn send(&self, line: Line) {
        if self.queue.try_send(Message::Line(line)).is_err() {
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

/// A line at a time from one layer of the subscriber into the queue.
pub struct Lines {
    pub queue: Sender,
    pub to: Destination,
    /// What standard error shows by itself of what goes here.
    pub shown: Level,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { lines: self, is_shown: false }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        let is_shown = level_of(metadata).is_some_and(|level| level <= self.shown);
        LineWriter { lines: self, is_shown }
    }
}

pub struct LineWriter<'a> {
    lines: &'a Lines,
    is_shown: bool,
}

impl io::Write for LineWriter<'_> {
    /// The subscriber writes each line whole.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.queue.send(Line { to: self.lines.to, is_shown: self.is_shown, bytes: bytes.to_vec() });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The owner of the files and of standard error.
pub struct Writer<S, E> {
    files: [(Destination, Option<Guarded<S>>); 3],
    stderr: Stderr,
    write_stderr: E,
    dropped: Arc<AtomicU64>,
    reported: u64,
}

impl<S: Sink + 'static, E: Fn(&str) + Send + 'static> Writer<S, E> {
    /// Starts the thread. It ends when the last sender is gone.
    pub fn start(files: Files<S>, stderr: Stderr, write_stderr: E) -> io::Result<(Sender, Log)> {
        let (queue, lines) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let mut writer = Self::new(files, stderr, write_stderr, Arc::clone(&dropped));
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&lines))?;
        let sender = Sender { queue, dropped };
        Ok((sender.clone(), Log { sender: Some(sender) }))
    }

    fn new(files: Files<S>, stderr: Stderr, write_stderr: E, dropped: Arc<AtomicU64>) -> Self {
        let guarded = |sink: Option<S>| sink.map(|sink| Guarded { sink, state: Health::Good });
        let files = [
            (Destination::All, guarded(files.all)),
            (Destination::Errors, guarded(files.errors)),
            (Destination::Audit, guarded(files.audit)),
        ];
        Self { files, stderr, write_stderr, dropped, reported: 0 }
    }

    fn run(&mut self, lines: &Receiver<Message>) {
        while let Ok(message) = lines.recv() {
            self.take([message]);
            // Where one line comes, more do. Gathered for a moment, they need not wake this thread one by one, which
            // would cost the thread that logs more than the line itself.
            thread::sleep(GATHER);
            loop {
                let gathered: Vec<_> = lines.try_iter().take(TOGETHER).collect();
                if gathered.is_empty() {
                    break;
                }
                self.take(gathered);
            }
        }
    }

    fn take(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut lines = Vec::new();
        for message in messages {
            match message {
                Message::Line(line) => lines.push(line),
                Message::Finish(done) => {
                    self.write(&std::mem::take(&mut lines), Instant::now());
                    // The caller may have stopped waiting.
                    done.try_send(()).unwrap_or_default();
                }
            }
        }
        self.write(&lines, Instant::now());
    }

    /// Writes these lines to each destination with one write.
    fn write(&mut self, lines: &[Line], now: Instant) {
        self.report_dropped(now);
        let mut stderr = String::new();
        for (to, file) in &mut self.files {
            let Some(file) = file else { continue };
            let of_file = || lines.iter().filter(|line| line.to == *to);
            if of_file().next().is_none() {
                continue;
            }
            let bytes: Vec<u8> = of_file().flat_map(|line| &line.bytes).copied().collect();
            let name = file.sink.name();
            let (is_lost, notice) = match file.append(&bytes, now) {
                Appended::Written => (false, String::new()),
                Appended::Failed(error) => {
                    let way_out = "it goes to standard error until that works";
                    (true, format!("gembridge: cannot write the log to `{name}`: {error}; {way_out}\n"))
                }
                Appended::Skipped => (true, String::new()),
                Appended::Recovered => (false, format!("gembridge: the log goes to `{name}` again\n")),
            };
            stderr += &notice;
            if is_lost {
                for line in of_file().filter(|line| !line.is_shown) {
                    stderr += &String::from_utf8_lossy(&line.bytes);
                }
            }
        }
        for line in lines.iter().filter(|line| line.to == Destination::Stderr) {
            stderr += &String::from_utf8_lossy(&line.bytes);
        }
        if !stderr.is_empty() {
            (self.write_stderr)(&stderr);
        }
    }

    fn report_dropped(&mut self, now: Instant) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let unreported = dropped - self.reported;
        if unreported == 0 {
            return;
        }
        self.reported = dropped;
        let message = format!("{unreported} log lines were dropped, since they came faster than they could be written");
        let (json, text) = format::notice(&message, self.stderr.is_coloured);
        let is_shown = Level::Warn <= self.stderr.level;
        let mut lines = vec![Line { to: Destination::All, is_shown, bytes: json.into_bytes() }];
        if is_shown {
            lines.push(Line { to: Destination::Stderr, is_shown, bytes: text.into_bytes() });
        }
        self.write(&lines, now);
    }
}

/// A sink that is left alone for a while after it failed.
struct Guarded<S> {
    sink: S,
    state: Health,
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
