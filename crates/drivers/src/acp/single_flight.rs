//! Sessions of one principal that arrive together share the process that the first of them gets: when an agent with a
//! hundred sessions dies, its spare takes all of them, and none waits for a start of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gembridge_core::model::{Failure, Principal};
use tokio::time::Instant;

#[derive(Default)]
pub(super) struct SingleFlight {
    gates: Mutex<HashMap<Principal, Gate>>,
}

/// One at a time goes through. It holds how the last one failed, for those who stood behind it.
type Gate = Arc<tokio::sync::Mutex<Option<Refused>>>;

struct Refused {
    at: Instant,
    failure: Failure,
}

impl SingleFlight {
    /// What `in_use` finds once it is this one's turn; else what `bring` brings. Whoever waited while `bring` failed
    /// shares its failure and does not try again.
    pub(super) async fn run<T>(
        &self,
        principal: &Principal,
        in_use: impl Fn() -> Option<T>,
        bring: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let arrived = Instant::now();
        let gate = self.gate(principal);
        let mut refused = gate.lock().await;
        if let Some(place) = in_use() {
            return Ok(place);
        }
        if let Some(refused) = refused.as_ref().filter(|refused| refused.at >= arrived) {
            return Err(refused.failure.clone());
        }
        let brought = bring.await;
        *refused = brought.as_ref().err().map(|failure| Refused { at: Instant::now(), failure: failure.clone() });
        brought
    }

    fn gate(&self, principal: &Principal) -> Gate {
        // Never held across an await; a panic while it was held left nothing half-done.
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        Arc::clone(gates.entry(principal.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use gembridge_core::model::FailureKind;

    use super::*;

    /// Three at once; the first brings `result` after a moment. How often was something brought, and what came of it?
    async fn three_at_once(result: Result<u32, Failure>) -> (u32, Vec<Result<u32, Failure>>) {
        let (single_flight, place, brought) = (SingleFlight::default(), Mutex::new(None), AtomicU32::new(0));
        let principal = Principal::new("somebody");
        let one = || {
            single_flight.run(&principal, || *place.lock().unwrap(), async {
                brought.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(2)).await;
                *place.lock().unwrap() = result.clone().ok();
                result.clone()
            })
        };
        let (a, b, c) = tokio::join!(one(), one(), one());
        (brought.load(Ordering::Relaxed), vec![a, b, c])
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_arrive_together_share_what_the_first_brings() {
        let (brought, places) = three_at_once(Ok(7)).await;
        assert_eq!((brought, places), (1, vec![Ok(7), Ok(7), Ok(7)]));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_stood_behind_a_failure_share_it() {
        let failure = Failure::new(FailureKind::Crashed, "it does not start");
        let (brought, places) = three_at_once(Err(failure.clone())).await;
        assert_eq!((brought, places), (1, vec![Err(failure.clone()), Err(failure.clone()), Err(failure)]));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_after_a_failure_tries_again() {
        let single_flight = SingleFlight::default();
        let principal = Principal::new("somebody");
        let failure = Failure::new(FailureKind::Crashed, "it does not start");
        let first = single_flight.run(&principal, || None, async { Err::<u32, _>(failure.clone()) }).await;
        assert_eq!(first, Err(failure));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(single_flight.run(&principal, || None, async { Ok(1) }).await, Ok(1));
    }
}
