//! What can be read of a session without asking its task, which would cost each request a wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::exchange::Owner;
use crate::store::SessionRecord;

/// Written by the session's task alone.
#[derive(Debug)]
pub(super) struct PublishedState {
    owner: RwLock<Owner>,
    awaits_results: AtomicBool,
    has_agent: AtomicBool,
}

impl PublishedState {
    pub(super) fn of(record: &SessionRecord) -> Self {
        let (principal, agent, model) = (record.principal.clone(), record.agent.clone(), record.model.clone());
        Self {
            owner: RwLock::new(Owner { principal, agent, model }),
            awaits_results: AtomicBool::new(false),
            has_agent: AtomicBool::new(false),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_model(&self, model: Arc<str>) {
        self.owner.write().unwrap_or_else(PoisonError::into_inner).model = Some(model);
    }

    pub(super) fn awaits_results(&self) -> bool {
        self.awaits_results.load(Ordering::Acquire)
    }

    /// Comes before the log tells of it, so that nobody who was told of a call reads here that none waits.
    pub(super) fn set_awaits_results(&self, awaits: bool) {
        self.awaits_results.store(awaits, Ordering::Release);
    }

    pub(super) fn has_agent(&self) -> bool {
        self.has_agent.load(Ordering::Relaxed)
    }

    pub(super) fn set_has_agent(&self, has_agent: bool) {
        self.has_agent.store(has_agent, Ordering::Relaxed);
    }
}
