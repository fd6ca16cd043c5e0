//! How often one client address may ask: a sliding window over a table of fixed size, so that no number of invented
//! addresses grows it. Two clients that share a slot share its allowance; with 65 536 slots that is a rare loss of
//! room, never of safety.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

const SLOTS: usize = 1 << 16;
/// A slot is the number of its window (24 bits) and the counts of that window and of the one before (20 bits each).
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const WINDOW_MAX: u64 = (1 << 24) - 1;

pub struct RateTable {
    rate: Rate,
    start: Instant,
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

#[derive(Clone, Copy)]
struct Slot {
    window: u64,
    previous: u64,
    current: u64,
}

impl RateTable {
    pub fn new(rate: Rate) -> Self {
        // A window of nothing would divide by zero; a count beyond its bits could not be held.
        let rate = Rate {
            requests: rate.requests.min(u32::try_from(COUNT_MAX).unwrap_or(u32::MAX)),
            window: rate.window.max(Duration::from_millis(1)),
        };
        let slots = std::iter::repeat_with(|| AtomicU64::new(0)).take(SLOTS).collect();
        Self { rate, start: Instant::now(), hasher: RandomState::new(), slots }
    }

    /// Counts one request of a client, or refuses it.
    pub fn take(&self, client: Household) -> Result<Allowance, Exceeded> {
        self.take_at(client, Instant::now())
    }

    fn take_at(&self, client: Household, now: Instant) -> Result<Allowance, Exceeded> {
        let (window, into) = self.place(now);
        let hash = self.hasher.hash_one(client.to_bits());
        let slot = &self.slots[usize::try_from(hash % SLOTS as u64).unwrap_or(0)];
        let mut seen = slot.load(Ordering::Relaxed);
        loop {
            let moved = Slot::unpack(seen).moved_to(window);
            let used = moved.weighed(into);
            if used + 1.0 > f64::from(self.rate.requests) {
                return Err(Exceeded(self.allowance(used, self.until_room(moved, into))));
            }
            let counted = Slot { current: (moved.current + 1).min(COUNT_MAX), ..moved };
            match slot.compare_exchange_weak(seen, counted.pack(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let rest = self.rate.window.mul_f64(2.0 - into);
                    return Ok(self.allowance(used + 1.0, rest));
                }
                Err(changed) => seen = changed,
            }
        }
    }

    /// The number of the window, and how far into it, 0 to 1.
    fn place(&self, now: Instant) -> (u64, f64) {
        let elapsed = now.saturating_duration_since(self.start).as_secs_f64() / self.rate.window.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of windows since start")]
        let window = elapsed as u64;
        (window & WINDOW_MAX, elapsed.fract())
    }

    fn allowance(&self, used: f64, reset: Duration) -> Allowance {
        let left = (f64::from(self.rate.requests) - used).max(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a `u32`")]
        let remaining = left as u32;
        Allowance { limit: self.rate.requests, remaining, reset }
    }

    /// When the weight of the previous window has sunk far enough, or else when this window has become the previous
    /// one and has.
    fn until_room(&self, slot: Slot, into: f64) -> Duration {
        let room = f64::from(self.rate.requests) - 1.0;
        let (current, previous) = (count(slot.current), count(slot.previous));
        let at = if current <= room && previous > 0.0 {
            1.0 - (room - current) / previous
        } else if current > 0.0 && room >= 0.0 {
            2.0 - room / current
        } else {
            2.0
        };
        self.rate.window.mul_f64((at - into).clamp(0.0, 2.0)).max(Duration::from_millis(1))
    }
}

impl Slot {
    fn unpack(bits: u64) -> Self {
        Self { window: bits >> (2 * COUNT_BITS), previous: (bits >> COUNT_BITS) & COUNT_MAX, current: bits & COUNT_MAX }
    }

    fn pack(self) -> u64 {
        self.window << (2 * COUNT_BITS) | self.previous << COUNT_BITS | self.current
    }

    fn moved_to(self, window: u64) -> Self {
        match window.wrapping_sub(self.window) & WINDOW_MAX {
            0 => self,
            1 => Self { window, previous: self.current, current: 0 },
            _ => Self { window, previous: 0, current: 0 },
        }
    }

    fn weighed(self, into: f64) -> f64 {
        count(self.previous) * (1.0 - into) + count(self.current)
    }
}

fn count(bits: u64) -> f64 {
    f64::from(u32::try_from(bits).unwrap_or(u32::MAX))
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
    fn s28_the_window_slides_so_a_burst_at_its_edge_does_not_double() {
        let table = table(100);
        let edge = table.start + Duration::from_millis(59_999);
        for _ in 0..100 {
            assert!(table.take_at(client(1), edge).is_ok());
        }
        assert!(table.take_at(client(1), edge + Duration::from_millis(2)).is_err());
        let halfway = table.start + MINUTE + MINUTE / 2;
        let admitted = (0..100).take_while(|_| table.take_at(client(1), halfway).is_ok()).count();
        assert_eq!(admitted, 50);
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
        assert!(table.slots.len() * size_of::<AtomicU64>() <= 1 << 20);
    }

    #[test]
    fn a_limit_of_nothing_refuses_all() {
        assert!(table(0).take(client(1)).is_err());
    }
}
