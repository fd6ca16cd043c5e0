//! What the answers of a turn took so far, while the turn waits for its client: the next answer counts on from there.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::conversations::Held;
use super::token_count::TokenCount;
use crate::model::{SessionId, TurnId};

/// Turns that are remembered. For one more the oldest is forgotten; its next answer is counted as if it were the first.
const MOST: usize = 4_096;

#[derive(Default)]
pub(super) struct ParkedTurnTokens {
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    taken: HashMap<(SessionId, TurnId), TokenCount>,
    /// In the order in which they came, also of some that are gone.
    order: VecDeque<(SessionId, TurnId)>,
}

impl ParkedTurnTokens {
    pub(super) fn note(&self, turn: Held, taken: TokenCount) {
        let key = (turn.session, turn.turn);
        let mut turns = self.lock();
        if turns.taken.insert(key, taken).is_none() {
            turns.order.push_back(key);
        }
        while turns.order.len() > MOST {
            if let Some(oldest) = turns.order.pop_front() {
                turns.taken.remove(&oldest);
            }
        }
    }

    /// Stays until the turn is over: a client may ask for the same answer again.
    pub(super) fn find(&self, turn: Held) -> Option<TokenCount> {
        self.lock().taken.get(&(turn.session, turn.turn)).copied()
    }

    pub(super) fn forget(&self, turn: Held) {
        self.lock().taken.remove(&(turn.session, turn.turn));
    }

    /// Never held across an await.
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_turn_is_forgotten_for_one_more() {
        let (ledger, session) = (ParkedTurnTokens::default(), SessionId::new());
        let turn = |turn: usize| Held { session, turn: TurnId(turn as u64) };
        let taken = TokenCount { input: 7, ..TokenCount::default() };
        for number in 0..=MOST {
            ledger.note(turn(number), taken);
        }
        assert_eq!(ledger.find(turn(0)), None);
        assert_eq!((ledger.find(turn(1)), ledger.find(turn(MOST))), (Some(taken), Some(taken)));
        ledger.forget(turn(1));
        assert_eq!(ledger.find(turn(1)), None);
    }
}
