//! How often one key, and one client address without a good key, may ask: a sliding window.
//!
//! Addresses share a table of fixed size, so that no number of invented ones grows it. Two of them that share a place
//! share its allowance; with 65 536 places that is a rare loss of room, never of safety. Keys are few, and each is
//! counted alone.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gembridge_core::model::Principal;

use crate::guard::address::Household;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub window: Duration,
}

/// What a client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub limit: u32,
    pub remaining: u32,
    /// Until everything that was counted is forgotten, or, when refused, until there is room for one.
    pub reset: Duration,
}

/// Refused: nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded(pub Allowance);

const PLACES: usize = 1 << 16;
/// A window is counted in slices. The requests of a slice are forgotten together, one window after the last of them:
/// never too early, a fifteenth of a window too late at most, and in time for a burst.
const SLICES_OF_A_WINDOW: u64 = 15;
/// One more than a window has, since the oldest ends within the newest.
const SLICES: usize = 16;
const TICK: Duration = Duration::from_micros(100);
/// A slice is the time of its last request in ticks, above, and the count of its requests, in these bits.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// The slices of one place, each where its number says. A plain array, so that the table begins as untouched zero
/// pages: what no client asked for costs no memory.
type Place = [u64; SLICES];

/// By address.
pub struct RateTable {
    start: Instant,
    hasher: RandomState,
    counted: Mutex<Counted>,
}

struct Counted {
    pace: Pace,
    places: Vec<Place>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Pace {
    rate: Rate,
    /// In ticks.
    window: u64,
}

impl RateTable {
    pub fn new(rate: Rate) -> Self {
        Self { start: Instant::now(), hasher: RandomState::new(), counted: Mutex::new(Counted::new(rate)) }
    }

    /// Takes another rate. What was counted at another one is forgotten.
    pub fn set_rate(&self, rate: Rate) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.pace != Pace::new(rate) {
            *counted = Counted::new(rate);
        }
    }

    /// Counts one request of a client, or refuses it.
    pub fn take(&self, client: Household) -> Result<Allowance, Exceeded> {
        self.take_at(client, Instant::now())
    }

    fn take_at(&self, client: Household, now: Instant) -> Result<Allowance, Exceeded> {
        let now = ticks(now.saturating_duration_since(self.start));
        let hash = self.hasher.hash_one(client.to_bits());
        let mut held = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = held.pace;
        pace.take(&mut held.places[usize::try_from(hash % PLACES as u64).unwrap_or(0)], now)
    }
}

/// By key, whichever addresses it is used from.
pub struct KeyRates {
    start: Instant,
    counted: Mutex<CountedKeys>,
}

struct CountedKeys {
    pace: Pace,
    places: HashMap<Principal, Place>,
}

/// More keys than a gateway has; beyond it those that have not asked within a window are forgotten.
const MOST_KEYS: usize = 4_096;

impl KeyRates {
    pub fn new(rate: Rate) -> Self {
        let counted = CountedKeys { pace: Pace::new(rate), places: HashMap::new() };
        Self { start: Instant::now(), counted: Mutex::new(counted) }
    }

    /// Takes another rate. What was counted at another one is forgotten.
    pub fn set_rate(&self, rate: Rate) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.pace != Pace::new(rate) {
            *counted = CountedKeys { pace: Pace::new(rate), places: HashMap::new() };
        }
    }

    /// Counts one request of a key, or refuses it.
    pub fn take(&self, owner: &Principal) -> Result<Allowance, Exceeded> {
        self.take_at(owner, Instant::now())
    }

    fn take_at(&self, owner: &Principal, now: Instant) -> Result<Allowance, Exceeded> {
        let now = ticks(now.saturating_duration_since(self.start));
        let mut held = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let CountedKeys { pace, places } = &mut *held;
        if let Some(place) = places.get_mut(owner) {
            return pace.take(place, now);
        }
        if places.len() >= MOST_KEYS {
            places.retain(|_, place| pace.remembered(place, now).next().is_some());
        }
        if places.len() >= MOST_KEYS {
            // Every one of thousands of keys is in use: rather count them anew than refuse one that asks rarely.
            places.clear();
        }
        pace.take(places.entry(owner.clone()).or_insert([0; SLICES]), now)
    }
}

impl Counted {
    fn new(rate: Rate) -> Self {
        Self { pace: Pace::new(rate), places: vec![[0; SLICES]; PLACES] }
    }
}

impl Pace {
    fn new(rate: Rate) -> Self {
        // A count beyond its bits could not be held, nor a window shorter than its slices.
        let most = u32::try_from(COUNT_MAX).unwrap_or(u32::MAX);
        let window = ticks(rate.window).max(SLICES_OF_A_WINDOW);
        Self { rate: Rate { requests: rate.requests.min(most), window: rate.window }, window }
    }

    /// Counts one request in this place, or refuses it.
    fn take(self, place: &mut Place, now: u64) -> Result<Allowance, Exceeded> {
        let limit = u64::from(self.rate.requests);
        let used: u64 = self.remembered(place, now).map(|(_, count)| count).sum();
        if used >= limit {
            return Err(Exceeded(self.allowance(used, self.until_room(place, now, used))));
        }
        let width = self.window.div_ceil(SLICES_OF_A_WINDOW);
        let slice = &mut place[usize::try_from(now / width % SLICES as u64).unwrap_or(0)];
        let (last, count) = unpack(*slice);
        // What stands there from a whole round ago is older than a window.
        let counted = if last / width == now / width { count + 1 } else { 1 };
        *slice = now << COUNT_BITS | counted.min(COUNT_MAX);
        Ok(self.allowance(used + 1, TICK.saturating_mul(u32::try_from(self.window).unwrap_or(u32::MAX))))
    }

    /// The slices that count, as the time of their last request and their number of requests.
    fn remembered(self, place: &Place, now: u64) -> impl Iterator<Item = (u64, u64)> {
        place.iter().copied().map(unpack).filter(move |(last, count)| *count > 0 && now < last + self.window)
    }

    fn allowance(self, used: u64, reset: Duration) -> Allowance {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        Allowance { limit: self.rate.requests, remaining: self.rate.requests.saturating_sub(used), reset }
    }

    /// When enough of the oldest slices are forgotten.
    fn until_room(self, place: &Place, now: u64, mut used: u64) -> Duration {
        let mut slices: Vec<_> = self.remembered(place, now).collect();
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
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn table(requests: u32) -> RateTable {
        RateTable::new(Rate { requests, window: MINUTE })
    }

    fn client(number: u8) -> Household {
        Household::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)))
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
            assert!(table.take_at(Household::from(IpAddr::V6(address)), now).is_ok());
        }
        assert!(PLACES * size_of::<Place>() <= 8 << 20);
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
        assert_eq!(rates.counted.lock().unwrap().places.len(), 1);
        rates.set_rate(Rate { requests: 2, window: MINUTE });
        assert_eq!(rates.take_at(&key(0), later).unwrap().remaining, 1);
    }
}
