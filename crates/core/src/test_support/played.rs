//! The session of an agent that a test plays: every order goes to whoever plays it.

use std::sync::Arc;

use crate::BoxFuture;
use crate::driver::{AgentSession, Change, Changed, CloseMode};
use crate::model::{Answer, AskId, Failure, Prompt};

/// What the core told an agent to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Prompt(Prompt),
    Cancel,
    Answer(AskId, Answer),
    Change(Change),
    Close(CloseMode),
    /// Let go without being closed.
    Drop,
}

/// Whoever plays an agent. Called by the session's owner, which must not wait.
pub(super) trait Player: Send + Sync {
    fn order(&self, order: Order) -> Result<(), Failure>;

    fn change(&self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>>;
}

pub(super) struct PlayedSession {
    player: Arc<dyn Player>,
    is_closed: bool,
}

impl PlayedSession {
    pub(super) fn new(player: Arc<dyn Player>) -> Self {
        Self { player, is_closed: false }
    }
}

impl AgentSession for PlayedSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.player.order(Order::Prompt(prompt.clone()))
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.player.order(Order::Cancel)
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        self.player.order(Order::Answer(ask, answer))
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        self.player.change(change)
    }

    fn close(mut self: Box<Self>, close_mode: CloseMode) -> BoxFuture<'static, ()> {
        self.is_closed = true;
        // An agent that is gone is closed.
        self.player.order(Order::Close(close_mode)).ok();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for PlayedSession {
    fn drop(&mut self) {
        if !self.is_closed {
            self.player.order(Order::Drop).ok();
        }
    }
}
