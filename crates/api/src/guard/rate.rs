//! How many requests one key, and one client address without a valid key, may send: a sliding window.
//!
//! Addresses are hashed into a table of fixed size, so that no number of spoofed ones grows it. Two addresses in one bucket
//! share its allowance; with 65 536 buckets that is rare, and never lets more through. Keys are few, and each is counted
//! alone.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use gembridge_core::model::Principal;

use crate::admin::metrics::names;
use crate::client_prefix::ClientPrefix;
use crate::identity::{Identity, Rank};
use crate::problem::{Kind, Problem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub window: Duration,
}

/// Whose requests are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Everybody,
    /// Every request except those from loopback with an operator's key, which are not limited.
    OthersThanLocalOperators,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It makes an agent work, or changes something.
    Work,
    /// It asks what there is. Programs ask that in bursts, and must not be kept from working by it.
    Metadata,
}

/// So many requests for metadata for each that asks for work.
const METADATA: u32 = 10;

/// What a client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub limit: u32,
    pub remaining: u32,
    /// Until everything that was counted is forgotten, or, when refused, until one more is allowed.
    pub reset: Duration,
}

/// Refused: nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded(pub Allowance);

impl Exceeded {
    /// What is told to the owner of a key that was counted.
    pub(super) fn problem(self) -> Problem {
        let Self(Allowance { limit, reset, .. }) = self;
        let message =
            format!("rate limit reached: {limit} requests with this API key; wait, or raise `limits.requests`");
        Problem::new(Kind::RateLimited { retry_after: reset }, message)
    }
}

const BUCKETS: usize = 1 << 16;
/// A window is counted in slices. The requests of a slice are forgotten together, one window after the last of them:
/// never too early, a fifteenth of a window too late at most, and in time for a burst.
const SLICES_OF_A_WINDOW: u64 = 15;
/// One more than a window has, since the oldest ends within the newest.
const SLICES: usize = 16;
const TICK: Duration = Duration::from_micros(100);
/// A slice is the time of its last request in ticks, above, and the count of its requests, in these bits.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// The slices of one client, each at its number modulo the length. A plain array, so that the table starts as untouched
/// zero pages and unused buckets cost no memory.
type Window = [u64; SLICES];

/// Every limit on requests. The guard asks only this type, so that the counts can be shared by several gateways without a
/// change elsewhere.
pub(super) struct RateLimiter {
    /// `None` for no limit.
    keys: Option<KeyRates>,
    metadata: Option<KeyRates>,
    counted: RwLock<Counted>,
    addresses: RateTable,
}

impl RateLimiter {
    pub(super) fn new(of_key: Option<Rate>, counted: Counted, of_address: Rate) -> Self {
        let (keys, metadata) = (of_key.map(KeyRates::new), of_key.map(of_metadata).map(KeyRates::new));
        Self { keys, metadata, counted: RwLock::new(counted), addresses: RateTable::new(of_address) }
    }

    /// Takes other rates. What was counted at another one is forgotten; keys without a limit stay without.
    pub(super) fn set_rates(&self, of_key: Rate, counted: Counted, of_address: Rate) {
        *self.counted.write().unwrap_or_else(PoisonError::into_inner) = counted;
        if let Some(keys) = &self.keys {
            keys.set_rate(of_key);
        }
        if let Some(metadata) = &self.metadata {
            metadata.set_rate(of_metadata(of_key));
        }
        self.addresses.set_rate(of_address);
    }

    /// Counts a request with a valid key. `None`: there is no limit.
    pub(super) fn count_key(
        &self,
        owner: &Identity,
        client: IpAddr,
        purpose: Purpose,
    ) -> Result<Option<Allowance>, Exceeded> {
        let keys = match purpose {
            Purpose::Work => &self.keys,
            Purpose::Metadata => &self.metadata,
        };
        let Some(keys) = keys else { return Ok(None) };
        let counted = *self.counted.read().unwrap_or_else(PoisonError::into_inner);
        let is_free = match counted {
            Counted::Everybody => false,
            Counted::OthersThanLocalOperators => owner.rank == Rank::Admin && client.to_canonical().is_loopback(),
        };
        if is_free {
            return Ok(None);
        }
        keys.take(&owner.principal).map(Some).inspect_err(|_| rejected("requests"))
    }

    /// Counts a request without a valid key.
    pub(super) fn count_failure(&self, client: IpAddr) -> Result<Allowance, Exceeded> {
        self.addresses.take(ClientPrefix::from(client)).inspect_err(|_| rejected("failures"))
    }
}

fn of_metadata(rate: Rate) -> Rate {
    Rate { requests: rate.requests.saturating_mul(METADATA), ..rate }
}

fn rejected(limit: &'static str) {
    metrics::counter!(names::RATE_LIMIT_REJECTIONS, "limit" => limit).increment(1);
}

/// By address.
struct RateTable {
    start: Instant,
    hasher: RandomState,
    counted: Mutex<CountedAddresses>,
}

struct CountedAddresses {
    limit: Limit,
    windows: Vec<Window>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Limit {
    rate: Rate,
    /// In ticks.
    window: u64,
}

impl RateTable {
    fn new(rate: Rate) -> Self {
        Self { start: Instant::now(), hasher: RandomState::new(), counted: Mutex::new(CountedAddresses::new(rate)) }
    }

    fn set_rate(&self, rate: Rate) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.limit != Limit::new(rate) {
            *counted = CountedAddresses::new(rate);
        }
    }

    /// Counts one request of a client, or refuses it.
    fn take(&self, client: ClientPrefix) -> Result<Allowance, Exceeded> {
        self.take_at(client, Instant::now())
    }

    fn take_at(&self, client: ClientPrefix, now: Instant) -> Result<Allowance, Exceeded> {
        let now = ticks(now.saturating_duration_since(self.start));
        let hash = self.hasher.hash_one(client.to_bits());
        let mut held = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = held.limit;
        limit.take(&mut held.windows[usize::try_from(hash % BUCKETS as u64).unwrap_or(0)], now)
    }
}

/// By key, whichever addresses it is used from.
pub struct KeyRates {
    start: Instant,
    counted: Mutex<CountedKeys>,
}

struct CountedKeys {
    limit: Limit,
    windows: HashMap<Principal, Window>,
}

/// More keys than a gateway has; beyond it those that have not asked within a window are forgotten.
const MOST_KEYS: usize = 4_096;

impl KeyRates {
    pub fn new(rate: Rate) -> Self {
        let counted = CountedKeys { limit: Limit::new(rate), windows: HashMap::new() };
        Self { start: Instant::now(), counted: Mutex::new(counted) }
    }

    /// Takes another rate. What was counted at another one is forgotten.
    pub fn set_rate(&self, rate: Rate) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.limit != Limit::new(rate) {
            *counted = CountedKeys { limit: Limit::new(rate), windows: HashMap::new() };
        }
    }

    /// Counts one request of a key, or refuses it.
    pub fn take(&self, owner: &Principal) -> Result<Allowance, Exceeded> {
        self.take_at(owner, Instant::now())
    }

    fn take_at(&self, owner: &Principal, now: Instant) -> Result<Allowance, Exceeded> {
        let now = ticks(now.saturating_duration_since(self.start));
        let mut held = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let CountedKeys { limit, windows } = &mut *held;
        if let Some(window) = windows.get_mut(owner) {
            return limit.take(window, now);
        }
        if windows.len() >= MOST_KEYS {
            windows.retain(|_, window| limit.remembered(window, now).next().is_some());
        }
        if windows.len() >= MOST_KEYS {
            // Thousands of keys in use at once: to start counting anew is better than to refuse one that asks rarely.
            windows.clear();
        }
        limit.take(windows.entry(owner.clone()).or_insert([0; SLICES]), now)
    }
}

impl CountedAddresses {
    fn new(rate: Rate) -> Self {
        Self { limit: Limit::new(rate), windows: vec![[0; SLICES]; BUCKETS] }
    }
}

impl Limit {
    fn new(rate: Rate) -> Self {
        // A count beyond its bits could not be held, nor a window shorter than its slices.
        let most = u32::try_from(COUNT_MAX).unwrap_or(u32::MAX);
        let window = ticks(rate.window).max(SLICES_OF_A_WINDOW);
        Self { rate: Rate { requests: rate.requests.min(most), window: rate.window }, window }
    }

    /// Counts one request in this window, or refuses it.
    fn take(self, counts: &mut Window, now: u64) -> Result<Allowance, Exceeded> {
        let limit = u64::from(self.rate.requests);
        let used: u64 = self.remembered(counts, now).map(|(_, count)| count).sum();
        if used >= limit {
            return Err(Exceeded(self.allowance(used, self.until_room(counts, now, used))));
        }
        let width = self.window.div_ceil(SLICES_OF_A_WINDOW);
        let slice = &mut counts[usize::try_from(now / width % SLICES as u64).unwrap_or(0)];
        let (last, count) = unpack(*slice);
        // A slice of an earlier round is older than a window.
        let counted = if last / width == now / width { count + 1 } else { 1 };
        *slice = now << COUNT_BITS | counted.min(COUNT_MAX);
        Ok(self.allowance(used + 1, TICK.saturating_mul(u32::try_from(self.window).unwrap_or(u32::MAX))))
    }

    /// The slices that count, as the time of their last request and their number of requests.
    fn remembered(self, counts: &Window, now: u64) -> impl Iterator<Item = (u64, u64)> {
        counts.iter().copied().map(unpack).filter(move |(last, count)| *count > 0 && now < last + self.window)
    }

    fn allowance(self, used: u64, reset: Duration) -> Allowance {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        Allowance { limit: self.rate.requests, remaining: self.rate.requests.saturating_sub(used), reset }
    }

    /// When enough of the oldest slices are forgotten.
    fn until_room(self, counts: &Window, now: u64, mut used: u64) -> Duration {
        let mut slices: Vec<_> = self.remembered(counts, now).collect();
        slices.sort_unstable();
        let mut at = now + self.window;
        for (last, count) in slices {
            used -= count;
            if used < u64::from(self.rate.requests) {
                at = last + self.window;
                break;
            }
        }
        TICK.saturating_mul(u32::try_from(at - now).unwrap_or(u32::MAX))
    }
}

fn unpack(slice: u64) -> (u64, u64) {
    (slice >> COUNT_BITS, slice & COUNT_MAX)
}

fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_micros() / TICK.as_micros()).unwrap_or(u64::MAX >> COUNT_BITS)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn table(requests: u32) -> RateTable {
        RateTable::new(Rate { requests, window: MINUTE })
    }

    fn client(number: u8) -> ClientPrefix {
        ClientPrefix::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)))
    }

    #[test]
    fn s28_the_hundred_and_first_request_of_a_minute_is_refused_and_others_are_not() {
        let table = table(100);
        let now = table.start + Duration::from_secs(1);
        for left in (0..100).rev() {
            assert_eq!(table.take_at(client(1), now).unwrap().remaining, left);
        }
        let Exceeded(allowance) = table.take_at(client(1), now).unwrap_err();
        assert_eq!((allowance.limit, allowance.remaining), (100, 0));
        assert!(table.take_at(client(2), now).is_ok());
    }

    #[test]
    fn another_rate_counts_anew_and_the_same_one_goes_on() {
        let table = table(1);
        assert!(table.take(client(1)).is_ok() && table.take(client(1)).is_err());
        table.set_rate(Rate { requests: 1, window: MINUTE });
        assert!(table.take(client(1)).is_err());
        table.set_rate(Rate { requests: 2, window: MINUTE });
        assert_eq!(table.take(client(1)).unwrap().remaining, 1);
    }

    #[test]
    fn s28_the_window_slides_so_a_burst_at_its_edge_does_not_double() {
        let table = table(100);
        let edge = table.start + Duration::from_millis(59_999);
        for _ in 0..100 {
            assert!(table.take_at(client(1), edge).is_ok());
        }
        assert!(table.take_at(client(1), edge + Duration::from_millis(2)).is_err());
        assert!(table.take_at(client(1), edge + Duration::from_millis(59_999)).is_err());
    }

    #[test]
    fn s28_a_window_after_a_burst_all_of_it_is_forgotten() {
        for spent_at in [0.0, 0.3, 0.999, 5.5] {
            let table = table(100);
            let burst = table.start + MINUTE.mul_f64(spent_at);
            for _ in 0..100 {
                assert!(table.take_at(client(1), burst).is_ok());
            }
            let Exceeded(allowance) = table.take_at(client(1), burst).unwrap_err();
            assert!(allowance.reset <= MINUTE, "{:?}", allowance.reset);
            let later = burst + MINUTE + Duration::from_millis(1);
            for left in (0..100).rev() {
                assert_eq!(table.take_at(client(1), later).unwrap().remaining, left);
            }
        }
    }

    #[test]
    fn s28_no_window_ever_holds_more_than_the_limit_however_requests_are_spread() {
        let table = table(100);
        let mut admitted = Vec::new();
        // Steps that share no beat with the slices; refusals leave bunches.
        for step in 0..20_000_u64 {
            let now = table.start + Duration::from_millis(step * 37 + (step % 11) * (step % 7) * 5);
            if table.take_at(client(1), now).is_ok() {
                admitted.push(now);
            }
        }
        admitted.sort_unstable();
        assert!(admitted.len() > 1_000, "{}", admitted.len());
        let shortest = admitted.windows(101).map(|hundred_and_one| hundred_and_one[100] - hundred_and_one[0]).min();
        assert!(shortest.unwrap() + 2 * TICK >= MINUTE, "{shortest:?}");
    }

    #[test]
    fn s28_who_waits_as_told_is_let_in() {
        for (requests, spent_at) in [(1, 0.1), (2, 0.9), (100, 0.5), (7, 0.999)] {
            let table = table(requests);
            let mut now = table.start + MINUTE.mul_f64(spent_at);
            for round in 0..20 {
                while table.take_at(client(1), now).is_ok() {}
                let Exceeded(allowance) = table.take_at(client(1), now).unwrap_err();
                // The header says whole seconds, rounded up.
                now += Duration::from_secs(allowance.reset.as_secs() + 1);
                assert!(table.take_at(client(1), now).is_ok(), "{requests} at {spent_at}, round {round}");
            }
        }
    }

    #[test]
    fn s28_a_million_invented_networks_take_no_more_room_than_one() {
        let table = table(100);
        let now = table.start;
        for network in 0..1_000_000_u128 {
            let address = Ipv6Addr::from_bits((0x2001_0db8 << 96) | (network << 64));
            assert!(table.take_at(ClientPrefix::from(IpAddr::V6(address)), now).is_ok());
        }
        assert!(BUCKETS * size_of::<Window>() <= 8 << 20);
    }

    #[test]
    fn a_limit_of_nothing_refuses_all() {
        assert!(table(0).take(client(1)).is_err());
    }

    #[test]
    fn f9_keys_are_counted_each_alone_and_the_idle_ones_are_forgotten() {
        let rates = KeyRates::new(Rate { requests: 1, window: MINUTE });
        let key = |number: usize| Principal::new(format!("key-{number}"));
        for number in 0..MOST_KEYS {
            assert_eq!(rates.take_at(&key(number), rates.start).unwrap().remaining, 0, "{number}");
        }
        assert!(rates.take_at(&key(0), rates.start).is_err());
        let later = rates.start + MINUTE + Duration::from_millis(1);
        assert!(rates.take_at(&key(MOST_KEYS), later).is_ok());
        assert_eq!(rates.counted.lock().unwrap().windows.len(), 1);
        rates.set_rate(Rate { requests: 2, window: MINUTE });
        assert_eq!(rates.take_at(&key(0), later).unwrap().remaining, 1);
    }
}
