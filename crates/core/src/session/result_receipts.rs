//! Which results clients gave: whoever sends the same again, because the answer got lost on its way, rejoins the turn.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use crate::model::{CallId, Seq, ToolReturn, TurnId};

/// Results that are remembered; whoever repeats an older one is told that nothing waits for it.
const MOST: usize = 1_024;

/// What was given in turns that run or ended well. Results may be large, so only their digests are kept.
#[derive(Default)]
pub(super) struct ResultReceipts {
    receipts: VecDeque<Receipt>,
    random: RandomState,
}

struct Receipt {
    call: CallId,
    digest: Digest,
    /// Where whoever gave it reads on.
    after: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl ResultReceipts {
    pub(super) fn digest(&self, result: &ToolReturn) -> Digest {
        Digest(self.random.hash_one(result))
    }

    pub(super) fn note(&mut self, call: CallId, digest: Digest, after: Seq) {
        if self.receipts.len() >= MOST {
            self.receipts.pop_front();
        }
        self.receipts.push_back(Receipt { call, digest, after });
    }

    /// Where to read on after this very result, if it was given before.
    pub(super) fn after(&self, call: CallId, digest: Digest) -> Option<Seq> {
        let receipt = self.receipts.iter().rev().find(|receipt| receipt.call == call)?;
        (receipt.digest == digest).then_some(receipt.after)
    }

    /// The turn ended badly: what was given to it led to nothing that could be read again.
    pub(super) fn forget(&mut self, turn: TurnId) {
        self.receipts.retain(|receipt| receipt.call.turn() != turn);
    }
}
