//! Tickets: each replaces, once and within thirty seconds, a key that a browser cannot send. Several gateways share them, since
//! the WebSocket may be opened at another one than the ticket was made at.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{Method, header};

use gembridge_core::BoxFuture;

use crate::keys::{Digest, Key, KeyLease};
use crate::problem::{Kind, Problem};

const GOOD_FOR: Duration = Duration::from_secs(30);
/// Tickets that wait to be used; one more is refused until an older one is used or has run out.
const MOST: usize = 4_096;
/// Of these, those of one key: no key takes the tickets of all others.
const MOST_OF_ONE_KEY: usize = 64;

/// A ticket for its owner.
pub struct Ticket {
    pub text: String,
    pub good_for: Duration,
}

/// Tickets that any gateway of the cluster takes, each once. Both are digests.
pub trait SharedTickets: Send + Sync {
    /// Whether it could be kept.
    fn put(&self, ticket: [u8; 32], key: [u8; 32], good_for: Duration) -> BoxFuture<'_, bool>;

    /// The key that the ticket stands for; nobody else gets it after this.
    fn take(&self, ticket: [u8; 32]) -> BoxFuture<'_, Option<[u8; 32]>>;
}

pub(super) struct Tickets {
    shared: Option<Arc<dyn SharedTickets>>,
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    ticket: Digest,
    key: Digest,
    until: Instant,
    place: Place,
}

/// Where a ticket is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// At any gateway; here it is only counted.
    Anywhere,
}

impl Tickets {
    pub(super) fn new(shared: Option<Arc<dyn SharedTickets>>) -> Self {
        Self { shared, waiting: Mutex::default() }
    }

    pub(super) async fn issue(&self, lease: &KeyLease) -> Result<Ticket, Problem> {
        let secret = Key::generate().map_err(|failure| {
            tracing::error!(%failure, "no randomness for a ticket");
            Problem::new(Kind::Internal, "cannot make a ticket: no randomness; the log has more under this request id")
        })?;
        let (ticket, key) = (secret.digest(), lease.digest());
        self.reserve(ticket, key)?;
        if let Some(shared) = &self.shared
            && shared.put(ticket.into_bytes(), key.into_bytes(), GOOD_FOR).await
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(own) = waiting.iter_mut().find(|waiting| waiting.ticket.matches(&ticket)) {
                own.place = Place::Anywhere;
            }
        }
        Ok(Ticket { text: secret.expose().to_owned(), good_for: GOOD_FOR })
    }

    fn reserve(&self, ticket: Digest, key: Digest) -> Result<(), Problem> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|ticket| ticket.until > now);
        let own = waiting.iter().filter(|ticket| ticket.key.matches(&key));
        if own.clone().count() >= MOST_OF_ONE_KEY {
            let oldest = own.map(|ticket| ticket.until).min().unwrap_or(now);
            let kind = Kind::RateLimited { retry_after: oldest.saturating_duration_since(now) };
            return Err(Problem::new(
                kind,
                format!("{MOST_OF_ONE_KEY} unused tickets of this API key; use one of them first"),
            ));
        }
        if waiting.len() >= MOST {
            let kind = Kind::Unavailable { retry_after: GOOD_FOR };
            return Err(Problem::new(kind, "too many unused tickets; try again in half a minute"));
        }
        waiting.push(Waiting { ticket, key, until: now + GOOD_FOR, place: Place::Here });
        Ok(())
    }

    /// The key that a ticket stands for. It is used up by this.
    pub(super) async fn redeem(&self, ticket: &str) -> Option<Digest> {
        let given = Digest::of(ticket.as_bytes());
        match (self.take_own(given), &self.shared) {
            (Some((key, Place::Here)), _) => Some(key),
            (_, Some(shared)) => shared.take(given.into_bytes()).await.map(Digest::from_bytes),
            (_, None) => None,
        }
    }

    fn take_own(&self, given: Digest) -> Option<(Digest, Place)> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|ticket| ticket.until > now);
        let at = waiting.iter().position(|ticket| ticket.ticket.matches(&given))?;
        let own = waiting.swap_remove(at);
        Some((own.key, own.place))
    }
}

/// The ticket of a request for a WebSocket, from its subprotocols or its address. Asked for only where a WebSocket
/// begins: an address is written to logs, so a ticket must be good for nothing else.
pub(super) fn of_request(request: &Request) -> Option<&str> {
    let headers = request.headers();
    let is_upgrade = headers.get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_upgrade || *request.method() != Method::GET {
        return None;
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered = offered.flat_map(|value| value.split(',')).find_map(|name| name.trim().strip_prefix("ticket."));
    let asked = || request.uri().query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="));
    offered.or_else(asked)
}
