//! Which logs are open: one writer for each, and readers that find it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;

use super::Disk;
use super::live::Live;

#[derive(Default)]
pub(super) struct Claims {
    held: Mutex<HashMap<SessionId, Option<Arc<Live>>>>,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Option<Arc<Live>>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn live(&self, id: SessionId) -> Option<Arc<Live>> {
        self.lock().get(&id).cloned().flatten()
    }
}

/// The right to write one log. Dropping it gives the right back.
pub(super) struct Claim {
    disk: Arc<Disk>,
    id: SessionId,
}

impl Claim {
    pub fn take(disk: &Arc<Disk>, id: SessionId) -> Result<Self, StoreError> {
        match disk.claims.lock().entry(id) {
            Entry::Occupied(_) => Err(StoreError::Refused(format!("session `{id}` is open already"))),
            Entry::Vacant(place) => {
                place.insert(None);
                Ok(Self { disk: Arc::clone(disk), id })
            }
        }
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// Lets readers find the open log.
    pub fn publish(&self, live: &Arc<Live>) {
        self.disk.claims.lock().insert(self.id, Some(Arc::clone(live)));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.disk.claims.lock().remove(&self.id);
    }
}
