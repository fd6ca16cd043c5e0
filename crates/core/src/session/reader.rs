//! The one way to read a session: what is in memory, older pages from the log that is kept, then what happens, and again from where
//! it left off when the session let it go.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;

use super::SessionHandle;
use crate::BoxFuture;
use crate::error::Error;
use crate::log::{Attachment, Backpressure, Batch, From, LogEntry, Older};
use crate::model::Seq;
use crate::store::{Logs, StoreError};

/// Reads a session in order, without gap or double.
pub struct SessionReader {
    handle: SessionHandle,
    logs: Arc<dyn Logs>,
    ready: VecDeque<Batch>,
    source: Source,
    seen: Seq,
    /// Entries that the next page holds.
    page_entries: usize,
    /// How often it came back since it last read something.
    idle_returns: u32,
    backpressure: Backpressure,
}

enum Source {
    Live(mpsc::Receiver<Batch>),
    Attaching(BoxFuture<'static, Result<Attachment, Error>>),
    Older {
        older: Older,
        page: Page,
        rest: Box<Attachment>,
    },
    /// The session closed before this reader had seen all of its log.
    Rest(Page),
    Closed,
}

type Page = BoxFuture<'static, Result<Vec<LogEntry>, Error>>;

/// A session that lets its readers go each time, and has nothing for them, is of no use to them.
const MOST_IDLE_RETURNS: u32 = 16;
/// Entries read from the store at once, at first and at most.
const FIRST_PAGE: usize = 32;
const LARGEST_PAGE: usize = 256;
/// About how many bytes are read from the store at once. A page is held in memory, and written to a client, as a whole.
const PAGE_BYTES: usize = 256 << 10;

impl SessionReader {
    /// Goes on from an attachment, its older entries first.
    pub fn new(handle: SessionHandle, attachment: Attachment, logs: Arc<dyn Logs>) -> Self {
        let mut reader = Self::closed(handle, logs);
        let first = attachment.snapshot.first().and_then(|batch| batch.first());
        reader.seen = match (attachment.older, first) {
            (Some(older), _) => older.after,
            (None, Some(first)) => Seq(first.seq.0.saturating_sub(1)),
            (None, None) => attachment.last,
        };
        reader.take_up(attachment);
        reader
    }

    /// The agent waits for this reader when it does not keep up, also after it came back.
    #[must_use]
    pub fn holding_the_agent(mut self) -> Self {
        self.backpressure = Backpressure::HoldAgent;
        self
    }

    /// Reads nothing until it is told where.
    pub fn closed(handle: SessionHandle, logs: Arc<dyn Logs>) -> Self {
        Self {
            handle,
            logs,
            ready: VecDeque::new(),
            source: Source::Closed,
            seen: Seq::START,
            page_entries: FIRST_PAGE,
            idle_returns: 0,
            backpressure: Backpressure::Own,
        }
    }

    pub fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// The number of the last entry that was read.
    pub fn seen(&self) -> Seq {
        self.seen
    }

    /// Whether everything that was there when it attached has been read: what comes next is what happens.
    pub fn is_live(&self) -> bool {
        self.ready.is_empty() && matches!(self.source, Source::Live(_))
    }

    /// Reads on after this entry.
    pub fn go_to(&mut self, entry: Seq) {
        self.seen = entry;
        self.ready.clear();
        self.source = Source::Attaching(attach_after(self.handle.clone(), entry, self.backpressure));
    }

    /// Follows the session no more.
    pub fn close(&mut self) {
        self.source = Source::Closed;
    }

    /// These entries come again, before all others.
    pub fn put_back(&mut self, batches: Vec<Batch>) {
        for batch in batches.into_iter().rev() {
            self.ready.push_front(batch);
        }
    }

    pub async fn next(&mut self) -> Result<Batch, Error> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next entries. May be dropped and called again. [`Error::Closed`]: the session has ended, and all of its log was
    /// read.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, Error>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.seen = batch.last().map_or(self.seen, |entry| self.seen.max(entry.seq));
                self.idle_returns = 0;
                return Poll::Ready(Ok(batch));
            }
            match &mut self.source {
                Source::Live(receiver) => match ready!(receiver.poll_recv(cx)) {
                    Some(batch) => self.ready.push_back(batch),
                    None => self.come_back(),
                },
                Source::Attaching(attaching) => match ready!(attaching.as_mut().poll(cx)) {
                    Ok(attachment) => self.take_up(attachment),
                    Err(Error::Closed) => self.source = Source::Rest(self.page(self.rest())),
                    Err(error) => return Poll::Ready(Err(self.fail(error))),
                },
                Source::Older { page, .. } => match ready!(page.as_mut().poll(cx)) {
                    Ok(entries) => self.turn_page(entries),
                    Err(error) => return Poll::Ready(Err(self.fail(error))),
                },
                Source::Rest(page) => match ready!(page.as_mut().poll(cx)) {
                    Ok(entries) => self.turn_last_page(entries),
                    // It was deleted.
                    Err(Error::Store(StoreError::Unknown(_))) => self.source = Source::Closed,
                    Err(error) => return Poll::Ready(Err(self.fail(error))),
                },
                Source::Closed => return Poll::Ready(Err(Error::Closed)),
            }
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.source = Source::Closed;
        error
    }

    fn come_back(&mut self) {
        self.idle_returns += 1;
        self.source = if self.idle_returns > MOST_IDLE_RETURNS {
            Source::Closed
        } else {
            Source::Attaching(attach_after(self.handle.clone(), self.seen, self.backpressure))
        };
    }

    fn take_up(&mut self, attachment: Attachment) {
        if let Some(older) = attachment.older {
            let page = self.page(older);
            self.source = Source::Older { older, page, rest: Box::new(attachment) };
        } else {
            self.ready.extend(attachment.snapshot);
            self.source = Source::Live(attachment.follow);
        }
    }

    /// What the log holds after the last entry that was read.
    fn rest(&self) -> Older {
        Older { after: self.seen, until: Seq(u64::MAX) }
    }

    fn page(&self, older: Older) -> Page {
        let (logs, id, limit) = (Arc::clone(&self.logs), self.handle.id(), self.page_entries);
        Box::pin(async move { Ok(logs.read(id, older.after, older.until, limit).await?) })
    }

    fn turn_page(&mut self, entries: Vec<LogEntry>) {
        let Source::Older { older, rest, .. } = std::mem::replace(&mut self.source, Source::Closed) else { return };
        self.fit_pages(&entries);
        match entries.last().map(|entry| entry.seq) {
            Some(last) if last < older.until => {
                let older = Older { after: last, until: older.until };
                let page = self.page(older);
                self.source = Source::Older { older, page, rest };
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

    fn turn_last_page(&mut self, entries: Vec<LogEntry>) {
        let Some(last) = entries.last().map(|entry| entry.seq) else {
            self.source = Source::Closed;
            return;
        };
        self.fit_pages(&entries);
        self.source = Source::Rest(self.page(Older { after: last, ..self.rest() }));
        self.ready.push_back(entries.into());
    }

    /// Large entries are read a few at a time. Pages grow slowly, since those that come next may be larger.
    fn fit_pages(&mut self, entries: &[LogEntry]) {
        let bytes: usize = entries.iter().map(LogEntry::weight).sum();
        let average = bytes.checked_div(entries.len()).unwrap_or(0).max(1);
        self.page_entries = (PAGE_BYTES / average).clamp(1, (2 * self.page_entries).min(LARGEST_PAGE));
    }
}

fn attach_after(
    handle: SessionHandle,
    seen: Seq,
    backpressure: Backpressure,
) -> BoxFuture<'static, Result<Attachment, Error>> {
    Box::pin(async move { handle.attach(From::After(seen), backpressure).await })
}
