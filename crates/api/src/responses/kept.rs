//! Responses and conversations that can be had again. Memory only, and bounded: what was said is in the session's log, which
//! the id of a response names, so that nothing is lost but the words of the request when one leaves.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_core::model::{Message, Principal};

use super::background::Run;
use super::decode::Conversation;

#[derive(Clone)]
pub(super) struct Kept {
    pub principal: Principal,
    pub stage: Stage,
    /// What was said up to its end, without the instructions of its request.
    pub said: Arc<Conversation>,
    /// How many of those messages came before the answer.
    pub input: usize,
}

#[derive(Clone)]
pub(super) enum Stage {
    /// The response as JSON.
    Over(Bytes),
    /// It goes on without its client, or did.
    Background(Arc<Run>),
    /// No response but a conversation, as JSON.
    Conversation(Bytes),
    Deleted,
}

impl Kept {
    /// What stands in the place of something that was deleted, so that it is not found in the log.
    pub(super) fn deleted(principal: Principal) -> Self {
        Self { principal, stage: Stage::Deleted, said: Arc::default(), input: 0 }
    }

    fn weight(&self) -> usize {
        let body = match &self.stage {
            Stage::Over(body) | Stage::Conversation(body) => body.len(),
            Stage::Background(run) => run.weight(),
            Stage::Deleted => 0,
        };
        ENTRY + body + self.said.messages.iter().map(Message::len).sum::<usize>()
    }
}

/// About what an entry takes beside its texts.
const ENTRY: usize = 1_024;

#[derive(Clone, Copy, Debug)]
pub(super) struct KeptLimits {
    pub bytes: usize,
    pub entries: usize,
}

/// The oldest leave first.
pub(super) struct KeptResponses {
    limits: KeptLimits,
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    /// Each with its weight when it came.
    entries: HashMap<String, (Kept, usize)>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

impl KeptResponses {
    pub(super) fn new(limits: KeptLimits) -> Self {
        Self { limits, index: Mutex::default() }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Kept> {
        let index = self.lock();
        let (kept, _) = index.entries.get(id)?;
        (kept.principal == *principal).then(|| kept.clone())
    }

    pub(super) fn put(&self, id: &str, kept: Kept) {
        let weight = kept.weight();
        let mut index = self.lock();
        index.remove(id);
        index.bytes += weight;
        index.entries.insert(id.to_owned(), (kept, weight));
        index.oldest_first.push_back(id.to_owned());
        while index.bytes > self.limits.bytes || index.entries.len() > self.limits.entries {
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
        if let Some((_, weight)) = self.entries.remove(id) {
            self.bytes -= weight;
            self.oldest_first.retain(|other| other != id);
        }
    }
}
