//! One turn that a client waits for: what it has brought, what it brings, and who ends it when the client goes.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::task::TaskTracker;

use super::conversations::Held;
use super::queue_clock::QueueClock;
use super::sink::AnswerPlace;
use crate::error::Error;
use crate::log::{Attachment, Batch, LogEntry};
use crate::model::{Event, Failure, Outcome, Seq, SessionId, TurnId};
use crate::session::{SessionHandle, SessionReader};
use crate::store::Logs;

/// A turn that was accepted. Dropped before it ended, it is abandoned.
pub(super) struct StartedTurn {
    turn: TurnId,
    reader: SessionReader,
    /// Everything of it that the client gets comes after this entry.
    after: Seq,
    /// Runs the cancel of a turn that was dropped.
    tasks: TaskTracker,
    /// Messages before it that the agent was not told.
    left_out: usize,
    over: bool,
}

/// Whether the agent got the prompt.
pub(super) enum Start {
    Started,
    /// It ended before; nothing was said.
    Never(Failure),
    /// The turn before it in its session waits for results, which may never come.
    BehindCalls,
}

impl StartedTurn {
    pub(super) fn new(
        handle: SessionHandle,
        turn: TurnId,
        attachment: Attachment,
        logs: Arc<dyn Logs>,
        tasks: TaskTracker,
    ) -> Self {
        let reader = SessionReader::new(handle, attachment, logs);
        Self { turn, after: reader.seen(), reader, tasks, left_out: 0, over: false }
    }

    /// A turn that runs already, and that nobody reads yet.
    pub(super) fn unread_turn(handle: SessionHandle, turn: TurnId, logs: Arc<dyn Logs>, tasks: TaskTracker) -> Self {
        let reader = SessionReader::closed(handle, logs);
        Self { turn, after: reader.seen(), reader, tasks, left_out: 0, over: false }
    }

    /// Reads on from after this entry.
    pub(super) fn read_after(&mut self, entry: Seq) {
        self.after = entry;
        self.reader.go_to(entry);
    }

    pub(super) fn session(&self) -> SessionId {
        self.handle().id()
    }

    pub(super) fn id(&self) -> TurnId {
        self.turn
    }

    pub(super) fn place(&self) -> AnswerPlace {
        AnswerPlace { session: self.session(), turn: self.turn, after: self.after }
    }

    pub(super) fn held(&self) -> Held {
        Held { session: self.session(), turn: self.turn }
    }

    /// Waits until the agent has the prompt.
    pub(super) async fn start(&mut self, clock: &QueueClock) -> Result<Start, Error> {
        let start = self
            .until(|entry, own| match &entry.event {
                Event::Parked(_) if entry.turn != Some(own) => Some((Start::BehindCalls, 0)),
                _ if entry.turn != Some(own) => None,
                Event::Prompted { .. } => None,
                Event::Admitted => {
                    clock.admit();
                    None
                }
                Event::HistoryReplayed { left_out } => Some((Start::Started, *left_out)),
                Event::Ended(Outcome::Interrupted(failure)) => Some((Start::Never(failure.clone()), 0)),
                _ => Some((Start::Started, 0)),
            })
            .await?;
        let (start, left_out) = start;
        self.left_out += left_out;
        if matches!(start, Start::Never(_)) {
            self.over = true;
        }
        Ok(start)
    }

    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// So many messages before it are not in its prompt.
    pub(super) fn leave_out(&mut self, messages: usize) {
        self.left_out += messages;
    }

    /// Waits for the first thing that the agent does for the prompt. A failure of the kind in question is the end of
    /// the turn; after any other it goes on as if nobody had asked.
    pub(super) async fn silent_failure(&mut self, in_question: fn(&Failure) -> bool) -> Result<Option<Failure>, Error> {
        let failure = self
            .until(|entry, own| match &entry.event {
                _ if entry.turn != Some(own) => None,
                Event::Ended(Outcome::Interrupted(failure)) => Some(Some(failure.clone()).filter(in_question)),
                event => event.is_done_for_the_prompt().then_some(None),
            })
            .await?;
        self.over |= failure.is_some();
        Ok(failure)
    }

    /// Reads until an entry decides, given the turn. What was read is read again later.
    async fn until<T>(&mut self, decide: impl Fn(&LogEntry, TurnId) -> Option<T>) -> Result<T, Error> {
        let mut read = Vec::new();
        let decision = loop {
            let batch = self.reader.next().await?;
            let decision = batch.iter().find_map(|entry| decide(entry, self.turn));
            read.push(batch);
            if let Some(decision) = decision {
                break decision;
            }
        };
        self.reader.put_back(read);
        Ok(decision)
    }

    /// The next entries of the session. Those of other turns are among them.
    pub(super) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, Error>> {
        self.reader.poll_next(cx)
    }

    pub(super) fn handle(&self) -> &SessionHandle {
        self.reader.handle()
    }

    /// These entries come again, before all others.
    pub(super) fn unread(&mut self, entries: &[LogEntry]) {
        if !entries.is_empty() {
            self.reader.put_back(vec![entries.into()]);
        }
    }

    /// The turn has ended, or goes on without this client: nobody needs to be told.
    pub(super) fn ended(&mut self) {
        self.over = true;
    }

    /// Takes the prompt back, which the agent does not have yet.
    pub(super) async fn withdraw(mut self) -> Result<(), Error> {
        self.over = true;
        self.handle().cancel_turn(self.turn).await
    }

    /// Ends the turn, whoever else watches it: the client has what it wanted.
    pub(super) fn cut(&mut self) {
        self.over = true;
        let (handle, turn) = (self.handle().clone(), self.turn);
        self.tasks.spawn(async move { report(handle.cancel_turn(turn).await, &handle) });
    }
}

impl Drop for StartedTurn {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Our own reader is closed first, so that the session does not count it among those who watch.
        self.reader.close();
        let (handle, turn) = (self.handle().clone(), self.turn);
        self.tasks.spawn(async move { report(handle.abandon(turn).await, &handle) });
    }
}

fn report(told: Result<(), Error>, handle: &SessionHandle) {
    match told {
        Ok(()) | Err(Error::Closed) => {}
        Err(error) => tracing::warn!(session = %handle.id(), %error, "a turn that nobody wants could not be ended"),
    }
}
