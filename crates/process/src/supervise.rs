//! When to start again after a failure: jittered backoff, and a circuit that opens when a program keeps crashing.
//!
//! A pure machine: the time is an argument, nothing here sleeps.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How patient to be with a program that fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartPolicy {
    /// Wait after the first failure; doubles with each further one.
    pub first_backoff: Duration,
    pub max_backoff: Duration,
    /// The circuit opens at this many failures…
    pub failures: usize,
    /// …within this time.
    pub window: Duration,
    /// How long it stays open before one probe is let through; doubles each time the probe fails.
    pub open_for: Duration,
    pub max_open_for: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            failures: 5,
            window: Duration::from_mins(1),
            open_for: Duration::from_secs(5),
            max_open_for: Duration::from_mins(1),
        }
    }
}

/// May a start be tried now?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Yes. Report how it went.
    Go,
    /// Not yet: a failure was too recent.
    Backoff { retry_after: Duration },
    /// No: the circuit is open, or its one probe is under way.
    Open { retry_after: Duration },
}

/// The memory of one program's failures.
///
/// Ask [`admit`](Self::admit) before each start; tell [`succeeded`](Self::succeeded) or [`failed`](Self::failed) after
/// it, and [`failed`](Self::failed) again when something that had started well crashes later.
#[derive(Debug)]
pub struct Supervisor {
    policy: RestartPolicy,
    state: State,
    jitter: Jitter,
}

#[derive(Debug)]
enum State {
    Closed {
        failures: VecDeque<Instant>,
        not_before: Option<Instant>,
    },
    Open {
        until: Instant,
        open_for: Duration,
    },
    /// One probe is out. Should its outcome never be told, another may go after `until`.
    Probing {
        until: Instant,
        open_for: Duration,
    },
}

impl Supervisor {
    /// `seed` makes supervisors that failed together come back apart.
    pub fn new(policy: RestartPolicy, seed: u64) -> Self {
        Self { policy, state: State::closed(), jitter: Jitter(seed) }
    }

    /// A `Go` while the circuit is half open is the probe: the next caller is refused until its outcome is told.
    pub fn admit(&mut self, now: Instant) -> Admission {
        match self.state {
            State::Closed { not_before: Some(not_before), .. } if now < not_before => {
                Admission::Backoff { retry_after: not_before - now }
            }
            State::Closed { .. } => Admission::Go,
            State::Open { until, .. } | State::Probing { until, .. } if now < until => {
                Admission::Open { retry_after: until - now }
            }
            State::Open { open_for, .. } | State::Probing { open_for, .. } => {
                self.state = State::Probing { until: now + open_for, open_for };
                Admission::Go
            }
        }
    }

    /// How long a request would be refused, without asking for admission.
    pub fn open_for(&self, now: Instant) -> Option<Duration> {
        match self.state {
            State::Closed { .. } => None,
            State::Open { until, .. } | State::Probing { until, .. } => Some(until.saturating_duration_since(now)),
        }
    }

    /// A start went well. Closes a half-open circuit. Failures of the past still count: a program that starts well and
    /// crashes at once would never open the circuit otherwise.
    pub fn succeeded(&mut self) {
        match &mut self.state {
            State::Closed { not_before, .. } => *not_before = None,
            State::Open { .. } | State::Probing { .. } => self.state = State::closed(),
        }
    }

    /// A start failed, or something that ran has crashed.
    pub fn failed(&mut self, now: Instant) {
        match &mut self.state {
            State::Closed { failures, not_before } => {
                failures.push_back(now);
                while failures.front().is_some_and(|first| now.duration_since(*first) > self.policy.window) {
                    failures.pop_front();
                }
                if failures.len() >= self.policy.failures {
                    self.open(now, self.policy.open_for);
                } else {
                    let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX);
                    let factor = 2_u32.saturating_pow(doublings);
                    let backoff = self.policy.first_backoff.saturating_mul(factor).min(self.policy.max_backoff);
                    *not_before = Some(now + self.jitter.spread(backoff));
                }
            }
            // Starts that were under way when the circuit opened tell nothing new.
            State::Open { .. } => {}
            State::Probing { open_for, .. } => {
                let longer = open_for.saturating_mul(2).min(self.policy.max_open_for);
                self.open(now, longer);
            }
        }
    }

    fn open(&mut self, now: Instant, open_for: Duration) {
        self.state = State::Open { until: now + self.jitter.spread(open_for), open_for };
    }
}

impl State {
    fn closed() -> Self {
        Self::Closed { failures: VecDeque::new(), not_before: None }
    }
}

/// Enough randomness to spread retries; nothing secret hangs on it.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    /// Between half of `time` and all of it.
    fn spread(&mut self, time: Duration) -> Duration {
        // One step of splitmix64: a counter, stirred.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let per_mille = u32::try_from(bits % 501).unwrap_or(0);
        time / 2 + time * per_mille / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy() -> RestartPolicy {
        RestartPolicy {
            first_backoff: SECOND,
            max_backoff: 4 * SECOND,
            failures: 4,
            window: 60 * SECOND,
            open_for: 10 * SECOND,
            max_open_for: 30 * SECOND,
        }
    }

    fn retry_after(admission: Admission) -> Duration {
        match admission {
            Admission::Go => Duration::ZERO,
            Admission::Backoff { retry_after } | Admission::Open { retry_after } => retry_after,
        }
    }

    fn fail_until_open(supervisor: &mut Supervisor, now: Instant) {
        for _ in 0..4 {
            supervisor.failed(now);
        }
        assert!(matches!(supervisor.admit(now), Admission::Open { .. }));
    }

    #[test]
    fn backoff_doubles_up_to_its_limit_and_is_spread() {
        let start = Instant::now();
        for seed in 0..50 {
            let mut supervisor = Supervisor::new(RestartPolicy { failures: 10, ..policy() }, seed);
            for expected in [1, 2, 4, 4, 4] {
                supervisor.failed(start);
                let wait = retry_after(supervisor.admit(start));
                assert!(wait >= SECOND * expected / 2 && wait <= SECOND * expected, "{wait:?}");
                assert_eq!(supervisor.admit(start + wait), Admission::Go);
            }
        }
        let waits: std::collections::BTreeSet<_> = (0..50)
            .map(|seed| {
                let mut supervisor = Supervisor::new(policy(), seed);
                supervisor.failed(start);
                retry_after(supervisor.admit(start))
            })
            .collect();
        assert!(waits.len() > 10, "no herd: {waits:?}");
    }

    #[test]
    fn r2_the_circuit_opens_after_n_failures_and_recovers_by_one_probe() {
        let start = Instant::now();
        let mut supervisor = Supervisor::new(policy(), 1);
        fail_until_open(&mut supervisor, start);
        let wait = retry_after(supervisor.admit(start));
        assert!(wait >= 5 * SECOND && wait <= 10 * SECOND);
        assert_eq!(supervisor.open_for(start), Some(wait));

        let later = start + wait;
        assert_eq!(supervisor.admit(later), Admission::Go, "the probe");
        assert!(matches!(supervisor.admit(later), Admission::Open { .. }), "only one probe");
        supervisor.succeeded();
        assert_eq!(supervisor.admit(later), Admission::Go);
        assert_eq!(supervisor.open_for(later), None);
        supervisor.failed(later);
        assert!(matches!(supervisor.admit(later), Admission::Backoff { .. }), "the count starts anew");
    }

    #[test]
    fn a_failed_probe_keeps_the_circuit_open_for_longer_up_to_a_limit() {
        let mut now = Instant::now();
        let mut supervisor = Supervisor::new(policy(), 1);
        fail_until_open(&mut supervisor, now);
        for expected in [10, 20, 30, 30] {
            let wait = retry_after(supervisor.admit(now));
            assert!(wait >= SECOND * expected / 2 && wait <= SECOND * expected, "{wait:?} of {expected}");
            now += wait;
            assert_eq!(supervisor.admit(now), Admission::Go);
            supervisor.failed(now);
        }
    }

    #[test]
    fn failures_far_apart_never_open_the_circuit() {
        let mut now = Instant::now();
        let mut supervisor = Supervisor::new(policy(), 1);
        for _ in 0..20 {
            supervisor.failed(now);
            now += 31 * SECOND;
            assert_eq!(supervisor.admit(now), Admission::Go);
        }
    }

    #[test]
    fn a_program_that_starts_well_and_crashes_at_once_opens_the_circuit_too() {
        let now = Instant::now();
        let mut supervisor = Supervisor::new(policy(), 1);
        for _ in 0..3 {
            supervisor.succeeded();
            supervisor.failed(now);
        }
        assert!(matches!(supervisor.admit(now), Admission::Backoff { .. }));
        supervisor.succeeded();
        supervisor.failed(now);
        assert!(matches!(supervisor.admit(now), Admission::Open { .. }));
    }

    #[test]
    fn a_probe_whose_outcome_is_never_told_does_not_block_for_ever() {
        let start = Instant::now();
        let mut supervisor = Supervisor::new(policy(), 1);
        fail_until_open(&mut supervisor, start);
        let later = start + 10 * SECOND;
        assert_eq!(supervisor.admit(later), Admission::Go);
        assert_eq!(supervisor.admit(later + 10 * SECOND), Admission::Go);
    }
}
