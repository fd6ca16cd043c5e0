//! How many sessions of one agent may be open at once: in all, of guests, and of one guest's key. Whoever asks for one
//! more waits until a session ends, or an idle one was closed at the agent for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_api::identity::{Identity, Rank};
use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, CloseMode, Driver, Opened, SessionSpec};
use gembridge_core::model::{
    AgentFacts, AgentName, Answer, AskId, Failure, FailureKind, Principal, Prompt, SessionFacts,
};
use tokio::sync::{Notify, oneshot};

use super::openings::Openings;
use crate::keys::FileKeys;

/// Longer than any session takes to close.
const PATIENCE: Duration = Duration::from_secs(10);

/// When a request that found no room may come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An agent whose open sessions are bounded.
pub struct CappedDriver {
    inner: Arc<dyn Driver>,
    agent: AgentName,
    keys: Arc<FileKeys>,
    cap: SessionCap,
    openings: Arc<Openings>,
}

impl CappedDriver {
    pub fn new(
        inner: Arc<dyn Driver>,
        agent: AgentName,
        keys: &Arc<FileKeys>,
        cap: SessionCap,
        openings: &Arc<Openings>,
    ) -> Self {
        Self { inner, agent, keys: Arc::clone(keys), cap, openings: Arc::clone(openings) }
    }

    async fn permit(&self, owner: Identity) -> Result<Permit, Failure> {
        let waiting = match self.cap.enter(owner) {
            Entered::Admitted(permit) => return Ok(permit),
            Entered::Waits(waiting) => waiting,
        };
        // The sender goes only with an answer, so that only the wait can fail.
        match tokio::time::timeout(PATIENCE, waiting.admitted).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(self.refusal(waiting.obstacle)),
        }
    }

    fn refusal(&self, obstacle: Obstacle) -> Failure {
        let (agent, most) = (&self.agent, self.cap.shared.limits.each);
        let plural = if most == 1 { "" } else { "s" };
        match obstacle {
            Obstacle::Key => Failure::new(
                FailureKind::QuotaReached { retry_after: RETRY_AFTER },
                format!(
                    "this key has {most} session{plural} of agent `{agent}` at work, as many as it may have; try again \
                     when one of its turns has ended, or ask the operator to raise `limits.sessions_per_key`"
                ),
            ),
            Obstacle::Guests => Failure::new(
                FailureKind::Unavailable { retry_after: RETRY_AFTER },
                format!(
                    "all sessions of agent `{agent}` that are not left to admin keys are in use; try again in a second"
                ),
            ),
            Obstacle::All => Failure::new(
                FailureKind::Unavailable { retry_after: RETRY_AFTER },
                format!("all sessions of agent `{agent}` are in use; try again in a second"),
            ),
        }
    }
}

impl Driver for CappedDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move {
            let principal = spec.principal.clone();
            let (permit, opened) = if self.keys.is_operator(&principal) {
                let permit = self.permit(Identity { principal, rank: Rank::Admin }).await?;
                (permit, self.inner.open(spec).await?)
            } else {
                // Counted before an idle session has to give way for it.
                self.openings.count(&principal)?;
                let permit = self.permit(Identity { principal: principal.clone(), rank: Rank::User }).await?;
                let _opening = self.openings.begin(&principal).await?;
                (permit, self.inner.open(spec).await?)
            };
            Ok(Opened { agent: Box::new(CappedSession { inner: opened.agent, permit }), ..opened })
        })
    }

    fn facts(&self) -> Option<AgentFacts> {
        self.inner.facts()
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        self.inner.offers()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.inner.shutdown()
    }
}

/// A session that gives its permit back when it ends.
struct CappedSession {
    inner: Box<dyn AgentSession>,
    permit: Permit,
}

impl AgentSession for CappedSession {
    fn process(&self) -> Option<u32> {
        self.inner.process()
    }

    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.inner.prompt(prompt)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.inner.cancel()
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        self.inner.answer(ask, answer)
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        self.inner.change(change)
    }

    fn close(self: Box<Self>, parting: CloseMode) -> BoxFuture<'static, ()> {
        let Self { inner, permit } = *self;
        let closing = inner.close(parting);
        Box::pin(async move {
            closing.await;
            drop(permit);
        })
    }
}

/// What may be had of something that operators and guests share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allotment {
    pub all: usize,
    /// All guests together; an eighth is left to operators.
    pub guests: usize,
    /// One guest's key; a third where the settings do not say.
    pub each: usize,
}

impl Allotment {
    pub fn of(all: usize, each: Option<usize>) -> Self {
        let all = all.max(1);
        let guests = (all - (all / 8).max(1)).max(1);
        Self { all, guests, each: each.unwrap_or(all / 3).clamp(1, guests) }
    }
}

/// Counts the open sessions of one agent. All clones are one.
#[derive(Clone)]
pub struct SessionCap {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Allotment,
    open: Mutex<Open>,
    /// Told when somebody waits.
    wanted: Arc<Notify>,
}

#[derive(Default)]
struct Open {
    all: usize,
    guests: usize,
    of_key: HashMap<Principal, usize>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    owner: Identity,
    admit: oneshot::Sender<Permit>,
}

/// Which bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Key,
    Guests,
    All,
}

/// Somebody who waits for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    pub owner: Identity,
    pub obstacle: Obstacle,
}

/// One open session. Dropping it lets the next one in.
struct Permit {
    shared: Arc<Shared>,
    owner: Identity,
}

enum Entered {
    Admitted(Permit),
    Waits(Waiter),
}

struct Waiter {
    admitted: oneshot::Receiver<Permit>,
    obstacle: Obstacle,
}

impl SessionCap {
    pub fn new(limits: Allotment, wanted: Arc<Notify>) -> Self {
        Self { shared: Arc::new(Shared { limits, open: Mutex::default(), wanted }) }
    }

    /// Those who wait now, operators first, each with what stands in its way once those before it have what they want.
    pub fn demands(&self) -> Vec<Demand> {
        let mut open = self.shared.lock();
        open.waiting.retain(|waiting| !waiting.admit.is_closed());
        let (operators, guests): (Vec<_>, Vec<_>) =
            open.waiting.iter().map(|waiting| &waiting.owner).partition(|owner| owner.rank == Rank::Admin);
        let obstacle = |owner: &Identity| open.obstacle(owner, &self.shared.limits).unwrap_or(Obstacle::All);
        let demand = |owner: &Identity| Demand { owner: owner.clone(), obstacle: obstacle(owner) };
        operators.into_iter().chain(guests).map(demand).collect()
    }

    /// Open sessions by key.
    pub fn by_key(&self) -> HashMap<Principal, usize> {
        self.shared.lock().of_key.clone()
    }

    fn enter(&self, owner: Identity) -> Entered {
        let mut open = self.shared.lock();
        let Some(obstacle) = open.obstacle(&owner, &self.shared.limits) else {
            open.take(&owner);
            return Entered::Admitted(Permit { shared: Arc::clone(&self.shared), owner });
        };
        let (admit, admitted) = oneshot::channel();
        open.waiting.push_back(Waiting { owner, admit });
        drop(open);
        self.shared.wanted.notify_one();
        Entered::Waits(Waiter { admitted, obstacle })
    }
}

impl Shared {
    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn obstacle(&self, owner: &Identity, limits: &Allotment) -> Option<Obstacle> {
        let of_key = self.of_key.get(&owner.principal).copied().unwrap_or(0);
        match owner.rank {
            Rank::User if of_key >= limits.each => Some(Obstacle::Key),
            Rank::User if self.guests >= limits.guests => Some(Obstacle::Guests),
            Rank::User | Rank::Admin => (self.all >= limits.all).then_some(Obstacle::All),
        }
    }

    fn take(&mut self, owner: &Identity) {
        self.all += 1;
        self.guests += usize::from(owner.rank == Rank::User);
        *self.of_key.entry(owner.principal.clone()).or_default() += 1;
    }

    fn give_back(&mut self, owner: &Identity) {
        self.all -= 1;
        self.guests -= usize::from(owner.rank == Rank::User);
        if let Some(of_key) = self.of_key.get_mut(&owner.principal) {
            *of_key -= 1;
            if *of_key == 0 {
                self.of_key.remove(&owner.principal);
            }
        }
    }

    /// The next one that may have a session: operators first, then in the order in which they came.
    fn next(&mut self, limits: &Allotment) -> Option<Waiting> {
        let may = |waiting: &Waiting| self.obstacle(&waiting.owner, limits).is_none();
        let is_operator = |waiting: &Waiting| waiting.owner.rank == Rank::Admin;
        let first = self.waiting.iter().position(|waiting| is_operator(waiting) && may(waiting));
        let at = first.or_else(|| self.waiting.iter().position(may))?;
        self.waiting.remove(at)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut admitted = Vec::new();
        let mut open = self.shared.lock();
        open.give_back(&self.owner);
        while let Some(Waiting { owner, admit }) = open.next(&self.shared.limits) {
            open.take(&owner);
            admitted.push((admit, Permit { shared: Arc::clone(&self.shared), owner }));
        }
        drop(open);
        for (admit, permit) in admitted {
            // One that has left gives its permit back to the next.
            drop(admit.send(permit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str, rank: Rank) -> Identity {
        Identity { principal: Principal::new(name), rank }
    }

    fn admitted(cap: &SessionCap, name: &str, rank: Rank) -> Permit {
        match cap.enter(who(name, rank)) {
            Entered::Admitted(permit) => permit,
            Entered::Waits(waiter) => panic!("{name} waits for {:?}", waiter.obstacle),
        }
    }

    fn waits(cap: &SessionCap, name: &str, rank: Rank) -> Waiter {
        match cap.enter(who(name, rank)) {
            Entered::Admitted(_) => panic!("{name} was let in"),
            Entered::Waits(waiter) => waiter,
        }
    }

    #[test]
    fn an_allotment_leaves_something_to_everybody() {
        for (all, each, expected) in
            [(84, None, (74, 28)), (12, None, (11, 4)), (12, Some(100), (11, 11)), (2, None, (1, 1)), (1, None, (1, 1))]
        {
            let Allotment { guests, each, .. } = Allotment::of(all, each);
            assert_eq!((guests, each), expected, "{all}");
        }
    }

    #[test]
    fn f6_a_key_has_its_share_guests_theirs_and_operators_the_rest() {
        let cap = SessionCap::new(Allotment::of(12, None), Arc::default());
        let mut held: Vec<_> = (0..4).map(|_| admitted(&cap, "ann", Rank::User)).collect();
        let ann = waits(&cap, "ann", Rank::User);
        assert_eq!(ann.obstacle, Obstacle::Key);
        held.extend((0..7).map(|number| admitted(&cap, &format!("guest-{number}"), Rank::User)));
        let bob = waits(&cap, "bob", Rank::User);
        assert_eq!(bob.obstacle, Obstacle::Guests);
        let operator = admitted(&cap, "op", Rank::Admin);
        let mut second = waits(&cap, "op", Rank::Admin);
        assert_eq!(second.obstacle, Obstacle::All);
        assert_eq!(cap.demands()[0].owner.principal, Principal::new("op"), "operators first");
        drop(held.pop());
        let second = second.admitted.try_recv().expect("operators go first, though it came last");
        assert_eq!(cap.demands().len(), 2);
        drop((operator, second, ann, bob));
        assert_eq!(cap.demands(), [], "those that left are not waited for");
    }

    #[test]
    fn a_permit_for_one_that_has_left_goes_to_the_next() {
        let cap = SessionCap::new(Allotment::of(2, None), Arc::default());
        let held = admitted(&cap, "ann", Rank::User);
        let gone = waits(&cap, "bob", Rank::User);
        let mut next = waits(&cap, "cat", Rank::User);
        drop(gone);
        drop(held);
        assert!(next.admitted.try_recv().is_ok());
        assert_eq!(cap.by_key(), HashMap::new(), "its permit was dropped with it");
    }
}
