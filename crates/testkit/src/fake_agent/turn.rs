//! One running prompt: where its thread waits for answers, for time to pass and for its cancel.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;

#[derive(Default)]
pub struct Turn {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cancelled: Option<Cancel>,
    answers: HashMap<u64, Value>,
}

/// How the client took the prompt back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// `session/cancel`, or a second prompt that displaced this one.
    Session,
    /// `$/cancel_request` for the prompt's own id.
    Request,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    UntilCancelled,
    UntilAnswered,
}

impl Turn {
    pub fn cancel(&self, cancel: Cancel) {
        self.lock().cancelled.get_or_insert(cancel);
        self.changed.notify_all();
    }

    pub fn cancelled(&self) -> Option<Cancel> {
        self.lock().cancelled
    }

    pub fn answer(&self, request: u64, response: Value) {
        self.lock().answers.insert(request, response);
        self.changed.notify_all();
    }

    /// Waits for the whole response to one request of ours.
    pub fn wait_for_answer(&self, request: u64, patience: Patience) -> Result<Value, Cancel> {
        let mut state = self.lock();
        loop {
            if let Some(response) = state.answers.remove(&request) {
                return Ok(response);
            }
            if let (Some(cancel), Patience::UntilCancelled) = (state.cancelled, patience) {
                return Err(cancel);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn wait_for_cancel(&self) -> Cancel {
        let mut state = self.lock();
        loop {
            if let Some(cancel) = state.cancelled {
                return cancel;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets time pass, unless a cancel comes first.
    pub fn pause(&self, duration: Duration) -> Result<(), Cancel> {
        let deadline = Instant::now() + duration;
        let mut state = self.lock();
        loop {
            if let Some(cancel) = state.cancelled {
                return Err(cancel);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
