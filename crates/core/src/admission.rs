//! Which turn an agent runs next: so many turns at once, a queue for each principal, and the queues take turns.
//!
//! Asked by the session's actor alone. A prompt that waits behind another turn of its session is counted as waiting, so
//! that queues stay bounded, but it neither holds a permit nor competes for one before it is at the head of its session.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::model::Principal;

#[derive(Clone, Debug)]
pub struct AdmissionLimits {
    /// Turns that run at once.
    pub running: usize,
    /// Turns of one principal that wait.
    pub waiting: usize,
    /// Turns of all principals that wait.
    pub waiting_in_all: usize,
    pub shares: Shares,
    /// What guests may have of `running`, where they may not have all.
    pub guests: Option<GuestLimits>,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self { running: 64, waiting: 256, waiting_in_all: 4_096, shares: Shares::default(), guests: None }
    }
}

/// What principals may have of something who are not the operator.
#[derive(Clone)]
pub struct GuestLimits {
    pub each: usize,
    /// All of them at once; the rest is left to the operator.
    pub together: usize,
    pub is_guest: Arc<dyn Fn(&Principal) -> bool + Send + Sync>,
}

impl fmt::Debug for GuestLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { each, together, .. } = self;
        f.debug_struct("GuestLimits").field("each", each).field("together", together).finish_non_exhaustive()
    }
}

/// What one principal gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Queues of a higher priority go first, as long as anybody waits in them.
    pub priority: i8,
    pub running: Option<usize>,
    pub waiting: Option<usize>,
}

/// Principals with limits of their own. All clones are one list: what is replaced in it holds for whoever comes next.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    of: Arc<RwLock<HashMap<Principal, Share>>>,
}

impl Shares {
    pub fn replace(&self, shares: HashMap<Principal, Share>) {
        *self.of.write().unwrap_or_else(PoisonError::into_inner) = shares;
    }

    fn get(&self, principal: &Principal) -> Share {
        self.of.read().unwrap_or_else(PoisonError::into_inner).get(principal).copied().unwrap_or_default()
    }
}

impl FromIterator<(Principal, Share)> for Shares {
    fn from_iter<I: IntoIterator<Item = (Principal, Share)>>(shares: I) -> Self {
        Self { of: Arc::new(RwLock::new(shares.into_iter().collect())) }
    }
}

/// The queues of one agent. Cheap to clone; all clones are the same queues.
#[derive(Clone)]
pub struct Admission {
    shared: Arc<Shared>,
}

struct Shared {
    limits: AdmissionLimits,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    running: usize,
    waiting: usize,
    of: HashMap<Principal, Queue>,
    /// The principals in whose queue somebody is; the first is next.
    order: VecDeque<Principal>,
    next_ticket: u64,
}

#[derive(Default)]
struct Queue {
    running: usize,
    /// All that wait, also those that wait for their session and are not in `queued` yet.
    waiting: usize,
    queued: VecDeque<Queued>,
}

struct Queued {
    ticket: u64,
    admit: oneshot::Sender<()>,
}

/// No room to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} turns wait already; try again in {} s", retry_after.as_secs().max(1))]
pub struct QueueFull {
    pub waiting: usize,
    pub retry_after: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStatus {
    pub running: usize,
    pub waiting: usize,
}

/// Nothing is known of how long the others take; clients double it by themselves.
const RETRY_AFTER: Duration = Duration::from_secs(2);

impl Default for Admission {
    fn default() -> Self {
        Self::new(AdmissionLimits::default())
    }
}

impl Admission {
    pub fn new(limits: AdmissionLimits) -> Self {
        Self { shared: Arc::new(Shared { limits, queues: Mutex::default() }) }
    }

    /// A permit, where nobody is before this principal and there is room.
    pub fn try_admit(&self, principal: &Principal) -> Option<Permit> {
        let limits = &self.shared.limits;
        let mut queues = self.shared.lock();
        let has_room = queues.order.is_empty()
            && queues.running < limits.running.max(1)
            && queues.is_open_to(principal, limits)
            && queues.running_of(principal) < limits.most_running(principal);
        has_room.then(|| {
            queues.count_running(principal);
            self.permit(principal)
        })
    }

    /// A permit in any case: for a turn that goes on by itself after it had given its permit back.
    pub(crate) fn admit_beyond_limit(&self, principal: &Principal) -> Permit {
        self.shared.lock().count_running(principal);
        self.permit(principal)
    }

    /// Counts one more as waiting. It competes for a permit once [`Waiter::enter`] was called.
    pub fn wait(&self, principal: &Principal) -> Result<Waiter, QueueFull> {
        let mut queues = self.shared.lock();
        queues.check(principal, &self.shared.limits)?;
        queues.waiting += 1;
        queues.of.entry(principal.clone()).or_default().waiting += 1;
        Ok(Waiter { shared: Arc::clone(&self.shared), principal: principal.clone(), state: State::Counted })
    }

    /// Whether this principal could have a permit now, or wait for one.
    pub fn check(&self, principal: &Principal) -> Result<(), QueueFull> {
        match self.try_admit(principal) {
            Some(_given_back) => Ok(()),
            None => self.shared.lock().check(principal, &self.shared.limits),
        }
    }

    pub fn status(&self) -> AdmissionStatus {
        let queues = self.shared.lock();
        AdmissionStatus { running: queues.running, waiting: queues.waiting }
    }

    fn permit(&self, principal: &Principal) -> Permit {
        Permit { shared: Arc::clone(&self.shared), principal: principal.clone() }
    }
}

impl AdmissionLimits {
    fn most_running(&self, principal: &Principal) -> usize {
        let of_guest = self.guest_limits(principal).map_or(usize::MAX, |guests| guests.each.min(guests.together));
        let of_share = self.shares.get(principal).running.unwrap_or(self.running);
        of_share.min(of_guest).clamp(1, self.running.max(1))
    }

    fn guest_limits(&self, principal: &Principal) -> Option<&GuestLimits> {
        self.guests.as_ref().filter(|guests| (guests.is_guest)(principal))
    }

    fn most_waiting(&self, principal: &Principal) -> usize {
        self.shares.get(principal).waiting.unwrap_or(self.waiting)
    }
}

impl Shared {
    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn running_of(&self, principal: &Principal) -> usize {
        self.of.get(principal).map_or(0, |queue| queue.running)
    }

    fn count_running(&mut self, principal: &Principal) {
        self.running += 1;
        self.of.entry(principal.clone()).or_default().running += 1;
    }

    fn check(&self, principal: &Principal, limits: &AdmissionLimits) -> Result<(), QueueFull> {
        let own = self.of.get(principal).map_or(0, |queue| queue.waiting);
        if own < limits.most_waiting(principal) && self.waiting < limits.waiting_in_all {
            return Ok(());
        }
        let waiting = if own < limits.most_waiting(principal) { self.waiting } else { own };
        Err(QueueFull { waiting, retry_after: RETRY_AFTER })
    }

    /// Whether one more turn leaves the operator what guests may not have. One guest may always have one turn.
    fn is_open_to(&self, principal: &Principal, limits: &AdmissionLimits) -> bool {
        let Some(guests) = limits.guest_limits(principal) else { return true };
        if self.running < guests.together {
            return true;
        }
        let queues = self.of.iter().filter(|(principal, _)| (guests.is_guest)(principal));
        let running: usize = queues.map(|(_, queue)| queue.running).sum();
        running == 0 || running < guests.together
    }

    fn enter(&mut self, principal: &Principal, admit: oneshot::Sender<()>) -> u64 {
        self.next_ticket += 1;
        let queue = self.of.entry(principal.clone()).or_default();
        if queue.queued.is_empty() {
            self.order.push_back(principal.clone());
        }
        queue.queued.push_back(Queued { ticket: self.next_ticket, admit });
        self.next_ticket
    }

    /// Admits whoever is next, as long as there is room.
    fn admit(&mut self, limits: &AdmissionLimits) {
        while let Some(at) = self.next(limits) {
            let Some(principal) = self.order.remove(at) else { return };
            let Some(queue) = self.of.get_mut(&principal) else { return };
            let Some(queued) = queue.queued.pop_front() else { return };
            queue.running += 1;
            queue.waiting -= 1;
            self.running += 1;
            self.waiting -= 1;
            if !queue.queued.is_empty() {
                self.order.push_back(principal);
            }
            // A waiter leaves its queue before it drops its end, so somebody hears this.
            queued.admit.send(()).ok();
        }
    }

    /// The queue whose turn it is among those that may have more running.
    fn next(&self, limits: &AdmissionLimits) -> Option<usize> {
        if self.running >= limits.running.max(1) {
            return None;
        }
        let may_run = |principal: &Principal| {
            self.running_of(principal) < limits.most_running(principal) && self.is_open_to(principal, limits)
        };
        let able = self.order.iter().enumerate().filter(|(_, principal)| may_run(principal));
        let priority = |principal: &Principal| limits.shares.get(principal).priority;
        able.min_by_key(|(at, principal)| (std::cmp::Reverse(priority(principal)), *at)).map(|(at, _)| at)
    }

    /// Takes a waiter out of its queue. Whether it was still in it.
    fn leave(&mut self, principal: &Principal, ticket: u64) -> bool {
        let Some(queue) = self.of.get_mut(principal) else { return false };
        let Some(at) = queue.queued.iter().position(|queued| queued.ticket == ticket) else { return false };
        queue.queued.remove(at);
        if queue.queued.is_empty() {
            self.order.retain(|waiting| waiting != principal);
        }
        self.count_left(principal);
        true
    }

    fn count_left(&mut self, principal: &Principal) {
        self.waiting -= 1;
        self.change(principal, |queue| queue.waiting -= 1);
    }

    fn release(&mut self, principal: &Principal) {
        self.running -= 1;
        self.change(principal, |queue| queue.running -= 1);
    }

    /// Changes a principal's queue, and forgets it once it is empty.
    fn change(&mut self, principal: &Principal, change: impl FnOnce(&mut Queue)) {
        let Some(queue) = self.of.get_mut(principal) else { return };
        change(queue);
        if queue.running == 0 && queue.waiting == 0 {
            self.of.remove(principal);
        }
    }
}

/// Somebody who waits for a permit. Dropped, it waits no more.
pub struct Waiter {
    shared: Arc<Shared>,
    principal: Principal,
    state: State,
}

enum State {
    /// Counted as waiting, in no queue yet.
    Counted,
    Queued {
        ticket: u64,
        admitted: oneshot::Receiver<()>,
    },
    /// The permit was handed over.
    Over,
}

impl Waiter {
    /// Competes for a permit from now on. The waiter resolves when it has one. Entering twice changes nothing.
    pub fn enter(&mut self) {
        if !matches!(self.state, State::Counted) {
            return;
        }
        let (admit, admitted) = oneshot::channel();
        let mut queues = self.shared.lock();
        let ticket = queues.enter(&self.principal, admit);
        queues.admit(&self.shared.limits);
        drop(queues);
        self.state = State::Queued { ticket, admitted };
    }

    /// The permit, if it is there.
    pub fn try_take(&mut self) -> Option<Permit> {
        let State::Queued { admitted, .. } = &mut self.state else { return None };
        admitted.try_recv().is_ok().then(|| self.take())
    }

    fn take(&mut self) -> Permit {
        self.state = State::Over;
        Permit { shared: Arc::clone(&self.shared), principal: self.principal.clone() }
    }
}

impl Future for Waiter {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let State::Queued { admitted, .. } = &mut self.state else { return Poll::Pending };
        match Pin::new(admitted).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(self.take()),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        match self.state {
            State::Counted => queues.count_left(&self.principal),
            State::Queued { ticket, .. } => {
                if !queues.leave(&self.principal, ticket) {
                    // It was admitted, and nobody took the permit.
                    queues.release(&self.principal);
                }
                queues.admit(&self.shared.limits);
            }
            State::Over => {}
        }
    }
}

/// The right to run one turn. Dropping it admits the next one.
pub struct Permit {
    shared: Arc<Shared>,
    principal: Principal,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.release(&self.principal);
        queues.admit(&self.shared.limits);
    }
}
