//! The sessions that are more than rows of the database: open for writing, or with entries in the journal only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;

use super::tail::Tail;

#[derive(Default)]
pub(super) struct Sessions {
    slots: Mutex<HashMap<SessionId, Slot>>,
}

struct Slot {
    /// `None` while it is only claimed: then the database has all of the log.
    tail: Option<Arc<Tail>>,
    is_claimed: bool,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tail(&self, id: SessionId) -> Option<Arc<Tail>> {
        self.lock().get(&id).and_then(|slot| slot.tail.clone())
    }

    /// Forgets what is in the database by now, up to segment `number`.
    pub fn archived(&self, ids: impl Iterator<Item = SessionId>, number: u64) {
        let mut slots = self.lock();
        for id in ids {
            let Some(slot) = slots.get(&id) else { continue };
            let is_over = slot.tail.as_ref().is_none_or(|tail| {
                tail.archived(number);
                tail.is_archived()
            });
            if is_over && !slot.is_claimed {
                slots.remove(&id);
            }
        }
        // A burst is over some time.
        if slots.capacity() > 4 * slots.len() + 64 {
            slots.shrink_to_fit();
        }
    }
}

/// The right to write one log. Dropping it gives the right back.
pub(super) struct Claim {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl Claim {
    /// With the log's end, where it is known without the database.
    pub fn take(sessions: &Arc<Sessions>, id: SessionId) -> Result<(Self, Option<Arc<Tail>>), StoreError> {
        let mut slots = sessions.lock();
        let slot = slots.entry(id).or_insert(Slot { tail: None, is_claimed: false });
        if std::mem::replace(&mut slot.is_claimed, true) {
            return Err(StoreError::Refused(format!("session `{id}` is open already")));
        }
        Ok((Self { sessions: Arc::clone(sessions), id }, slot.tail.clone()))
    }

    /// Lets readers find the open log.
    pub fn publish(&self, tail: &Arc<Tail>) {
        if let Some(slot) = self.sessions.lock().get_mut(&self.id) {
            slot.tail = Some(Arc::clone(tail));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut slots = self.sessions.lock();
        let Some(slot) = slots.get_mut(&self.id) else { return };
        slot.is_claimed = false;
        if slot.tail.as_ref().is_none_or(|tail| tail.is_archived()) {
            slots.remove(&self.id);
        }
    }
}
