//! One turn that a client waits for: what it has brought, what it brings, and who ends it when the client goes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gembridge_core::BoxFuture;
use gembridge_core::error::Error;
use gembridge_core::log::{Attachment, Batch, From, LogEntry, Older, Pace};
use gembridge_core::model::{Event, Failure, Outcome, Seq, SessionId, TurnId};
use gembridge_core::session::SessionHandle;
use gembridge_core::store::Store;
use tokio_util::task::TaskTracker;

use super::queue_clock::QueueClock;

/// A turn that was accepted. Dropped before it ended, it is abandoned.
pub(super) struct LiveTurn {
    handle: SessionHandle,
    turn: TurnId,
    follow: Follow,
    /// Where the work of leaving goes.
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

impl LiveTurn {
    pub(super) fn new(
        handle: SessionHandle,
        turn: TurnId,
        attachment: Attachment,
        store: Arc<dyn Store>,
        tasks: TaskTracker,
    ) -> Self {
        let follow = Follow::new(handle.clone(), attachment, store);
        Self { handle, turn, follow, tasks, left_out: 0, over: false }
    }

    /// A turn that runs already, and that nobody reads yet.
    pub(super) fn unread_turn(handle: SessionHandle, turn: TurnId, store: Arc<dyn Store>, tasks: TaskTracker) -> Self {
        let follow = Follow::nothing(handle.clone(), store);
        Self { handle, turn, follow, tasks, left_out: 0, over: false }
    }

    /// Reads on from after this entry.
    pub(super) fn read_after(&mut self, entry: Seq) {
        self.follow.go_to(entry);
    }

    pub(super) fn session(&self) -> SessionId {
        self.handle.id()
    }

    pub(super) fn id(&self) -> TurnId {
        self.turn
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
                Event::Retold { left_out } => Some((Start::Started, *left_out)),
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
            let batch = std::future::poll_fn(|cx| self.follow.poll_batch(cx)).await?;
            let decision = batch.iter().find_map(|entry| decide(entry, self.turn));
            read.push(batch);
            if let Some(decision) = decision {
                break decision;
            }
        };
        self.follow.put_back(read);
        Ok(decision)
    }

    /// The next entries of the session. Those of other turns are among them.
    pub(super) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, Error>> {
        self.follow.poll_batch(cx)
    }

    pub(super) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// These entries come again, before all others.
    pub(super) fn unread(&mut self, entries: &[LogEntry]) {
        if !entries.is_empty() {
            self.follow.put_back(vec![entries.into()]);
        }
    }

    /// The turn has ended, or goes on without this client: nobody needs to be told.
    pub(super) fn ended(&mut self) {
        self.over = true;
    }

    /// Takes the prompt back, which the agent does not have yet.
    pub(super) async fn withdraw(mut self) -> Result<(), Error> {
        self.over = true;
        self.handle.cancel_turn(self.turn).await
    }

    /// Ends the turn, whoever else watches it: the client has what it wanted.
    pub(super) fn cut(&mut self) {
        self.over = true;
        let (handle, turn) = (self.handle.clone(), self.turn);
        self.tasks.spawn(async move { report(handle.cancel_turn(turn).await, &handle) });
    }
}

impl Drop for LiveTurn {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Its own eyes must be closed before the session counts who else watches.
        self.follow.close();
        let (handle, turn) = (self.handle.clone(), self.turn);
        self.tasks.spawn(async move { report(handle.abandon(turn).await, &handle) });
    }
}

fn report(told: Result<(), Error>, handle: &SessionHandle) {
    match told {
        Ok(()) | Err(Error::Closed) => {}
        Err(error) => tracing::warn!(session = %handle.id(), %error, "a turn that nobody wants could not be ended"),
    }
}

/// Reads a session in order, and comes back where it left off when it lost its place.
struct Follow {
    handle: SessionHandle,
    store: Arc<dyn Store>,
    ready: VecDeque<Batch>,
    source: Source,
    seen: Seq,
    /// How often it may still come back.
    returns: u32,
}

enum Source {
    Live(tokio::sync::mpsc::Receiver<Batch>),
    Returning(BoxFuture<'static, Result<Attachment, Error>>),
    Reading { older: Older, pages: BoxFuture<'static, Result<Vec<LogEntry>, Error>>, rest: Box<Attachment> },
    Closed,
}

/// A reader that loses its place again and again will not make it.
const MOST_RETURNS: u32 = 1_000;
/// Entries read from the store at once.
const PAGE: usize = 512;

impl Follow {
    fn new(handle: SessionHandle, attachment: Attachment, store: Arc<dyn Store>) -> Self {
        let ready = attachment.snapshot.into();
        let source = Source::Live(attachment.follow);
        Self { handle, store, ready, source, seen: Seq::START, returns: MOST_RETURNS }
    }

    fn nothing(handle: SessionHandle, store: Arc<dyn Store>) -> Self {
        Self { handle, store, ready: VecDeque::new(), source: Source::Closed, seen: Seq::START, returns: MOST_RETURNS }
    }

    fn go_to(&mut self, entry: Seq) {
        self.seen = entry;
        self.source = Source::Returning(attach_after(self.handle.clone(), entry));
    }

    fn close(&mut self) {
        self.source = Source::Closed;
    }

    fn put_back(&mut self, batches: Vec<Batch>) {
        for batch in batches.into_iter().rev() {
            self.ready.push_front(batch);
        }
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, Error>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.seen = batch.last().map_or(self.seen, |entry| self.seen.max(entry.seq));
                return Poll::Ready(Ok(batch));
            }
            match &mut self.source {
                Source::Live(receiver) => match ready!(receiver.poll_recv(cx)) {
                    Some(batch) => self.ready.push_back(batch),
                    None => self.source = self.come_back()?,
                },
                Source::Returning(attaching) => {
                    let attachment = ready!(attaching.as_mut().poll(cx))?;
                    self.take_up(attachment);
                }
                Source::Reading { pages, .. } => {
                    let entries = ready!(pages.as_mut().poll(cx))?;
                    self.turn_page(entries);
                }
                Source::Closed => return Poll::Ready(Err(Error::Closed)),
            }
        }
    }

    fn come_back(&mut self) -> Result<Source, Error> {
        self.returns = self.returns.checked_sub(1).ok_or(Error::Closed)?;
        Ok(Source::Returning(attach_after(self.handle.clone(), self.seen)))
    }

    fn take_up(&mut self, attachment: Attachment) {
        if let Some(older) = attachment.older {
            let pages = self.page(older);
            self.source = Source::Reading { older, pages, rest: Box::new(attachment) };
        } else {
            self.ready.extend(attachment.snapshot);
            self.source = Source::Live(attachment.follow);
        }
    }

    fn page(&self, older: Older) -> BoxFuture<'static, Result<Vec<LogEntry>, Error>> {
        let (store, id) = (Arc::clone(&self.store), self.handle.id());
        Box::pin(async move { Ok(store.read(id, older.after, older.until, PAGE).await?) })
    }

    fn turn_page(&mut self, entries: Vec<LogEntry>) {
        let Source::Reading { older, rest, .. } = std::mem::replace(&mut self.source, Source::Closed) else { return };
        match entries.last().map(|entry| entry.seq) {
            Some(last) if last < older.until => {
                let older = Older { after: last, until: older.until };
                let pages = self.page(older);
                self.source = Source::Reading { older, pages, rest };
            }
            Some(_) | None => {
                let attachment = *rest;
                self.ready.extend(attachment.snapshot);
                self.source = Source::Live(attachment.follow);
            }
        }
        if !entries.is_empty() {
            self.ready.push_front(entries.into());
        }
    }
}

fn attach_after(handle: SessionHandle, seen: Seq) -> BoxFuture<'static, Result<Attachment, Error>> {
    Box::pin(async move { handle.attach(From::After(seen), Pace::Own).await })
}
