//! What several prompts may use together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{ErrorKind, EvaluateError, Phase};
use crate::reply::Usage;

/// Tokens and time that prompts share. Clones are one budget.
///
/// What a prompt used is added when it is over, whether it was answered or not. A prompt that finds nothing left is
/// refused; one that uses more than is left is still answered.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tokens: Option<u64>,
    ends: Option<Instant>,
    used: AtomicU64,
}

impl Budget {
    /// Without a bound; what is used is counted.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// So many tokens, those that go in and those that come out.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self::of(Some(tokens), None)
    }

    /// So much time from now on.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self::of(None, Some(Instant::now() + time))
    }

    /// The same with an end from now on. What was used up to now is left behind.
    #[must_use]
    pub fn and_time(self, time: Duration) -> Self {
        Self::of(self.shared.tokens, Some(Instant::now() + time))
    }

    fn of(tokens: Option<u64>, ends: Option<Instant>) -> Self {
        Self { shared: Arc::new(Shared { tokens, ends, used: AtomicU64::new(0) }) }
    }

    /// The tokens that were used up to now.
    #[must_use]
    pub fn used_tokens(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        let no_tokens = self.shared.tokens.is_some_and(|tokens| self.used_tokens() >= tokens);
        no_tokens || self.shared.ends.is_some_and(|ends| ends <= Instant::now())
    }

    /// Whether nothing would be left after this.
    pub(crate) fn would_exhaust(&self, usage: Usage) -> bool {
        let used = self.used_tokens().saturating_add(usage.tokens());
        self.shared.tokens.is_some_and(|tokens| used >= tokens)
    }

    pub(crate) fn ends(&self) -> Option<Instant> {
        self.shared.ends
    }

    pub(crate) fn spend(&self, usage: Usage) {
        self.shared.used.fetch_add(usage.tokens(), Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), EvaluateError> {
        if !self.is_exhausted() {
            return Ok(());
        }
        let message = match self.shared.tokens {
            Some(tokens) if self.used_tokens() >= tokens => {
                format!(
                    "the budget of {tokens} tokens is used up ({} were used); give a larger one",
                    self.used_tokens()
                )
            }
            _ => "the time of the budget is over; give a new one".to_owned(),
        };
        Err(EvaluateError::new(Phase::Budget, ErrorKind::BudgetExhausted, message))
    }
}
