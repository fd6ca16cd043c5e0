//! What is under way for a client: each request is a task of its own, so that none holds up another.

use std::collections::HashMap;
use std::task::{Context, Poll};

use gembridge_core::error::Error;
use gembridge_core::model::{AskId, SessionId, TurnId};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, JoinSet};

use crate::acp::error::Refusal;
use crate::acp::subscription::Taken;

#[derive(Default)]
pub(super) struct Calls {
    tasks: JoinSet<Done>,
    /// Those that can be given up, by the id of their request.
    requests: HashMap<String, AbortHandle>,
}

/// What came of something that was under way.
pub(super) enum Done {
    /// The answer to a request.
    Reply {
        request: Box<RawValue>,
        result: Result<Value, Refusal>,
    },
    /// The client is known: the session that its address names is shown now.
    Greeted {
        request: Box<RawValue>,
        result: Value,
    },
    /// A place at a session, and what its request is told.
    Subscribed {
        session: SessionId,
        request: Option<Box<RawValue>>,
        taken: Result<Box<Taken>, Refusal>,
    },
    Prompted {
        session: SessionId,
        request: Box<RawValue>,
        accepted: Result<Started, Refusal>,
    },
    AnswerRefused {
        session: SessionId,
        ask: AskId,
        error: Error,
    },
    Sessions(Vec<Value>),
    Nothing,
}

/// A prompt that is in the log.
pub(super) struct Started {
    pub turn: TurnId,
    pub ahead: usize,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Runs a request until it is done or given up.
    pub(super) fn spawn(&mut self, request: &RawValue, call: impl Future<Output = Done> + Send + 'static) {
        let handle = self.tasks.spawn(call);
        self.requests.insert(request.get().to_owned(), handle);
    }

    /// Whether a request of this id is under way.
    pub(super) fn has(&self, request: &RawValue) -> bool {
        self.requests.contains_key(request.get())
    }

    /// Gives a request up. Whether it was under way.
    pub(super) fn abort(&mut self, request: &RawValue) -> bool {
        let handle = self.requests.remove(request.get());
        handle.is_some_and(|handle| {
            handle.abort();
            true
        })
    }

    /// Runs something that no request waits for.
    pub(super) fn aside(&mut self, order: impl Future<Output = Result<(), Error>> + Send + 'static) {
        self.tasks.spawn(async move {
            if let Err(error) = order.await {
                tracing::debug!(%error, "what a client wanted could not be done");
            }
            Done::Nothing
        });
    }

    /// Runs something that ends in a `Done` of its own.
    pub(super) fn run(&mut self, call: impl Future<Output = Done> + Send + 'static) {
        self.tasks.spawn(call);
    }

    /// Gives an answer, and says if it was refused.
    pub(super) fn answer(&mut self, answer: impl Future<Output = Option<(SessionId, AskId, Error)>> + Send + 'static) {
        self.tasks.spawn(async move {
            match answer.await {
                Some((session, ask, error)) => Done::AnswerRefused { session, ask, error },
                None => Done::Nothing,
            }
        });
    }

    pub(super) fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<Done> {
        while let Poll::Ready(Some(joined)) = self.tasks.poll_join_next(cx) {
            match joined {
                Ok(Done::Nothing) => {}
                Ok(done) => {
                    self.forget(&done);
                    return Poll::Ready(done);
                }
                Err(error) if error.is_panic() => tracing::error!("a request's task panicked"),
                // It was given up, and its client was told.
                Err(_) => {}
            }
        }
        Poll::Pending
    }

    fn forget(&mut self, done: &Done) {
        let request = match done {
            Done::Reply { request, .. } | Done::Greeted { request, .. } | Done::Prompted { request, .. } => {
                Some(request)
            }
            Done::Subscribed { request, .. } => request.as_ref(),
            Done::AnswerRefused { .. } | Done::Sessions(_) | Done::Nothing => None,
        };
        if let Some(request) = request {
            self.requests.remove(request.get());
        }
    }
}
