//! Memory for what clients send. HTTP bodies and WebSocket messages are charged to one budget as their bytes come, so
//! that one key holds at most its share, whatever lengths it announces.
//!
//! Small messages have a pool of their own, so that slow large ones never keep them waiting. In each pool one guest key
//! may hold a third and all guests together two thirds; the rest is the operators' alone, who may use all of it.
//!
//! Messages that come at the same time must not block each other half-read. In each set that has a bound (a key, all
//! guests, the pool) the message that has been coming for longest can always grow to the largest size, since the
//! others leave it that room; so one after the other gets to its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gembridge_core::model::Principal;

use super::body::BodyLimits;
use crate::identity::{Identity, Rank};
use crate::problem::{Kind, Problem};

pub struct MemoryBudget {
    limits: BodyLimits,
    small: Mutex<Pool>,
    large: Mutex<Pool>,
}

/// What the messages of one key are charged to. The guard gives it to each request for a `WebSocket`.
#[derive(Clone)]
pub struct MemoryAccount {
    budget: Arc<MemoryBudget>,
    owner: Identity,
}

/// The memory of one message. Dropping it gives all of it back.
pub struct Charge {
    account: MemoryAccount,
    small: Option<Slot>,
    large: Option<Slot>,
}

/// What the body of a request is charged, for a route that keeps it longer than until it has parsed it. It ends with the
/// last clone.
#[derive(Clone)]
pub struct BodyCharge(#[expect(dead_code, reason = "held, never read")] pub(super) Arc<Charge>);

/// Why there is no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The other messages of the same key take up its share.
    Share,
    /// The messages of all keys take up the memory.
    Budget,
}

impl Full {
    pub(super) fn problem(self) -> Problem {
        let retry_after = Duration::from_secs(1);
        match self {
            Self::Share => Problem::new(
                Kind::QueueFull { retry_after },
                "requests of this key that are not read to their end take up its share of the memory; finish them, then \
                 try again",
            ),
            Self::Budget => Problem::new(
                Kind::Unavailable { retry_after },
                "too many large requests are being read at once; try again in a second",
            ),
        }
    }
}

impl MemoryBudget {
    pub fn new(limits: BodyLimits) -> Arc<Self> {
        let pool = |budget: u32, largest: u32| Mutex::new(Pool::new(budget as usize, largest as usize));
        let small = pool(limits.small_budget, limits.small);
        let large = pool(limits.large_budget, limits.large);
        Arc::new(Self { limits, small, large })
    }

    pub fn limits(&self) -> &BodyLimits {
        &self.limits
    }

    pub fn account(self: &Arc<Self>, owner: Identity) -> MemoryAccount {
        MemoryAccount { budget: Arc::clone(self), owner }
    }

    /// Bytes that are charged now, to the small pool and to the large one.
    #[cfg(test)]
    pub fn used(&self) -> (usize, usize) {
        (lock(&self.small).used(), lock(&self.large).used())
    }
}

impl MemoryAccount {
    pub fn limits(&self) -> &BodyLimits {
        &self.budget.limits
    }

    /// A charge for one message, of which nothing has come.
    pub fn charge(&self) -> Charge {
        Charge { account: self.clone(), small: None, large: None }
    }
}

impl Charge {
    pub fn limits(&self) -> &BodyLimits {
        self.account.limits()
    }

    /// Charges `bytes` in all. Pending, and charged as before, as long as there is no room for more; a charge that gets
    /// smaller is ready at once.
    pub fn poll_hold(&mut self, bytes: usize, cx: &mut Context<'_>) -> Poll<()> {
        if bytes == 0 {
            self.release();
            return Poll::Ready(());
        }
        let Self { account: MemoryAccount { budget, owner }, small, large } = self;
        if bytes <= budget.limits.small as usize && large.is_none() {
            return grow(&budget.small, owner, small, bytes, cx);
        }
        if grow(&budget.large, owner, large, bytes, cx).is_pending() {
            return Poll::Pending;
        }
        release(&budget.small, small);
        Poll::Ready(())
    }

    /// Charges a message that has come already, where there is room for it.
    pub fn try_hold(&mut self, bytes: usize) -> Result<(), Full> {
        self.release();
        let MemoryAccount { budget, owner } = &self.account;
        let is_small = bytes <= budget.limits.small as usize;
        let (pool, slot) = if is_small { (&budget.small, &mut self.small) } else { (&budget.large, &mut self.large) };
        let mut pool = lock(pool);
        pool.check_whole(owner, bytes)?;
        let entered = pool.enter(owner, Progress::Whole);
        *slot = Some(entered);
        let woken = pool.set(entered, bytes);
        drop(pool);
        wake(woken);
        Ok(())
    }

    /// The whole message has come. It stays charged, and is no longer waited for.
    pub fn finish(&mut self) {
        let MemoryAccount { budget, .. } = &self.account;
        for (pool, slot) in [(&budget.small, &self.small), (&budget.large, &self.large)] {
            if let Some(slot) = slot {
                wake(lock(pool).finish(*slot));
            }
        }
    }

    pub fn release(&mut self) {
        let MemoryAccount { budget, .. } = &self.account;
        release(&budget.small, &mut self.small);
        release(&budget.large, &mut self.large);
    }

    /// What stands in the way of a message of which `bytes` have come.
    pub fn obstacle(&self, bytes: usize) -> Full {
        let MemoryAccount { budget, owner } = &self.account;
        let is_small = bytes <= budget.limits.small as usize && self.large.is_none();
        let (pool, slot) = if is_small { (&budget.small, self.small) } else { (&budget.large, self.large) };
        match slot.map(|slot| lock(pool).check(slot, owner, bytes)) {
            Some(Err(full)) => full,
            // There has just been room again.
            Some(Ok(())) | None => Full::Budget,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release();
    }
}

/// Where a charge stands in its pool; earlier ones are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot(u64);

struct Pool {
    most: usize,
    most_of_guests: usize,
    most_of_a_guest: usize,
    /// The largest message.
    largest: usize,
    next: u64,
    entries: BTreeMap<Slot, Entry>,
    of_guests: HashMap<Principal, usize>,
    guests: usize,
    operators: usize,
    waiting: Vec<Waker>,
}

struct Entry {
    owner: Identity,
    bytes: usize,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Coming,
    Whole,
}

/// One bound on a set of messages.
struct Bound {
    used: usize,
    most: usize,
    oldest: Option<Oldest>,
    /// The room that the oldest message may need in all.
    reserved: usize,
}

/// The message that has been coming for longest.
struct Oldest {
    slot: Slot,
    bytes: usize,
    /// As far as the share of its key lets it grow.
    limit: usize,
}

impl Pool {
    /// A third must have room for the largest message.
    fn new(budget: usize, largest: usize) -> Self {
        let most = budget.max(largest.saturating_mul(3));
        Self {
            most,
            most_of_guests: most / 3 * 2,
            most_of_a_guest: most / 3,
            largest,
            next: 0,
            entries: BTreeMap::new(),
            of_guests: HashMap::new(),
            guests: 0,
            operators: 0,
            waiting: Vec::new(),
        }
    }

    fn used(&self) -> usize {
        self.guests + self.operators
    }

    fn enter(&mut self, owner: &Identity, progress: Progress) -> Slot {
        let slot = Slot(self.next);
        self.next += 1;
        self.entries.insert(slot, Entry { owner: owner.clone(), bytes: 0, progress });
        slot
    }

    /// Whether the message at `slot` may hold `bytes` in all.
    fn check(&self, slot: Slot, owner: &Identity, bytes: usize) -> Result<(), Full> {
        let more = bytes.saturating_sub(self.entries.get(&slot).map_or(0, |entry| entry.bytes));
        // Most of the time there is room for it beside the largest message, and no need to look who came first.
        let of_key = match owner.rank {
            Rank::Admin => 0,
            Rank::User => self.of_guests.get(&owner.principal).copied().unwrap_or(0),
        };
        let is_roomy = |used: usize, most: usize| used + more + self.largest <= most;
        if is_roomy(of_key, self.most_of_a_guest)
            && (owner.rank == Rank::Admin || is_roomy(self.guests, self.most_of_guests))
            && is_roomy(self.used(), self.most)
        {
            return Ok(());
        }
        let of_operators = |other: &Identity| other.rank == Rank::Admin;
        let oldest = self.oldest(of_operators);
        let all = Bound { used: self.used(), most: self.most, oldest, reserved: self.largest };
        if owner.rank == Rank::Admin {
            return if all.admits(slot, more) { Ok(()) } else { Err(Full::Budget) };
        }
        let oldest = self.oldest(|other| *other == *owner);
        let of_key = Bound { used: of_key, most: self.most_of_a_guest, oldest, reserved: self.largest };
        if !of_key.admits(slot, more) {
            return Err(Full::Share);
        }
        let oldest = self.oldest(|other| other.rank == Rank::User);
        let reserved = oldest.as_ref().map_or(0, |oldest| oldest.limit);
        let of_guests = Bound { used: self.guests, most: self.most_of_guests, oldest, reserved };
        if of_guests.admits(slot, more) && all.admits(slot, more) { Ok(()) } else { Err(Full::Budget) }
    }

    /// Whether a message of `bytes` that has come already may be kept. It need not leave room to those that come.
    fn check_whole(&self, owner: &Identity, bytes: usize) -> Result<(), Full> {
        if owner.rank == Rank::User {
            let of_key = self.of_guests.get(&owner.principal).copied().unwrap_or(0);
            if of_key + bytes > self.most_of_a_guest {
                return Err(Full::Share);
            }
            if self.guests + bytes > self.most_of_guests {
                return Err(Full::Budget);
            }
        }
        if self.used() + bytes > self.most { Err(Full::Budget) } else { Ok(()) }
    }

    fn oldest(&self, is_in_set: impl Fn(&Identity) -> bool) -> Option<Oldest> {
        let mut coming = self.entries.iter().filter(|(_, entry)| entry.progress == Progress::Coming);
        let (slot, entry) = coming.find(|(_, entry)| is_in_set(&entry.owner))?;
        let of_key = self.of_guests.get(&entry.owner.principal).copied().unwrap_or(0);
        let limit = (entry.bytes + self.most_of_a_guest.saturating_sub(of_key)).min(self.largest);
        Some(Oldest { slot: *slot, bytes: entry.bytes, limit })
    }

    /// Those who may go on now.
    fn set(&mut self, slot: Slot, bytes: usize) -> Vec<Waker> {
        let Some(entry) = self.entries.get_mut(&slot) else { return Vec::new() };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        match entry.owner.rank {
            Rank::Admin => self.operators = self.operators - before + bytes,
            Rank::User => {
                self.guests = self.guests - before + bytes;
                let of_key = self.of_guests.entry(entry.owner.principal.clone()).or_default();
                *of_key = *of_key - before + bytes;
                if *of_key == 0 {
                    self.of_guests.remove(&entry.owner.principal);
                }
            }
        }
        if bytes < before { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }

    fn finish(&mut self, slot: Slot) -> Vec<Waker> {
        if let Some(entry) = self.entries.get_mut(&slot) {
            entry.progress = Progress::Whole;
        }
        // Another message may be the oldest now.
        std::mem::take(&mut self.waiting)
    }

    fn leave(&mut self, slot: Slot) -> Vec<Waker> {
        let mut woken = self.set(slot, 0);
        self.entries.remove(&slot);
        woken.append(&mut self.waiting);
        woken
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

impl Bound {
    /// All but the oldest message leave it its room.
    fn admits(&self, slot: Slot, more: usize) -> bool {
        let beside = match &self.oldest {
            Some(oldest) if oldest.slot == slot => return self.used + more <= self.most,
            Some(oldest) => self.used - oldest.bytes,
            None => self.used,
        };
        beside + more + self.reserved <= self.most && self.used + more <= self.most
    }
}

fn grow(pool: &Mutex<Pool>, owner: &Identity, slot: &mut Option<Slot>, bytes: usize, cx: &mut Context<'_>) -> Poll<()> {
    let mut pool = lock(pool);
    let slot = *slot.get_or_insert_with(|| pool.enter(owner, Progress::Coming));
    if pool.check(slot, owner, bytes).is_err() {
        pool.wait(cx.waker());
        return Poll::Pending;
    }
    let woken = pool.set(slot, bytes);
    drop(pool);
    wake(woken);
    Poll::Ready(())
}

fn release(pool: &Mutex<Pool>, slot: &mut Option<Slot>) {
    if let Some(slot) = slot.take() {
        let woken = lock(pool).leave(slot);
        wake(woken);
    }
}

fn wake(waiting: Vec<Waker>) {
    waiting.into_iter().for_each(Waker::wake);
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 100;
    const LARGE: usize = 1_000;

    fn budget() -> Arc<MemoryBudget> {
        let limits =
            BodyLimits { small: 100, large: 1_000, small_budget: 300, large_budget: 3_300, ..BodyLimits::default() };
        MemoryBudget::new(limits)
    }

    fn account(budget: &Arc<MemoryBudget>, name: &str, rank: Rank) -> MemoryAccount {
        budget.account(Identity { principal: Principal::new(name), rank })
    }

    fn holds(charge: &mut Charge, bytes: usize) -> bool {
        charge.poll_hold(bytes, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn f8_a_guest_holds_a_third_all_guests_two_and_the_operator_the_rest() {
        let budget = budget();
        let mut charges = Vec::new();
        for guest in ["ann", "bob"] {
            let guest = account(&budget, guest, Rank::User);
            let (mut first, mut second) = (guest.charge(), guest.charge());
            assert!(holds(&mut first, LARGE - 1));
            assert!(!holds(&mut second, SMALL + 1), "the first one may still grow");
            assert_eq!(second.obstacle(SMALL + 1), Full::Share);
            assert!(holds(&mut guest.charge(), SMALL), "small ones have room of their own");
            first.finish();
            assert!(holds(&mut second, SMALL + 1) && !holds(&mut second, SMALL + 2));
            charges.push((first, second));
        }
        let mut third = account(&budget, "eve", Rank::User).charge();
        assert!(!holds(&mut third, SMALL + 1));
        assert_eq!(third.obstacle(SMALL + 1), Full::Budget);
        let mut of_operator = account(&budget, "op", Rank::Admin).charge();
        assert!(holds(&mut of_operator, LARGE));
        drop((charges, third, of_operator));
        assert_eq!(budget.used(), (0, 0));
    }

    #[test]
    fn messages_that_come_at_once_finish_one_after_the_other() {
        for (rank, keys) in [(Rank::Admin, 1), (Rank::User, 1), (Rank::User, 5)] {
            let budget = budget();
            let mut coming: Vec<_> =
                (0..10).map(|number| (account(&budget, &format!("key-{}", number % keys), rank).charge(), 0)).collect();
            let mut rounds = 0;
            while !coming.is_empty() {
                rounds += 1;
                assert!(rounds < 200, "{rank:?} {keys}: {} messages block each other", coming.len());
                for (charge, held) in &mut coming {
                    if holds(charge, *held + 50) {
                        *held += 50;
                    }
                }
                coming.retain(|(_, held)| *held < LARGE);
                let (small, large) = budget.used();
                assert!(small <= 300 && large <= 3_300, "{small} {large}");
            }
            assert_eq!(budget.used(), (0, 0));
        }
    }

    #[test]
    fn a_message_that_has_come_is_kept_as_long_as_its_share_has_room() {
        let budget = budget();
        let guest = account(&budget, "ann", Rank::User);
        let mut coming = guest.charge();
        assert!(holds(&mut coming, 500));
        let mut kept = guest.charge();
        assert_eq!(kept.try_hold(600), Ok(()));
        assert_eq!(guest.charge().try_hold(SMALL + 1), Err(Full::Share));
        assert_eq!(guest.charge().try_hold(SMALL), Ok(()), "small ones have room of their own");
        assert_eq!(account(&budget, "bob", Rank::User).charge().try_hold(LARGE), Ok(()));
        assert!(!holds(&mut coming, 501), "it waits until something was let go");
        drop(kept);
        assert!(holds(&mut coming, LARGE));
        drop(coming);
        assert_eq!(budget.used(), (0, 0));
    }

    #[test]
    fn whoever_waits_is_woken_when_something_is_given_back() {
        struct Woken(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let budget = budget();
        let guest = account(&budget, "ann", Rank::User);
        let (mut first, mut second) = (guest.charge(), guest.charge());
        assert!(holds(&mut first, LARGE));
        let woken = Arc::new(Woken(false.into()));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(second.poll_hold(LARGE, &mut Context::from_waker(&waker)).is_pending());
        drop(first);
        assert!(woken.0.load(std::sync::atomic::Ordering::Relaxed));
        assert!(holds(&mut second, LARGE));
    }
}
