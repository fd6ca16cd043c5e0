//! How many sessions a guest's key may have agents open, at the same moment and in a window of time, whichever agents. To open
//! a session is what costs an agent most: a new process, or a tenth of a second and more of a processor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gembridge_api::guard::rate::{Exceeded, KeyRates, Rate};
use gembridge_core::model::{Failure, FailureKind, Principal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// As long as an agent may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// When a request that waited in vain may come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Processors for each session that one key has opened at the same moment.
const PROCESSORS: usize = 4;

pub struct Openings {
    /// By key, at the same moment.
    at_once: usize,
    under_way: Mutex<HashMap<Principal, Arc<Semaphore>>>,
    rates: KeyRates,
}

/// A session is being opened as long as this lives.
pub struct Opening {
    _permit: OwnedSemaphorePermit,
}

impl Openings {
    /// `at_once` by the machine where the settings do not say.
    pub fn new(at_once: Option<usize>, rate: Rate) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = at_once.unwrap_or_else(|| processors() / PROCESSORS).max(1);
        Self { at_once, under_way: Mutex::default(), rates: KeyRates::new(rate) }
    }

    /// Takes another rate. What was counted at another one is forgotten.
    pub fn set_rate(&self, rate: Rate) {
        self.rates.set_rate(rate);
    }

    /// Counts one more session that this key wants opened.
    pub fn count(&self, key: &Principal) -> Result<(), Failure> {
        self.rates.take(key).map(drop).map_err(too_many)
    }

    /// Waits for this key's turn. Those who wait have a permit for their session already, which bounds their number.
    pub async fn begin(&self, key: &Principal) -> Result<Opening, Failure> {
        let turns = self.turns(key);
        match tokio::time::timeout(PATIENCE, turns.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Opening { _permit: permit }),
            // The semaphore is never closed, so that only the wait can fail.
            Ok(Err(_)) | Err(_) => Err(self.too_long()),
        }
    }

    fn turns(&self, key: &Principal) -> Arc<Semaphore> {
        // Never held across an await; a panic while it was held left nothing half-done.
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit holds the semaphore as well: those that nobody holds but the map are free.
        under_way.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = under_way.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.at_once)));
        Arc::clone(turns)
    }

    fn too_long(&self) -> Failure {
        let (most, plural) = (self.at_once, if self.at_once == 1 { " is" } else { "s are" });
        let text = format!(
            "{most} session{plural} being opened for this key, as many as it may have opened at once; try again in a second, \
             or ask the operator to raise `limits.openings_per_key`"
        );
        Failure::new(FailureKind::QuotaReached { retry_after: RETRY_AFTER }, text)
    }
}

fn too_many(Exceeded(allowance): Exceeded) -> Failure {
    let (most, seconds) = (allowance.limit, allowance.reset.as_secs_f32().ceil());
    let text = format!(
        "this key had {most} sessions opened of late, as many as it may make requests; try again in {seconds} s, or go on in a \
         session that is open"
    );
    Failure::new(FailureKind::QuotaReached { retry_after: allowance.reset }, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openings(at_once: usize, requests: u32) -> Openings {
        Openings::new(Some(at_once), Rate { requests, window: Duration::from_mins(1) })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_one_session_opened_at_a_time_and_others_do_not_wait_for_it() {
        let openings = openings(1, 100);
        let (eve, bob) = (Principal::new("eve"), Principal::new("bob"));
        let first = openings.begin(&eve).await.unwrap();
        let mut second = Box::pin(openings.begin(&eve));
        assert!(futures_util::poll!(&mut second).is_pending());
        let of_bob = openings.begin(&bob).await.unwrap();
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        second.await.unwrap();
        drop(of_bob);
        let _last = openings.begin(&bob).await.unwrap();
        assert_eq!(openings.under_way.lock().unwrap().len(), 1, "keys that open nothing are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_in_vain_is_told_what_stands_in_the_way() {
        let openings = openings(2, 100);
        let eve = Principal::new("eve");
        let _held = (openings.begin(&eve).await.unwrap(), openings.begin(&eve).await.unwrap());
        let failure = openings.begin(&eve).await.err().expect("both stay");
        assert_eq!(failure.kind, FailureKind::QuotaReached { retry_after: RETRY_AFTER });
        assert!(failure.to_string().contains("2 sessions are being opened"), "{failure}");
    }

    #[test]
    fn a_key_has_as_many_sessions_opened_in_a_window_as_it_may_make_requests() {
        let openings = openings(1, 3);
        let eve = Principal::new("eve");
        for _ in 0..3 {
            openings.count(&eve).unwrap();
        }
        let failure = openings.count(&eve).expect_err("it had its three");
        assert!(matches!(failure.kind, FailureKind::QuotaReached { retry_after } if retry_after > RETRY_AFTER));
        openings.count(&Principal::new("bob")).unwrap();
    }

    #[test]
    fn without_a_setting_a_key_has_a_quarter_of_the_processors_and_one_at_least() {
        let rate = Rate { requests: 1, window: Duration::from_secs(1) };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(Openings::new(None, rate).at_once, (processors / 4).max(1));
    }
}
