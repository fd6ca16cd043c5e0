//! Which live session already holds what a client says again and again.
//!
//! A client of a stateless dialect sends its whole history each time. A fingerprint of the history finds the session
//! that holds exactly that, and only what is new goes to the agent. A session is taken out when it is used and put
//! back under its new history when the turn ended well: whoever comes with an older history gets a session of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fingerprint::{FINGERPRINT_KEY, Fingerprint, Key, Mark};
use crate::model::{AgentName, Principal, SessionId, TurnId};

/// Whose conversations with what. Sessions never cross from one owner to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub principal: Principal,
    pub agent: AgentName,
    pub model: Option<Arc<str>>,
}

/// A session and the last turn of the history that it is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub session: SessionId,
    pub turn: TurnId,
}

/// How many conversations are remembered. The one that was used longest ago is forgotten first; its next request
/// begins a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationLimits {
    pub owners: usize,
    pub of_each: usize,
}

impl Default for ConversationLimits {
    fn default() -> Self {
        Self { owners: 1_024, of_each: 256 }
    }
}

pub struct Conversations {
    key: Key,
    limits: ConversationLimits,
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    owners: HashMap<Owner, Rack>,
    /// Counts uses, to tell which owner was here longest ago.
    uses: u64,
}

/// What one owner's sessions hold, the one used last at the end.
#[derive(Default)]
struct Rack {
    entries: VecDeque<(Mark, Held)>,
    used: u64,
}

impl Conversations {
    pub fn new(limits: ConversationLimits) -> Self {
        Self { key: Key::random(), limits, index: Mutex::default() }
    }

    /// The same, with fingerprints that other gateways compute alike.
    pub fn keyed(limits: ConversationLimits, key: &[u8; FINGERPRINT_KEY]) -> Self {
        Self { key: Key::of(key), limits, index: Mutex::default() }
    }

    /// The fingerprint of a conversation in which nothing was said yet.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(&self.key)
    }

    /// The fingerprint of bytes as they are.
    pub fn mark_of(&self, bytes: &[u8]) -> Mark {
        self.key.mark_of(bytes)
    }

    /// Takes the session that holds exactly this history. Nobody else gets it until it is put back.
    pub fn claim(self: &Arc<Self>, owner: &Owner, mark: Mark) -> Option<Claim> {
        let held = self.lock().take(owner, mark)?;
        Some(Claim { home: Arc::clone(self), owner: owner.clone(), mark, held: Some(held) })
    }

    /// The session holds this history now.
    pub fn remember(&self, owner: &Owner, mark: Mark, held: Held) {
        self.lock().put(owner, mark, held, self.limits);
    }

    /// Whatever was known of the session is not true any more.
    pub fn forget(&self, owner: &Owner, session: SessionId) {
        if let Some(rack) = self.lock().owners.get_mut(owner) {
            rack.entries.retain(|(_, held)| held.session != session);
        }
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn take(&mut self, owner: &Owner, mark: Mark) -> Option<Held> {
        let rack = self.owners.get_mut(owner)?;
        let at = rack.entries.iter().rposition(|(kept, _)| *kept == mark)?;
        rack.entries.remove(at).map(|(_, held)| held)
    }

    fn put(&mut self, owner: &Owner, mark: Mark, held: Held, limits: ConversationLimits) {
        self.uses += 1;
        if !self.owners.contains_key(owner) {
            self.make_room(limits.owners);
        }
        let rack = self.owners.entry(owner.clone()).or_default();
        rack.used = self.uses;
        rack.entries.retain(|(_, kept)| kept.session != held.session);
        rack.entries.push_back((mark, held));
        while rack.entries.len() > limits.of_each.max(1) {
            rack.entries.pop_front();
        }
    }

    fn make_room(&mut self, limit: usize) {
        self.owners.retain(|_, rack| !rack.entries.is_empty());
        while self.owners.len() >= limit.max(1) {
            let oldest = self.owners.iter().min_by_key(|(_, rack)| rack.used).map(|(owner, _)| owner.clone());
            match oldest {
                Some(oldest) => self.owners.remove(&oldest),
                None => return,
            };
        }
    }
}

/// A session that is taken out for one request. Dropped unused, it goes back.
pub struct Claim {
    home: Arc<Conversations>,
    owner: Owner,
    mark: Mark,
    held: Option<Held>,
}

impl Claim {
    /// The same, if it is this session; another one goes back.
    pub fn spend_if(self, session: SessionId) -> Option<Held> {
        if self.held.is_some_and(|held| held.session == session) { self.spend() } else { None }
    }

    /// From here on the session moves on, or turned out to be of no use.
    pub fn spend(mut self) -> Option<Held> {
        self.held.take()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.home.remember(&self.owner, self.mark, held);
        }
    }
}
