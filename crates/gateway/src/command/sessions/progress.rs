//! How far a long scan is, on the last line of a terminal.

use std::time::{Duration, Instant};

use crate::render::spinner::CLEAR;
use crate::terminal::{self, Terminal};

/// A scan that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(400);
const PERIOD: Duration = Duration::from_millis(100);

pub struct Progress {
    is_shown: bool,
    total: usize,
    due: Instant,
    was_shown: bool,
}

impl Progress {
    pub fn new(terminal: Terminal, total: usize) -> Self {
        Self { is_shown: terminal.stderr.is_terminal, total, due: Instant::now() + PATIENCE, was_shown: false }
    }

    pub fn at(&mut self, done: usize) {
        let now = Instant::now();
        if self.is_shown && now >= self.due {
            self.due = now + PERIOD;
            self.was_shown = true;
            terminal::write_stderr(&format!("{CLEAR}reading sessions: {done} of {}", self.total));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.was_shown {
            terminal::write_stderr(CLEAR);
        }
    }
}
