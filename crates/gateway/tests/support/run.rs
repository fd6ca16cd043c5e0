//! A run of the binary that a test watches, disturbs and sees end.

use std::fs::File;
use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::terminal;

/// Long enough for a loaded machine; a test that passes never waits for it.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Dropping it kills the binary.
pub struct Running {
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// What a finished run left.
#[derive(Debug)]
pub struct Ran {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub fn start_with_input(mut command: Command, input: &str) -> Self {
        command.stdin(Stdio::piped());
        let mut running = Self::start(command);
        running.child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        running
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `text` is on standard output.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        let came = self.stdout.wait(|output| contains(output, text));
        assert!(came, "`{text}` never came; stdout {:?}, stderr {:?}", self.stdout.so_far(), self.stderr.so_far());
    }

    /// Waits until so many bytes are on standard output, or its end.
    pub fn shows_bytes(&mut self, count: usize) {
        assert!(self.stdout.wait(|output| output.len() >= count) || self.child.try_wait().unwrap().is_some());
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    #[track_caller]
    pub fn ends(mut self) -> Ran {
        let status = wait(&mut self.child)
            .unwrap_or_else(|| panic!("no end; stdout {:?}, stderr {:?}", self.stdout.so_far(), self.stderr.so_far()));
        Ran { code: status.code(), stdout: self.stdout.whole(), stderr: self.stderr.whole() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Failed with one sentence of ours, the last thing that was said; only the log may speak before it.
    #[track_caller]
    pub fn fails(self, code: i32, sentence: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        let ours: Vec<_> = self.stderr.lines().filter(|line| line.starts_with("gembridge: ")).collect();
        assert_eq!(ours.len(), 1, "{}", self.stderr);
        assert!(ours[0].contains(sentence) && self.stderr.trim_end().ends_with(ours[0]), "{}", self.stderr);
        self
    }

    /// Refused with one sentence of ours and nothing on standard output.
    #[track_caller]
    pub fn refused(self, code: i32, sentence: &str) -> Self {
        assert_eq!((self.stdout.as_str(), self.stderr.lines().count()), ("", 1), "{self:?}");
        self.fails(code, sentence)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// The binary as the leader of a session with a terminal of its own.
pub struct InTerminal {
    child: Child,
    /// The far end: when it goes, the terminal is closed.
    screen: File,
    seen: String,
}

impl InTerminal {
    pub fn start(command: &Command) -> Self {
        let (child, screen) = terminal::start(command, "dumb", &[]);
        Self { child, screen, seen: String::new() }
    }

    /// Reads until `text` is on the screen. Blocks as long as the terminal is silent and open.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read_more(), "`{text}` never came; the screen shows {:?}", self.seen);
        }
    }

    pub fn close_terminal(self) -> Child {
        drop(self.screen);
        self.child
    }

    /// Everything that was on the screen, and the exit code.
    pub fn ends(mut self) -> (Option<i32>, String) {
        while self.read_more() {}
        (exit_code(&mut self.child), self.seen)
    }

    fn read_more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // The terminal is gone when its last user is.
        let Ok(read @ 1..) = self.screen.read(&mut bytes) else { return false };
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        true
    }
}

#[track_caller]
pub fn exit_code(child: &mut Child) -> Option<i32> {
    wait(child).expect("no end").code()
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A pipe that is read as it fills, by a thread of its own.
struct Output {
    heard: Arc<(Mutex<Heard>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let heard = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        let told = Arc::clone(&heard);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = pipe.read(&mut bytes).unwrap_or(0);
                let mut heard = told.0.lock().unwrap();
                heard.bytes.extend_from_slice(&bytes[..read]);
                heard.is_over = read == 0;
                told.1.notify_all();
                if heard.is_over {
                    return;
                }
            }
        });
        Self { heard, reader: Some(reader) }
    }

    /// Whether it came to that before the end.
    fn wait(&self, enough: impl Fn(&[u8]) -> bool) -> bool {
        let heard = self.heard.0.lock().unwrap();
        let waits = |heard: &mut Heard| !enough(&heard.bytes) && !heard.is_over;
        let (heard, _) = self.heard.1.wait_timeout_while(heard, PATIENCE, waits).unwrap();
        enough(&heard.bytes)
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.heard.0.lock().unwrap().bytes).into_owned()
    }

    /// Everything up to the end of the pipe: whoever kept it open is part of the fault.
    fn whole(&mut self) -> String {
        assert!(self.wait_for_end(), "the output is still open after the binary has ended");
        self.reader.take().unwrap().join().unwrap();
        String::from_utf8(self.heard.0.lock().unwrap().bytes.clone()).unwrap()
    }

    fn wait_for_end(&self) -> bool {
        let heard = self.heard.0.lock().unwrap();
        let (heard, _) = self.heard.1.wait_timeout_while(heard, PATIENCE, |heard| !heard.is_over).unwrap();
        heard.is_over
    }
}
