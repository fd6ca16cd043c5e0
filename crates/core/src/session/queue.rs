//! Prompts that wait for the turn before them. Some agents drop the running turn when a second prompt comes, so a
//! prompt on a busy session waits here.

use std::collections::VecDeque;
use std::time::Duration;

use crate::admission::{Permit, Waiter};
use crate::error::Error;
use crate::log::weight_of_prompt;
use crate::model::{Prompt, TurnId};
use crate::tool_host::Offer;

pub(super) struct Waiting {
    pub turn: TurnId,
    pub prompt: Prompt,
    pub memory: Memory,
    pub attempt: Attempt,
    /// What the agent shall be offered from here on, where the prompt says so.
    pub offer: Option<Box<Offer>>,
    pub pass: Pass,
}

/// Whether the agent may take the turn.
pub(super) enum Pass {
    /// Not yet: it waits, for its session first and then for a permit.
    Awaited(Waiter),
    Granted(Permit),
}

/// What becomes of a prompt whose agent knows nothing of the turns before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The agent is told of them with the prompt.
    Replayed,
    /// The prompt makes no sense to it.
    Needed,
    /// The prompt tells of them itself.
    InPrompt,
    /// The prompt is a command that the agent runs: it has to stand alone.
    Unneeded,
}

/// Whether the agent was asked before, and died before it gave any sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Second,
}

pub(super) struct PromptQueue {
    waiting: VecDeque<Waiting>,
    limit: usize,
    byte_limit: usize,
}

impl PromptQueue {
    pub(super) fn new(limit: usize, byte_limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit, byte_limit }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether this one may wait as well. One prompt may always wait, however long it is.
    pub(super) fn check(&self, prompt: &Prompt) -> Result<(), Error> {
        let bytes: usize =
            self.waiting.iter().map(|waiting| &waiting.prompt).chain([prompt]).map(weight_of_prompt).sum();
        if self.waiting.is_empty() && self.limit > 0 || self.waiting.len() < self.limit && bytes <= self.byte_limit {
            return Ok(());
        }
        Err(Error::Busy { what: "the session's queue of prompts", retry_after: Duration::from_secs(5) })
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    pub(super) fn holds(&self, turn: TurnId) -> bool {
        self.waiting.iter().any(|waiting| waiting.turn == turn)
    }

    /// Takes a waiting turn out of the queue.
    pub(super) fn remove(&mut self, turn: TurnId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.turn == turn)?;
        self.waiting.remove(at)
    }
}
