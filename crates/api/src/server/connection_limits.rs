//! How many connections there may be: in all, of one address, and as the process's descriptors allow.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};

use crate::admin::metrics::names;
use crate::client_prefix::ClientPrefix;
use crate::server::Connections;

/// Descriptors that connections never use: agents, the store and the log need them most when few are left.
const RESERVE: std::ops::RangeInclusive<u64> = 32..=4200;

pub struct ConnectionLimits {
    limits: Connections,
    /// The first descriptor of the reserve. The system gives out the lowest that is free, so that a connection that
    /// got a higher one came when all lower ones were in use.
    reserve: usize,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    regular: usize,
    spare: usize,
    /// As many entries as there are connections, at most.
    by_address: HashMap<ClientPrefix, usize>,
}

/// The right to one connection. Dropping it gives it back.
pub struct Slot {
    kind: SlotKind,
    address: Option<ClientPrefix>,
    held: Arc<Mutex<Held>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    Regular,
    /// Beyond the limits: refused with an answer, health aside, and closed.
    Spare,
}

/// The descriptor that a connection was accepted with.
#[derive(Clone, Copy, Debug)]
pub enum AcceptedFd {
    Number(RawFd),
    /// The descriptor that had been kept for when there is no other.
    Reserve,
}

impl ConnectionLimits {
    pub fn new(limits: Connections) -> Self {
        let limit = descriptors();
        let spare = limits.spare.min(reserve(limit) / 8);
        Self { limits: Connections { spare, ..limits }, reserve: below_reserve(limit), held: Arc::default() }
    }

    /// `None` if not even a refusal can be afforded.
    pub fn admit(&self, peer: IpAddr, fd: AcceptedFd) -> Option<Slot> {
        let is_reserved = match fd {
            AcceptedFd::Number(number) => usize::try_from(number).is_ok_and(|number| number >= self.reserve),
            AcceptedFd::Reserve => true,
        };
        let address = (!peer.to_canonical().is_loopback()).then(|| ClientPrefix::from(peer));
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = address.and_then(|address| held.by_address.get(&address)).copied().unwrap_or(0);
        let is_within = held.regular < self.limits.most && !is_reserved;
        let kind = if is_within && of_address < self.limits.most_per_address {
            held.regular += 1;
            if let Some(address) = address {
                *held.by_address.entry(address).or_default() += 1;
            }
            metrics::gauge!(names::CONNECTIONS).increment(1.0);
            SlotKind::Regular
        } else if held.spare < self.limits.spare {
            held.spare += 1;
            metrics::counter!(names::CONNECTIONS_REFUSED).increment(1);
            SlotKind::Spare
        } else {
            return None;
        };
        Some(Slot { kind, address, held: Arc::clone(&self.held) })
    }
}

impl Slot {
    pub fn kind(&self) -> SlotKind {
        self.kind
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if self.kind == SlotKind::Spare {
            held.spare -= 1;
            return;
        }
        held.regular -= 1;
        metrics::gauge!(names::CONNECTIONS).decrement(1.0);
        if let Some(address) = self.address
            && let Some(count) = held.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                held.by_address.remove(&address);
            }
        }
    }
}

/// How many descriptors are left to agents and their sessions, however many clients come.
pub fn set_aside() -> usize {
    left(reserve(descriptors()))
}

/// Some are for connections that are only refused, and for files that are opened for a moment.
fn left(reserve: usize) -> usize {
    reserve - reserve / 16 - 8
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn reserve(limit: u64) -> usize {
    usize::try_from((limit / 2).clamp(*RESERVE.start(), *RESERVE.end())).unwrap_or(usize::MAX)
}

fn below_reserve(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(reserve(limit)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: AcceptedFd = AcceptedFd::Number(3);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admission() -> ConnectionLimits {
        ConnectionLimits::new(Connections { most: 4, most_per_address: 2, spare: 1, streams: 1 })
    }

    fn kind(slot: Option<&Slot>) -> Option<SlotKind> {
        slot.map(Slot::kind)
    }

    #[test]
    fn s24_an_address_and_the_whole_have_their_bounds_and_what_ends_makes_room() {
        let admission = admission();
        let mut held: Vec<Slot> = Vec::new();
        for (peer, expected) in [
            ("192.0.2.1", Some(SlotKind::Regular)),
            ("192.0.2.1", Some(SlotKind::Regular)),
            ("192.0.2.1", Some(SlotKind::Spare)),
            ("192.0.2.1", None),
            ("2001:db8::1", Some(SlotKind::Regular)),
            ("2001:db8::2", Some(SlotKind::Regular)),
            ("127.0.0.1", None),
        ] {
            let slot = admission.admit(ip(peer), LOW);
            assert_eq!(kind(slot.as_ref()), expected, "{peer}");
            held.extend(slot);
        }
        held.remove(0);
        assert_eq!(kind(admission.admit(ip("127.0.0.1"), LOW).as_ref()), Some(SlotKind::Regular));
        held.clear();
        let state = admission.held.lock().unwrap();
        assert_eq!((state.regular, state.spare, state.by_address.len()), (0, 0, 0));
    }

    #[test]
    fn s24_local_clients_share_no_bound_of_an_address() {
        let admission = admission();
        let held: Vec<_> = (0..4).map(|_| admission.admit(ip("127.0.0.1"), LOW)).collect();
        assert!(held.iter().all(|slot| kind(slot.as_ref()) == Some(SlotKind::Regular)));
    }

    #[test]
    fn r11_descriptors_are_kept_for_agents_and_store() {
        for (limit, connections) in [(64, 32), (256, 128), (1024, 512), (20_000, 15_800), (16, 1)] {
            assert_eq!(below_reserve(limit), connections, "{limit}");
        }
        assert_eq!([64, 1024, 20_000].map(|limit| left(reserve(limit))), [22, 472, 3930]);
        let admission = ConnectionLimits { reserve: 100, ..admission() };
        for (room, expected) in [
            (AcceptedFd::Number(99), SlotKind::Regular),
            (AcceptedFd::Number(100), SlotKind::Spare),
            (AcceptedFd::Reserve, SlotKind::Spare),
        ] {
            assert_eq!(kind(admission.admit(ip("127.0.0.1"), room).as_ref()), Some(expected), "{room:?}");
        }
    }
}
