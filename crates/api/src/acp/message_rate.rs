//! How many messages clients send: a guest's key over all its sockets, an operator's over each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::model::Principal;
use tokio::time::Instant;

use crate::identity::{Identity, Rank};

const WINDOW: Duration = Duration::from_secs(10);

/// The messages of the guests' keys that have, or had a moment ago, a socket.
#[derive(Default)]
pub(super) struct MessageRates {
    of_key: Mutex<HashMap<Principal, MessageRate>>,
}

/// How many messages were sent of late. All clones are one.
#[derive(Clone)]
pub(super) struct MessageRate {
    sent: Arc<Mutex<Sent>>,
}

struct Sent {
    since: Instant,
    messages: u32,
}

impl MessageRates {
    /// What a new socket of this key counts its messages in.
    pub(super) fn of(&self, identity: &Identity) -> MessageRate {
        match identity.rank {
            Rank::Admin => MessageRate::new(),
            Rank::User => {
                let mut of_key = lock(&self.of_key);
                // A key without a socket keeps its count for one window: reconnecting does not reset the limit.
                of_key.retain(|_, rate| Arc::strong_count(&rate.sent) > 1 || rate.is_recent());
                of_key.entry(identity.principal.clone()).or_insert_with(MessageRate::new).clone()
            }
        }
    }
}

impl MessageRate {
    fn new() -> Self {
        Self { sent: Arc::new(Mutex::new(Sent { since: Instant::now(), messages: 0 })) }
    }

    /// Counts one more message, if it may be sent.
    pub(super) fn admits(&self, per_second: u32) -> bool {
        let mut sent = lock(&self.sent);
        if sent.since.elapsed() >= WINDOW {
            *sent = Sent { since: Instant::now(), messages: 0 };
        }
        sent.messages = sent.messages.saturating_add(1);
        sent.messages <= per_second.saturating_mul(10)
    }

    fn is_recent(&self) -> bool {
        lock(&self.sent).since.elapsed() < WINDOW
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str, rank: Rank) -> Identity {
        Identity { principal: Principal::new(name), rank }
    }

    #[tokio::test(start_paused = true)]
    async fn a_guest_has_one_rate_over_all_its_sockets_also_those_that_it_closed() {
        let rates = MessageRates::default();
        let ann = who("ann", Rank::User);
        let sockets = [rates.of(&ann), rates.of(&ann)];
        let admitted = (0..30).filter(|number| sockets[number % 2].admits(2)).count();
        assert_eq!(admitted, 20);
        drop(sockets);
        assert!(!rates.of(&ann).admits(2), "hanging up does not begin anew");
        assert!(rates.of(&who("bob", Rank::User)).admits(2), "another key has its own");
        tokio::time::advance(WINDOW).await;
        assert!(rates.of(&ann).admits(2));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_without_a_socket_are_forgotten() {
        let rates = MessageRates::default();
        for number in 0..100 {
            rates.of(&who(&number.to_string(), Rank::User)).admits(1);
        }
        tokio::time::advance(WINDOW).await;
        let _kept = rates.of(&who("ann", Rank::User));
        assert_eq!(lock(&rates.of_key).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn each_socket_of_an_operator_has_its_own_rate() {
        let rates = MessageRates::default();
        let operator = who("op", Rank::Admin);
        let sockets = [rates.of(&operator), rates.of(&operator)];
        assert_eq!((0..30).filter(|number| sockets[number % 2].admits(1)).count(), 20);
    }
}
