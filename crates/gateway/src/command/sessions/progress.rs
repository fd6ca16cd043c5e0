//! How far a long scan is, on the last line of a terminal.

use std::time::{Duration, Instant};

use crate::render::spinner::CLEAR;
use crate::terminal::{self, Terminal};

/// A scan that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(400);
const PERIOD: Duration = Duration::from_millis(100);
/// The length of the bar, in characters.
const WIDTH: usize = 24;

pub struct Progress {
    is_shown: bool,
    what: &'static str,
    total: usize,
    due: Instant,
    was_shown: bool,
}

impl Progress {
    pub fn new(terminal: Terminal, what: &'static str, total: usize) -> Self {
        let due = Instant::now() + PATIENCE;
        Self { is_shown: terminal.stderr.is_terminal, what, total, due, was_shown: false }
    }

    pub fn at(&mut self, done: usize) {
        let now = Instant::now();
        if self.is_shown && now >= self.due {
            self.due = now + PERIOD;
            self.was_shown = true;
            terminal::write_stderr(&format!("{CLEAR}{}", line(self.what, done, self.total)));
        }
    }

    /// The same where the total becomes known on the way.
    pub fn at_of(&mut self, done: usize, total: usize) {
        self.total = total;
        self.at(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.was_shown {
            terminal::write_stderr(CLEAR);
        }
    }
}

fn line(what: &str, done: usize, total: usize) -> String {
    let full = (done * WIDTH).checked_div(total).unwrap_or(0).min(WIDTH);
    format!("{what} {}{} {done} of {total}", "█".repeat(full), "░".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows_with_what_is_done() {
        assert_eq!(line("reading", 0, 0), format!("reading {} 0 of 0", "░".repeat(24)));
        assert_eq!(line("reading", 1, 2), format!("reading {}{} 1 of 2", "█".repeat(12), "░".repeat(12)));
        assert_eq!(line("reading", 2, 2), format!("reading {} 2 of 2", "█".repeat(24)));
    }
}
