//! Sessions made ahead. To begin one is a matter of the disk, and a client that says a first thing should not wait for
//! it: whoever began a session lately finds the next one made. A spare that nobody took is deleted again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Exchanges;
use super::conversations::Owner;
use crate::driver::SlashCommands;
use crate::error::Error;
use crate::session::{NewSession, SessionHandle};

#[derive(Default)]
pub(super) struct PremadeSessions {
    stock: Mutex<HashMap<Owner, Stock>>,
}

/// The spares of one owner.
#[derive(Default)]
struct Stock {
    ready: VecDeque<Spare>,
    /// On their way.
    making: usize,
}

struct Spare {
    handle: SessionHandle,
    made: Instant,
}

/// So many for each owner.
const OF_EACH: usize = 2;
/// So many in all; beyond that sessions are made when they are needed.
const IN_ALL: usize = 64;
/// An older one may be about to leave the memory.
const TOO_OLD: Duration = Duration::from_mins(10);

impl PremadeSessions {
    fn take(&self, owner: &Owner) -> Taken {
        let mut all = self.lock();
        let mut taken = Taken::default();
        let Some(stock) = all.get_mut(owner) else { return taken };
        while let Some(spare) = stock.ready.pop_front() {
            if spare.made.elapsed() < TOO_OLD && !spare.handle.is_closed() {
                taken.spare = Some(spare.handle);
                break;
            }
            taken.stale.push(spare.handle);
        }
        taken
    }

    /// Whether one more shall be made; then it counts as on its way.
    fn order(&self, owner: &Owner) -> bool {
        let mut all = self.lock();
        let in_all: usize = all.values().map(Stock::len).sum();
        let of_owner = all.get(owner).map_or(0, Stock::len);
        if in_all >= IN_ALL || of_owner >= OF_EACH {
            return false;
        }
        all.retain(|_, stock| stock.len() > 0);
        all.entry(owner.clone()).or_default().making += 1;
        true
    }

    fn deliver(&self, owner: Owner, made: Option<SessionHandle>) {
        let mut all = self.lock();
        let stock = all.entry(owner).or_default();
        stock.making = stock.making.saturating_sub(1);
        stock.ready.extend(made.map(|handle| Spare { handle, made: Instant::now() }));
    }

    fn drain(&self) -> Vec<SessionHandle> {
        self.lock().drain().flat_map(|(_, stock)| stock.ready).map(|spare| spare.handle).collect()
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Stock>> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    fn len(&self) -> usize {
        self.ready.len() + self.making
    }
}

#[derive(Default)]
struct Taken {
    spare: Option<SessionHandle>,
    stale: Vec<SessionHandle>,
}

impl Exchanges {
    /// A session in which nothing was said: one made ahead, or a new one. The next is made meanwhile.
    pub(super) async fn fresh_session(self: &Arc<Self>, owner: &Owner) -> Result<SessionHandle, Error> {
        let taken = self.premade.take(owner);
        self.put_away(taken.stale);
        match taken.spare {
            Some(spare) => Ok(spare),
            None => self.create(owner).await,
        }
    }

    /// Makes the next session of this owner ahead of time.
    pub(super) fn make_next(self: &Arc<Self>, owner: &Owner) {
        if !self.premade.order(owner) {
            return;
        }
        let (app, owner) = (Arc::clone(self), owner.clone());
        self.tasks.spawn(async move {
            let made = app.create(&owner).await;
            let made = made.inspect_err(|error| tracing::debug!(%error, "no session could be made ahead of time"));
            app.premade.deliver(owner, made.ok());
        });
    }

    /// Deletes sessions in which nothing was said, beside whatever else happens.
    pub(super) fn put_away(self: &Arc<Self>, unused: Vec<SessionHandle>) {
        if !unused.is_empty() {
            let app = Arc::clone(self);
            self.tasks.spawn(async move { app.discard(unused).await });
        }
    }

    /// Deletes every session that was made and not used.
    pub(super) async fn discard_premade(&self) {
        self.discard(self.premade.drain()).await;
    }

    async fn discard(&self, unused: Vec<SessionHandle>) {
        for handle in unused {
            let closed = handle.close().await;
            let deleted = match closed {
                // At the end of the gateway they are closed before they come here.
                Ok(()) | Err(Error::Closed) => self.sessions.store().delete(handle.id()).await.map_err(Error::Store),
                Err(error) => Err(error),
            };
            if let Err(error) = deleted {
                tracing::debug!(session = %handle.id(), %error, "an unused session is left behind");
            }
        }
    }

    pub(super) async fn create(&self, owner: &Owner) -> Result<SessionHandle, Error> {
        let new = NewSession {
            principal: owner.principal.clone(),
            agent: owner.agent.clone(),
            workspace: None,
            model: owner.model.clone(),
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        self.sessions.create(new).await
    }
}
