//! Who may use an agent next: so many at once, the others wait in line, one line for each principal, and the lines
//! take turns. A line that is full refuses; a waiter that leaves is gone from its line.

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
pub struct FairLimits {
    /// Places in all.
    pub running: usize,
    /// How long each principal's line may be.
    pub waiting: usize,
    /// How long all lines together may be.
    pub waiting_in_all: usize,
    pub shares: Shares,
    /// Places that guests may have, where not everybody may have all.
    pub guests: Option<GuestLimits>,
}

impl Default for FairLimits {
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
    /// Lines of a higher priority go first, as long as they have anybody waiting.
    pub priority: i8,
    pub running: Option<usize>,
    pub waiting: Option<usize>,
}

/// Principals that are treated otherwise. All clones are one list: what is replaced in it holds for whoever comes next.
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

/// The lines before one agent. Cheap to clone.
#[derive(Clone)]
pub struct FairQueue {
    shared: Arc<Shared>,
}

struct Shared {
    limits: FairLimits,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    running: usize,
    waiting: usize,
    of: HashMap<Principal, Line>,
    /// Those whose line has somebody in it; the first is next.
    turns: VecDeque<Principal>,
    next_ticket: u64,
}

#[derive(Default)]
struct Line {
    running: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    ticket: u64,
    places: usize,
    admit: oneshot::Sender<()>,
}

/// No room to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} requests wait already; try again in {} s", retry_after.as_secs().max(1))]
pub struct LineFull {
    pub waiting: usize,
    pub retry_after: Duration,
}

/// What is going on, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairStatus {
    pub running: usize,
    pub waiting: usize,
}

impl FairStatus {
    /// Nobody is there.
    pub fn is_empty(self) -> bool {
        self.running == 0 && self.waiting == 0
    }
}

/// Nothing is known of how long the others take; clients double it by themselves.
const RETRY_AFTER: Duration = Duration::from_secs(2);

impl FairQueue {
    pub fn new(limits: FairLimits) -> Self {
        Self { shared: Arc::new(Shared { limits, lines: Mutex::default() }) }
    }

    /// Stands in line for `places` at once, at most as many as there can ever be. The waiter resolves when it is its
    /// turn, at once if there is room.
    pub fn enter(&self, principal: &Principal, places: usize) -> Result<Waiter, LineFull> {
        let limits = &self.shared.limits;
        let places = places.clamp(1, limits.most_running(principal));
        let mut lines = self.shared.lock();
        let spot = if lines.take_at_once(principal, places, limits) {
            None
        } else {
            Some(lines.stand(principal, places, limits)?)
        };
        drop(lines);
        let place = Place { shared: Arc::clone(&self.shared), principal: principal.clone(), places };
        Ok(Waiter { spot, place: Some(place) })
    }

    /// Lines on the same terms before something that only one can use at a time.
    #[must_use]
    pub fn with_one_place(&self) -> Self {
        Self::new(FairLimits { running: 1, ..self.shared.limits.clone() })
    }

    pub fn status(&self) -> FairStatus {
        let lines = self.shared.lock();
        FairStatus { running: lines.running, waiting: lines.waiting }
    }
}

impl FairLimits {
    fn share(&self, principal: &Principal) -> Share {
        self.shares.get(principal)
    }

    fn most_running(&self, principal: &Principal) -> usize {
        let of_guest = self.limits_of(principal).map_or(usize::MAX, |guests| guests.each.min(guests.together));
        let of_share = self.share(principal).running.unwrap_or(self.running);
        of_share.min(of_guest).clamp(1, self.running.max(1))
    }

    fn limits_of(&self, principal: &Principal) -> Option<&GuestLimits> {
        self.guests.as_ref().filter(|guests| (guests.is_guest)(principal))
    }

    fn most_waiting(&self, principal: &Principal) -> usize {
        self.share(principal).waiting.unwrap_or(self.waiting)
    }
}

impl Shared {
    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Takes the places where nobody waits and there is room. Whether it did.
    fn take_at_once(&mut self, principal: &Principal, places: usize, limits: &FairLimits) -> bool {
        if self.waiting > 0 || self.running + places > limits.running.max(1) {
            return false;
        }
        let is_open = self.is_open_to(principal, places, limits);
        let line = self.of.entry(principal.clone()).or_default();
        let has_room = is_open && line.running + places <= limits.most_running(principal);
        if has_room {
            line.running += places;
            self.running += places;
        }
        has_room
    }

    /// Whether so many places more leave the operator what guests may not have. One guest may always have one turn.
    fn is_open_to(&self, principal: &Principal, places: usize, limits: &FairLimits) -> bool {
        let Some(guests) = &limits.guests else { return true };
        if self.running + places <= guests.together || !(guests.is_guest)(principal) {
            return true;
        }
        let lines = self.of.iter().filter(|(principal, _)| (guests.is_guest)(principal));
        let running: usize = lines.map(|(_, line)| line.running).sum();
        running == 0 || running + places <= guests.together
    }

    fn stand(&mut self, principal: &Principal, places: usize, limits: &FairLimits) -> Result<Spot, LineFull> {
        let (admit, admitted) = oneshot::channel();
        let ticket = self.push(principal, places, admit);
        self.admit(limits);
        if self.waits(principal, ticket) && self.is_overfull(principal, limits) {
            self.leave(principal, ticket);
            return Err(LineFull { waiting: self.waiting, retry_after: RETRY_AFTER });
        }
        Ok(Spot { ticket, admitted })
    }

    fn push(&mut self, principal: &Principal, places: usize, admit: oneshot::Sender<()>) -> u64 {
        self.next_ticket += 1;
        let line = self.of.entry(principal.clone()).or_default();
        if line.waiting.is_empty() {
            self.turns.push_back(principal.clone());
        }
        line.waiting.push_back(Waiting { ticket: self.next_ticket, places, admit });
        self.waiting += 1;
        self.next_ticket
    }

    fn waits(&self, principal: &Principal, ticket: u64) -> bool {
        self.of.get(principal).is_some_and(|line| line.waiting.iter().any(|waiting| waiting.ticket == ticket))
    }

    fn is_overfull(&self, principal: &Principal, limits: &FairLimits) -> bool {
        let line = self.of.get(principal).map_or(0, |line| line.waiting.len());
        line > limits.most_waiting(principal) || self.waiting > limits.waiting_in_all
    }

    /// Lets in whoever is next, as long as there is room. A wide request at the head of the line whose turn it is
    /// holds up the others until there is room for it: overtaken for ever, it would starve.
    fn admit(&mut self, limits: &FairLimits) {
        while let Some(at) = self.next_line(limits) {
            let Some(principal) = self.turns.get(at).cloned() else { return };
            let free = limits.running.max(1) - self.running;
            let Some(line) = self.of.get_mut(&principal) else { return };
            let Some(waiting) = line.waiting.pop_front_if(|waiting| waiting.places <= free) else { return };
            line.running += waiting.places;
            self.running += waiting.places;
            self.waiting -= 1;
            let goes_on = !line.waiting.is_empty();
            self.turns.remove(at);
            if goes_on {
                self.turns.push_back(principal);
            }
            // A waiter leaves its line before it lets go of its end, so somebody hears this.
            waiting.admit.send(()).ok();
        }
    }

    /// The line whose turn it is among those that may have more running.
    fn next_line(&self, limits: &FairLimits) -> Option<usize> {
        let may_run = |principal: &Principal| {
            let Some(line) = self.of.get(principal) else { return false };
            let head = line.waiting.front().map_or(0, |waiting| waiting.places);
            // Alone it may always run: it may have come when it was allowed more.
            (line.running == 0 || line.running + head <= limits.most_running(principal))
                && self.is_open_to(principal, head, limits)
        };
        let able = self.turns.iter().enumerate().filter(|(_, principal)| may_run(principal));
        able.min_by_key(|(at, principal)| (std::cmp::Reverse(limits.share(principal).priority), *at)).map(|(at, _)| at)
    }

    /// Takes a waiter out. Whether it was still waiting.
    fn leave(&mut self, principal: &Principal, ticket: u64) -> bool {
        let Some(line) = self.of.get_mut(principal) else { return false };
        let Some(at) = line.waiting.iter().position(|waiting| waiting.ticket == ticket) else { return false };
        line.waiting.remove(at);
        self.waiting -= 1;
        if line.waiting.is_empty() {
            self.turns.retain(|waiting| waiting != principal);
        }
        if line.is_empty() {
            self.of.remove(principal);
        }
        true
    }

    fn release(&mut self, principal: &Principal, places: usize) {
        self.running -= places;
        let Some(line) = self.of.get_mut(principal) else { return };
        line.running -= places;
        if line.is_empty() {
            self.of.remove(principal);
        }
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

/// A place in line. Dropping it leaves the line.
pub struct Waiter {
    /// None where it was let in at once.
    spot: Option<Spot>,
    /// The places it will have; gone when they were handed over.
    place: Option<Place>,
}

struct Spot {
    ticket: u64,
    admitted: oneshot::Receiver<()>,
}

/// Places in use. Dropping it lets the next one in.
pub struct Permit {
    place: Place,
}

struct Place {
    shared: Arc<Shared>,
    principal: Principal,
    places: usize,
}

impl Place {
    fn release(&self) {
        let mut lines = self.shared.lock();
        lines.release(&self.principal, self.places);
        lines.admit(&self.shared.limits);
    }
}

impl Future for Waiter {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        // The sender is gone only after it has sent, or when the places were taken already.
        if let Some(spot) = &mut self.spot
            && !matches!(Pin::new(&mut spot.admitted).poll(context), Poll::Ready(Ok(())))
        {
            return Poll::Pending;
        }
        match self.place.take() {
            Some(place) => Poll::Ready(Permit { place }),
            None => Poll::Pending,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut lines = place.shared.lock();
        if self.spot.as_ref().is_some_and(|spot| lines.leave(&place.principal, spot.ticket)) {
            // It may have held up others who fit where it did not.
            lines.admit(&place.shared.limits);
        } else {
            drop(lines);
            place.release();
        }
    }
}

impl Permit {
    /// How many may run with it at once.
    pub fn places(&self) -> usize {
        self.place.places
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.place.release();
    }
}
