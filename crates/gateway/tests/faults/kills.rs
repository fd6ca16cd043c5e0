//! Killed at any moment: what was shown is kept, and the turn that was cut off has one end.

use gembridge_core::model::Outcome;
use rustix::process::Signal;
use serde_json::Value;

use crate::history;
use crate::support::home::Home;
use crate::support::run::Ran;

const ROUNDS: usize = 24;

/// The same moments in every run of the test, as far as the machine allows.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What a `stream-json` reader had in hand: the session, and the pieces of the answer.
fn printed(ran: &Ran) -> (Option<String>, String) {
    let whole_lines = ran.stdout.rfind('\n').map_or("", |end| &ran.stdout[..end]);
    let lines: Vec<Value> = whole_lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let session = lines.first().map(|line| line["session_id"].as_str().unwrap().to_owned());
    let pieces = lines.iter().filter(|line| line["type"] == "delta");
    (session, pieces.map(|line| line["delta"]["text"].as_str().unwrap()).collect())
}

#[test]
fn r14_what_was_printed_survives_kill_9_at_any_moment() {
    let home = Home::with_modes("ok");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut cut_off = 0;
    for round in 0..ROUNDS {
        let prompt =
            ["chunks 100000 delay 1", "chunks 20000 size 90 ;; wait-cancel", "burst 3000 ;; wait-cancel"][round % 3];
        let mut run = home.start(&["run", "--output-format", "stream-json", prompt]);
        match dice.below(4) {
            // Anywhere before or around the first words.
            0 => std::thread::sleep(std::time::Duration::from_millis(dice.below(120))),
            _ => run.shows_bytes(usize::try_from(dice.below(30_000)).unwrap()),
        }
        run.signal(Signal::KILL);
        let killed = run.ends();
        assert_eq!(killed.code, None, "round {round}: it was to be killed: {killed:?}");
        let (Some(session), text) = printed(&killed) else { continue };
        cut_off += usize::from(!text.is_empty());

        let before = history::session(&home.state_folder(), &session);
        assert!(history::text(&before).starts_with(&text), "round {round}: printed, and not in the log");
        history::is_in_order(&before);

        for again in ["first", "second"] {
            let ran = home.run(&["run", "--resume", &session, &format!("say {again}")]).succeeds();
            assert_eq!(ran.stdout, format!("{again}\n"), "round {round}");
        }
        let after = history::session(&home.state_folder(), &session);
        history::is_in_order(&after);
        assert_eq!(after[..before.len()], before[..], "round {round}: what was kept is not touched again");
        let (last, earlier) = history::outcomes(&after).split_at_end(2);
        assert!(last.iter().all(|outcome| matches!(outcome, Outcome::Finished(_))), "round {round}: {last:?}");
        // Killed before its prompt was accepted there was no turn to mark.
        assert!(earlier.len() <= 1, "round {round}: {earlier:?}");
        assert!(earlier.iter().all(|outcome| matches!(outcome, Outcome::Interrupted(_))), "round {round}");
        assert!(text.is_empty() || earlier.len() == 1, "round {round}");
        history::database_is_sound(&home.state_folder());
    }
    assert!(cut_off * 3 >= ROUNDS, "only {cut_off} kills came in the middle of an answer");
    home.is_deserted();
    assert!(home.private_folders().is_empty());
}

trait SplitAtEnd<T> {
    /// The last `count`, then the rest.
    fn split_at_end(self, count: usize) -> (Vec<T>, Vec<T>);
}

impl<T> SplitAtEnd<T> for Vec<T> {
    fn split_at_end(mut self, count: usize) -> (Self, Self) {
        let last = self.split_off(self.len() - count);
        (last, self)
    }
}
