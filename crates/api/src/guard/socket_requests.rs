//! Requests that come as messages of a WebSocket: each is counted and charged as if it had come over HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use super::memory_budget::{BodyCharge, MemoryAccount};
use super::rate::{Purpose, RateLimiter};
use crate::identity::Identity;
use crate::problem::Problem;

/// What the guard gives to a request for a WebSocket whose messages are requests.
#[derive(Clone)]
pub struct SocketRequests {
    rates: Arc<RateLimiter>,
    owner: Identity,
    client: IpAddr,
    pub memory: MemoryAccount,
}

impl SocketRequests {
    pub(super) fn new(rates: Arc<RateLimiter>, owner: Identity, client: IpAddr, memory: MemoryAccount) -> Self {
        Self { rates, owner, client, memory }
    }

    /// Counts one more request of so many bytes, and charges it until the charge is dropped.
    pub fn admit(&self, bytes: usize) -> Result<BodyCharge, Problem> {
        self.rates.count_key(&self.owner, self.client, Purpose::Work).map_err(super::rate::Exceeded::problem)?;
        let mut charge = self.memory.charge();
        charge.try_hold(bytes).map_err(super::memory_budget::Full::problem)?;
        Ok(BodyCharge(Arc::new(charge)))
    }
}
