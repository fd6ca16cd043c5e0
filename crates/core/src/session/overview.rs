//! What all sessions do at this moment, for whoever watches them from outside. Each session's owner posts what changed;
//! nobody has to be asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::broadcast;

use super::handle::TurnState;
use super::registry::Viewer;
use crate::model::{Principal, SessionId};
use crate::store::SessionRecord;

/// Changes that a watcher may be behind; then it misses some, is told so, and looks at everything again.
const BEHIND: usize = 1_024;

/// One session, seen from outside.
#[derive(Clone, Debug)]
pub struct SessionView {
    pub record: SessionRecord,
    pub status: SessionStatus,
    pub watchers: Watchers,
}

/// The clients that are there for a session, counted when it is asked: nobody has to be told that one left.
#[derive(Clone, Debug, Default)]
pub struct Watchers(pub(super) Weak<()>);

impl Watchers {
    pub fn count(&self) -> usize {
        self.0.strong_count().saturating_sub(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// On disk only.
    Stored,
    Live {
        turn: TurnState,
        queued: usize,
        open_asks: usize,
        /// Calls that wait for a client to run them.
        parked: usize,
    },
}

impl SessionStatus {
    /// A turn is under way, or its agent is being made ready for it.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Live { turn, .. } if turn != TurnState::Idle)
    }

    /// It goes on only when somebody outside gives an answer or a result.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Live { open_asks, parked, .. } if open_asks + parked > 0)
    }
}

#[derive(Clone, Debug)]
pub enum SessionChange {
    Shown(Arc<SessionView>),
    /// It is gone, its log too.
    Removed {
        id: SessionId,
        principal: Principal,
    },
}

/// A client that watches the list of sessions. It sees their questions, and counts as somebody who can answer them until it
/// is dropped.
pub struct ListWatch {
    pub changes: broadcast::Receiver<SessionChange>,
    _present: Arc<()>,
}

pub(super) struct Overview {
    live: Mutex<HashMap<SessionId, Arc<SessionView>>>,
    changes: broadcast::Sender<SessionChange>,
    /// Those who watch the list, and what they may see. One that is gone leaves with the next that comes.
    watching: Mutex<Vec<(Viewer, Weak<()>)>>,
}

impl Overview {
    pub(super) fn new() -> Self {
        Self { live: Mutex::default(), changes: broadcast::Sender::new(BEHIND), watching: Mutex::default() }
    }

    pub(super) fn post(&self, view: SessionView) {
        let (id, view) = (view.record.id, Arc::new(view));
        match view.status {
            SessionStatus::Live { .. } => drop(self.lock().insert(id, Arc::clone(&view))),
            SessionStatus::Stored => drop(self.lock().remove(&id)),
        }
        self.tell(SessionChange::Shown(view));
    }

    pub(super) fn remove(&self, id: SessionId, principal: Principal) {
        self.lock().remove(&id);
        self.tell(SessionChange::Removed { id, principal });
    }

    pub(super) fn watch(&self, viewer: Viewer) -> ListWatch {
        let present = Arc::new(());
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        watching.retain(|(_, present)| present.strong_count() > 0);
        watching.push((viewer, Arc::downgrade(&present)));
        ListWatch { changes: self.changes.subscribe(), _present: present }
    }

    /// Whether somebody watches the list who may see the sessions of this principal.
    pub(super) fn is_watched_for(&self, principal: &Principal) -> bool {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        watching.iter().any(|(viewer, present)| present.strong_count() > 0 && viewer.may_see(principal))
    }

    pub(super) fn live(&self, id: SessionId) -> Option<Arc<SessionView>> {
        self.lock().get(&id).cloned()
    }

    pub(super) fn all_live(&self) -> Vec<Arc<SessionView>> {
        self.lock().values().cloned().collect()
    }

    /// Nobody may be watching.
    fn tell(&self, change: SessionChange) {
        drop(self.changes.send(change));
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionView>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
