//! What moves while the agent starts, so that nobody takes the wait for a hang.

use std::time::Duration;

use crate::terminal::escape;

/// How often a frame is due.
pub const PERIOD: Duration = Duration::from_millis(100);

/// Takes the spinner off the line.
pub const CLEAR: &str = "\r\u{1b}[2K";

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The line after `waited`; it replaces the one before. For terminals only.
pub fn frame(what: &str, waited: Duration) -> String {
    let step = waited.as_millis() / PERIOD.as_millis();
    let frame = FRAMES[usize::try_from(step % FRAMES.len() as u128).unwrap_or(0)];
    let seconds = waited.as_secs();
    let since = if seconds == 0 { String::new() } else { format!(" {seconds} s") };
    format!("{CLEAR}{frame} {}…{since}", escape::line(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_moves_and_tells_the_seconds() {
        assert_eq!(frame("starting gemini", Duration::ZERO), "\r\u{1b}[2K⠋ starting gemini…");
        assert_eq!(frame("starting gemini", Duration::from_millis(3_150)), "\r\u{1b}[2K⠙ starting gemini… 3 s");
    }
}
