//! Responses that can be had again. Memory only, and bounded: what a conversation was is in the session's log, which the id
//! of a response names, so that nothing is lost but the words of the request when one leaves.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_core::model::{Message, Principal};

use super::decode::Conversation;

/// One response.
#[derive(Clone)]
pub(super) struct Kept {
    pub principal: Principal,
    pub stage: Stage,
    /// The `input` of its request, as JSON.
    pub input: Bytes,
    /// What was said up to its end, without the instructions of its request.
    pub said: Arc<Conversation>,
}

#[derive(Clone)]
pub(super) enum Stage {
    /// The response as JSON.
    Over(Bytes),
    Deleted,
}

impl Kept {
    fn weight(&self) -> usize {
        let body = match &self.stage {
            Stage::Over(body) => body.len(),
            Stage::Deleted => 0,
        };
        ENTRY + body + self.input.len() + self.said.messages.iter().map(Message::len).sum::<usize>()
    }
}

/// About what an entry takes beside its texts.
const ENTRY: usize = 1_024;

#[derive(Clone, Copy, Debug)]
pub(super) struct KeptLimits {
    pub bytes: usize,
    pub responses: usize,
}

/// The oldest leave first.
pub(super) struct KeptResponses {
    limits: KeptLimits,
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    responses: HashMap<String, Kept>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

impl KeptResponses {
    pub(super) fn new(limits: KeptLimits) -> Self {
        Self { limits, index: Mutex::default() }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Kept> {
        self.lock().responses.get(id).filter(|kept| kept.principal == *principal).cloned()
    }

    pub(super) fn put(&self, id: &str, kept: Kept) {
        let mut index = self.lock();
        index.remove(id);
        index.bytes += kept.weight();
        index.responses.insert(id.to_owned(), kept);
        index.oldest_first.push_back(id.to_owned());
        while index.bytes > self.limits.bytes || index.responses.len() > self.limits.responses {
            let Some(oldest) = index.oldest_first.front().cloned() else { return };
            index.remove(&oldest);
        }
    }

    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn remove(&mut self, id: &str) {
        if let Some(kept) = self.responses.remove(id) {
            self.bytes = self.bytes.saturating_sub(kept.weight());
            self.oldest_first.retain(|other| other != id);
        }
    }
}
