//! How long an answer waited for its session and for a permit of its agent.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::sink::AnswerPlace;

/// Shared by whoever begins the answer and whoever tells the client of it. All clones are one clock.
#[derive(Clone, Default)]
pub(super) struct QueueClock {
    state: Arc<Mutex<State>>,
    /// Where the prompt was accepted first.
    accepted: Arc<OnceLock<AnswerPlace>>,
}

#[derive(Clone, Copy, Default)]
enum State {
    /// The session has not been asked yet.
    #[default]
    NotAsked,
    Waiting {
        since: Instant,
        before: Duration,
    },
    Admitted {
        waited: Duration,
    },
}

impl QueueClock {
    /// A session has the prompt. Another one may get it later, where this one cannot go on.
    pub(super) fn accept(&self, place: AnswerPlace) {
        self.accepted.get_or_init(|| place);
    }

    pub(super) fn accepted(&self) -> Option<AnswerPlace> {
        self.accepted.get().copied()
    }

    /// The prompt is accepted and waits.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        let before = state.waited();
        *state = State::Waiting { since: Instant::now(), before };
    }

    /// The agent may take it.
    pub(super) fn admit(&self) {
        let mut state = self.lock();
        *state = State::Admitted { waited: state.waited() };
    }

    pub(super) fn is_admitted(&self) -> bool {
        matches!(*self.lock(), State::Admitted { .. })
    }

    pub(super) fn waited(&self) -> Duration {
        self.lock().waited()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waited(&self) -> Duration {
        match self {
            Self::NotAsked => Duration::ZERO,
            Self::Waiting { since, before } => *before + since.elapsed(),
            Self::Admitted { waited } => *waited,
        }
    }
}
