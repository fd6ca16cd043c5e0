//! A client that reads a session as a face would: what is stored, what is in memory, what comes.

use std::collections::VecDeque;
use std::time::Duration;

use gembridge_core::log::{Attachment, Backpressure, From, LogEntry};
use gembridge_core::model::{CallId, Event, Outcome, ReturnedBy, Seq, TurnId};
use gembridge_core::session::SessionHandle;
use gembridge_core::store::Logs as _;
use tokio::sync::mpsc;

use super::store::FaultyStore;

pub struct Reader {
    ready: VecDeque<LogEntry>,
    follow: mpsc::Receiver<gembridge_core::log::Batch>,
}

impl Reader {
    /// Reads the session from its first entry.
    pub async fn of(handle: &SessionHandle, store: &FaultyStore) -> Self {
        let attachment = handle.attach(From::After(Seq::START), Backpressure::Own).await.expect("attaching works");
        Self::take(attachment, handle, store).await
    }

    /// Reads what comes after this entry.
    pub async fn after(seq: Seq, handle: &SessionHandle, store: &FaultyStore) -> Self {
        let attachment = handle.attach(From::After(seq), Backpressure::Own).await.expect("attaching works");
        Self::take(attachment, handle, store).await
    }

    async fn take(attachment: Attachment, handle: &SessionHandle, store: &FaultyStore) -> Self {
        let mut ready = VecDeque::new();
        if let Some(older) = attachment.older {
            ready.extend(store.read(handle.id(), older.after, older.until, usize::MAX).await.expect("reading works"));
        }
        ready.extend(attachment.snapshot.iter().flat_map(|batch| batch.iter().cloned()));
        Self { ready, follow: attachment.follow }
    }

    /// The next entry; `None` when the session let this reader go.
    pub async fn next(&mut self) -> Option<LogEntry> {
        while self.ready.is_empty() {
            let batch = tokio::time::timeout(Duration::from_hours(100), self.follow.recv()).await;
            self.ready.extend(batch.expect("something happens in the session")?.iter().cloned());
        }
        self.ready.pop_front()
    }

    /// Reads on to the first event for which `wanted` has a value.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&LogEntry) -> Option<T>) -> T {
        loop {
            let entry = self.next().await.expect("the session is there");
            if let Some(found) = wanted(&entry) {
                return found;
            }
        }
    }

    /// Reads on to the end of the turn.
    pub async fn until_ended(&mut self, turn: TurnId) -> Outcome {
        let ended = |entry: &LogEntry| match &entry.event {
            Event::Ended(outcome) if entry.turn == Some(turn) => Some(outcome.clone()),
            _ => None,
        };
        self.until(ended).await
    }

    /// Reads on to where the agent waits for its client.
    pub async fn until_parked(&mut self) -> Vec<CallId> {
        let parked = |entry: &LogEntry| match &entry.event {
            Event::Parked(calls) => Some(calls.clone()),
            _ => None,
        };
        self.until(parked).await
    }

    /// Reads on to the next end of a call.
    pub async fn until_returned(&mut self) -> (CallId, ReturnedBy) {
        let returned = |entry: &LogEntry| match &entry.event {
            Event::Returned { call, by, .. } => Some((*call, *by)),
            _ => None,
        };
        self.until(returned).await
    }

    /// Reads on to the next question.
    pub async fn until_asked(&mut self) {
        self.until(|entry| matches!(entry.event, Event::Asked(_)).then_some(())).await;
    }

    /// Reads on to the next piece of text.
    pub async fn until_text(&mut self) -> String {
        let text = |entry: &LogEntry| match &entry.event {
            Event::Text(text) => Some(text.to_str().into_owned()),
            _ => None,
        };
        self.until(text).await
    }
}
