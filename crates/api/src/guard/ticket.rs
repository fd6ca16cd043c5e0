//! Tickets: each stands once, for half a minute, in the place of a key that a browser cannot send.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri, header};

use crate::keys::{Digest, Key, KeyLease};
use crate::problem::{Kind, Problem};

const GOOD_FOR: Duration = Duration::from_secs(30);
/// Tickets that wait to be used; one more is refused until an older one is used or has run out.
const MOST: usize = 4_096;

/// A ticket for its owner.
pub struct Ticket {
    pub text: String,
    pub good_for: Duration,
}

#[derive(Default)]
pub(super) struct Tickets {
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    ticket: Digest,
    key: Digest,
    until: Instant,
}

impl Tickets {
    pub(super) fn issue(&self, lease: &KeyLease) -> Result<Ticket, Problem> {
        let secret = Key::generate().map_err(|failure| {
            tracing::error!(%failure, "no randomness for a ticket");
            Problem::new(Kind::Internal, "no ticket can be made now; the log says why")
        })?;
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|ticket| ticket.until > now);
        if waiting.len() >= MOST {
            let kind = Kind::Unavailable { retry_after: GOOD_FOR };
            return Err(Problem::new(kind, "too many tickets wait to be used; try again in half a minute"));
        }
        waiting.push(Waiting { ticket: secret.digest(), key: lease.digest(), until: now + GOOD_FOR });
        Ok(Ticket { text: secret.expose().to_owned(), good_for: GOOD_FOR })
    }

    /// The key that a ticket stands for. It is used up by this.
    pub(super) fn redeem(&self, ticket: &str) -> Option<Digest> {
        let (now, given) = (Instant::now(), Digest::of(ticket.as_bytes()));
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|ticket| ticket.until > now);
        let at = waiting.iter().position(|ticket| ticket.ticket.matches(&given))?;
        Some(waiting.swap_remove(at).key)
    }
}

/// The ticket of a request for a WebSocket, from its subprotocols or its address.
pub(super) fn of_request<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let is_upgrade = headers.get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_upgrade {
        return None;
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered = offered.flat_map(|value| value.split(',')).find_map(|name| name.trim().strip_prefix("ticket."));
    let asked = || uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="));
    offered.or_else(asked)
}
