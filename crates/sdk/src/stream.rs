//! What happens while an agent works, as it happens.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::conversation::Conversation;
use crate::error::{ErrorKind, EvaluateError};
use crate::evaluation::{self, Asked};
use crate::event::TurnEvent;
use crate::reply::Reply;

/// The events of one evaluation. Dropping it cancels the turn.
///
/// After the last event [`finish`](Self::finish) says how it ended. A caller that takes no events slows the agent down; `finish`
/// passes over those that are left.
pub struct TurnStream {
    events: mpsc::Receiver<TurnEvent>,
    evaluation: JoinSet<Result<Reply, EvaluateError>>,
}

/// Events that may wait to be taken.
const EVENTS: usize = 256;

impl TurnStream {
    pub(crate) fn start(conversation: Arc<Conversation>, asked: Asked) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut evaluation = JoinSet::new();
        evaluation.spawn(async move { evaluation::run(&conversation, asked, Some(sender)).await });
        Self { events, evaluation }
    }

    /// The next event; `None` when the evaluation is over.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.events.recv().await
    }

    /// The whole answer, once it is there. Events that were not taken are passed over.
    pub async fn finish(mut self) -> Result<Reply, EvaluateError> {
        while self.events.recv().await.is_some() {}
        match self.evaluation.join_next().await {
            Some(Ok(reply)) => reply,
            Some(Err(error)) => {
                Err(EvaluateError::request(ErrorKind::Internal, format!("the evaluation broke: {error}")))
            }
            None => Err(EvaluateError::request(ErrorKind::Internal, "the evaluation is gone")),
        }
    }
}

impl Stream for TurnStream {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        self.events.poll_recv(cx)
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnStream").finish_non_exhaustive()
    }
}
