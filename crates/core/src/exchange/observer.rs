//! Who hears what becomes of a request.

use std::time::Duration;

use super::queue_clock::QueueClock;
use super::token_count::TokenCount;
use crate::model::SessionId;

/// Hears what becomes of a request, for logs and metrics. Nothing of what was said is told.
pub trait ExchangeObserver: Send {
    fn session(&self, session: SessionId);
    fn first_piece(&self);
    fn failed(&self, why: &str);
    fn ended(&self, tokens: Option<TokenCount>);
    /// How long it waited, however that ended.
    fn queued(&self, waited: Duration);
}

pub(super) struct Watched {
    pub clocks: Vec<QueueClock>,
    pub observer: Option<Box<dyn ExchangeObserver>>,
}

impl Watched {
    pub(super) fn waited(&self) -> Duration {
        self.clocks.iter().map(QueueClock::waited).max().unwrap_or_default()
    }
}
