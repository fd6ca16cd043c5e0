//! Takes out text that an agent sends twice.
//!
//! Some agents ask their model again when a stream breaks, and send what comes without saying so: the reader sees the
//! beginning of the answer a second time. The retry waits at least about a second first, and then repeats from the
//! start of the stretch. So after a pause, text that runs along the stretch from its start is held back; if it
//! repeats all of it, it is dropped, and if it leaves the track, it is let go as it came.

use std::time::Duration;

use gembridge_core::driver::Update;
use gembridge_core::model::Event;
use tokio::time::Instant;

/// A retry never comes sooner than this after the text before it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(900);
/// A shorter stretch is not looked for: the model's own next words may well begin with it.
const SHORTEST_STRETCH: usize = 8;
/// Longer stretches are not remembered: their repeats come through.
const LONGEST_STRETCH: usize = 256 * 1024;

#[derive(Default)]
pub(super) struct RetryDedup {
    /// The text since the turn began or a tool last ran.
    stretch: String,
    last: Option<Instant>,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Following,
    /// These came after a pause and match the stretch up to `matched`.
    Suspecting { held: Vec<Update>, matched: usize },
    /// The stretch grew too long to remember.
    GaveUp,
}

impl RetryDedup {
    /// What of `update` goes on now: itself, nothing, or what was held and itself.
    pub(super) fn pass(&mut self, update: Update, now: Instant, out: &mut Vec<Update>) {
        let Event::Text(text) = &update.event else {
            if matches!(update.event, Event::ToolCall(_) | Event::Asked(_)) {
                self.reset(out);
            }
            out.push(update);
            return;
        };
        let text = text.to_str().into_owned();
        let paused = self.last.is_some_and(|last| now.duration_since(last) >= SHORTEST_PAUSE);
        self.last = Some(now);
        if paused && matches!(self.state, State::Following) && self.stretch.len() >= SHORTEST_STRETCH {
            self.state = State::Suspecting { held: Vec::new(), matched: 0 };
        }
        match &mut self.state {
            State::GaveUp => out.push(update),
            State::Following => {
                self.remember(&text);
                out.push(update);
            }
            State::Suspecting { held, matched } => {
                let rest = &self.stretch[*matched..];
                if let Some(new) = text.strip_prefix(rest) {
                    // All of it came again: what goes beyond is new.
                    self.state = State::Following;
                    if !new.is_empty() {
                        self.remember(new);
                        out.push(Update::ours(Event::Text(new.into())));
                    }
                } else if rest.starts_with(text.as_str()) {
                    *matched += text.len();
                    held.push(update);
                } else {
                    out.append(held);
                    let again = self.stretch[..*matched].to_owned();
                    self.state = State::Following;
                    self.remember(&again);
                    self.remember(&text);
                    out.push(update);
                }
            }
        }
    }

    /// The turn is over, or a tool ran: what is held was no repeat, and a new stretch begins.
    pub(super) fn reset(&mut self, out: &mut Vec<Update>) {
        if let State::Suspecting { held, .. } = &mut self.state {
            out.append(held);
        }
        *self = Self::default();
    }

    fn remember(&mut self, text: &str) {
        if self.stretch.len() + text.len() > LONGEST_STRETCH {
            self.stretch = String::new();
            self.state = State::GaveUp;
        } else if matches!(self.state, State::Following) {
            self.stretch.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `(seconds, text)` and returns the text that comes through.
    fn check(pieces: &[(f64, &str)], expected: &str) {
        let start = Instant::now();
        let mut filter = RetryDedup::default();
        let mut out = Vec::new();
        for (at, text) in pieces {
            let update = Update::ours(Event::Text((*text).into()));
            filter.pass(update, start + Duration::from_secs_f64(*at), &mut out);
        }
        filter.reset(&mut out);
        let through: String = out
            .iter()
            .map(|update| match &update.event {
                Event::Text(text) => text.to_str().into_owned(),
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        assert_eq!(through, expected);
    }

    #[test]
    fn a_retried_stream_is_shown_once() {
        check(
            &[(0.0, "part1 "), (0.1, "part2 "), (1.2, "part1 "), (1.3, "part2 "), (3.4, "part1 part2 "), (3.5, "end")],
            "part1 part2 end",
        );
    }

    #[test]
    fn a_retry_may_cut_its_pieces_elsewhere() {
        check(&[(0.0, "one "), (0.1, "two "), (1.4, "one two th"), (1.5, "ree")], "one two three");
        check(&[(0.0, "one two "), (1.2, "o"), (1.3, "ne two "), (1.4, "three")], "one two three");
    }

    #[test]
    fn repetition_without_a_pause_is_the_models_own() {
        check(&[(0.0, "no "), (0.1, "no "), (0.2, "no ")], "no no no ");
    }

    #[test]
    fn a_word_that_begins_like_the_little_before_it_is_the_models_own() {
        check(&[(0.0, "#"), (2.0, "## Title")], "### Title");
    }

    #[test]
    fn text_that_leaves_the_track_is_let_go_whole() {
        check(&[(0.0, "one two "), (2.0, "one "), (2.1, "three")], "one two one three");
    }

    #[test]
    fn what_is_held_at_the_end_of_a_turn_comes_out() {
        check(&[(0.0, "one two "), (2.0, "one ")], "one two one ");
    }
}
