//! What the session shows of itself to those who watch all sessions.

use super::{Actor, Stage};
use crate::session::handle::TurnState;
use crate::session::overview::{SessionStatus, SessionView, Watchers};

/// What changes often, and is cheap to compare.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StatusKey {
    turn: TurnState,
    queued: usize,
    open_asks: usize,
    parked: usize,
}

impl Actor {
    /// Posts what changed since the last time, if anything did.
    pub(super) fn show(&mut self) {
        self.published.set_has_agent(!self.agent.is_absent());
        let status_key = self.status_key();
        if self.shown != Some(status_key) {
            self.shown = Some(status_key);
            let StatusKey { turn, queued, open_asks, parked } = status_key;
            let status = SessionStatus::Live { turn, queued, open_asks, parked };
            self.overview.post(SessionView { record: self.record.clone(), status, watchers: self.presence.watchers() });
        }
    }

    /// The session leaves the memory.
    pub(super) fn show_departure(&self) {
        self.overview.post(SessionView {
            record: self.record.clone(),
            status: SessionStatus::Stored,
            watchers: Watchers::default(),
        });
    }

    fn status_key(&self) -> StatusKey {
        let (turn, open_asks, parked) = match &self.stage {
            Stage::Idle | Stage::Settling { .. } => (TurnState::Idle, 0, 0),
            Stage::Admitting(waiting) | Stage::Opening(waiting) | Stage::Offering { waiting, .. } => {
                (TurnState::Opening(waiting.turn), 0, 0)
            }
            Stage::Running { turn, .. } => {
                (TurnState::Running(turn.id()), turn.open_asks().count(), turn.parked_calls().count())
            }
        };
        StatusKey { turn, queued: self.queue.len(), open_asks, parked }
    }
}
