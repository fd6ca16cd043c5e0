//! Events on their way to whoever takes them.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::conversation::Conversation;
use crate::event::{Observed, TurnEvent};

pub(super) struct Emitter<'a> {
    conversation: &'a Arc<Conversation>,
    session: String,
    events: Option<mpsc::Sender<TurnEvent>>,
    deadline: Option<Instant>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        conversation: &'a Arc<Conversation>,
        events: Option<mpsc::Sender<TurnEvent>>,
        deadline: Option<Instant>,
    ) -> Self {
        Self { conversation, session: conversation.id.to_string(), events, deadline }
    }

    /// Waits for room, so that a caller that does not keep up slows the agent down, but never beyond the deadline.
    pub(super) async fn emit(&self, event: TurnEvent) {
        if let Some(observer) = &self.conversation.terms().observer {
            let adapter = &self.conversation.engine.config.adapter;
            observer(Observed { adapter, session: &self.session, event: &event });
        }
        let Some(events) = &self.events else { return };
        let sent = match self.deadline {
            Some(deadline) => {
                tokio::time::timeout_at(deadline, events.send(event)).await.is_ok_and(|sent| sent.is_ok())
            }
            None => events.send(event).await.is_ok(),
        };
        if !sent {
            tracing::trace!("an event found nobody who takes it");
        }
    }
}
