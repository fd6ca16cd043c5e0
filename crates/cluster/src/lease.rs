//! The lease of a gateway: what it has in the directory is its own for as long as the lease runs.
//!
//! Redis ends a lease [`LEASE`] after it got the renewal. The gateway counts from the moment *before* it sent the renewal, by
//! its own monotonic clock, and less a margin: so it knows of the end before anybody else can, also when an answer was slow
//! or lost, and also when it stood still in between.

use std::time::{Duration, Instant};

/// How long a gateway is believed to live after a renewal.
pub const LEASE: Duration = Duration::from_secs(4);

/// How often it renews.
pub const RENEWAL: Duration = Duration::from_secs(1);

/// How much earlier than Redis the gateway itself takes its lease for ended: clocks may run at rates that differ a little.
pub const MARGIN: Duration = Duration::from_millis(500);

/// The lease as its own gateway sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeLease {
    /// It never had one.
    None,
    /// Runs until then, unless it is renewed.
    Until(Instant),
    /// Another process has the name; nothing is renewed any more.
    Replaced,
}

impl NodeLease {
    /// A renewal that was sent at `sent` has arrived.
    #[must_use]
    pub fn renewed(self, sent: Instant) -> Self {
        let until = sent + LEASE.saturating_sub(MARGIN);
        match self {
            Self::None => Self::Until(until),
            // Answers may overtake each other.
            Self::Until(earlier) => Self::Until(earlier.max(until)),
            Self::Replaced => Self::Replaced,
        }
    }

    pub fn runs(self, now: Instant) -> bool {
        matches!(self, Self::Until(until) if now < until)
    }
}

#[cfg(test)]
mod tests;
