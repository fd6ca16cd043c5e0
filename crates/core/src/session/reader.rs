//! The one way to read a session: what is in memory, older pages from the store, then what happens, and again from where
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
use crate::store::Store;

/// Reads a session in order, without gap or double.
pub struct SessionReader {
    handle: SessionHandle,
    store: Arc<dyn Store>,
    ready: VecDeque<Batch>,
    source: Source,
    seen: Seq,
    /// How often it may still come back.
    returns: u32,
    backpressure: Backpressure,
}

enum Source {
    Live(mpsc::Receiver<Batch>),
    Attaching(BoxFuture<'static, Result<Attachment, Error>>),
    Older { older: Older, page: BoxFuture<'static, Result<Vec<LogEntry>, Error>>, rest: Box<Attachment> },
    Closed,
}

/// A reader that falls behind again and again will not make it.
const MOST_RETURNS: u32 = 1_000;
/// Entries read from the store at once.
const PAGE: usize = 512;

impl SessionReader {
    /// Goes on from an attachment, its older entries first.
    pub fn new(handle: SessionHandle, attachment: Attachment, store: Arc<dyn Store>) -> Self {
        let mut reader = Self::closed(handle, store);
        reader.seen = attachment
            .snapshot
            .first()
            .and_then(|batch| batch.first())
            .map_or(attachment.last, |first| Seq(first.seq.0.saturating_sub(1)));
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
    pub fn closed(handle: SessionHandle, store: Arc<dyn Store>) -> Self {
        let (ready, source) = (VecDeque::new(), Source::Closed);
        Self { handle, store, ready, source, seen: Seq::START, returns: MOST_RETURNS, backpressure: Backpressure::Own }
    }

    pub fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// The number of the last entry that was read.
    pub fn seen(&self) -> Seq {
        self.seen
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

    /// The next entries. May be dropped and called again. [`Error::Closed`]: the session has ended.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, Error>> {
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
                Source::Attaching(attaching) => {
                    let attachment = ready!(attaching.as_mut().poll(cx))?;
                    self.take_up(attachment);
                }
                Source::Older { page, .. } => {
                    let entries = ready!(page.as_mut().poll(cx))?;
                    self.turn_page(entries);
                }
                Source::Closed => return Poll::Ready(Err(Error::Closed)),
            }
        }
    }

    fn come_back(&mut self) -> Result<Source, Error> {
        self.returns = self.returns.checked_sub(1).ok_or(Error::Closed)?;
        Ok(Source::Attaching(attach_after(self.handle.clone(), self.seen, self.backpressure)))
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

    fn page(&self, older: Older) -> BoxFuture<'static, Result<Vec<LogEntry>, Error>> {
        let (store, id) = (Arc::clone(&self.store), self.handle.id());
        Box::pin(async move { Ok(store.read(id, older.after, older.until, PAGE).await?) })
    }

    fn turn_page(&mut self, entries: Vec<LogEntry>) {
        let Source::Older { older, rest, .. } = std::mem::replace(&mut self.source, Source::Closed) else { return };
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
}

fn attach_after(
    handle: SessionHandle,
    seen: Seq,
    backpressure: Backpressure,
) -> BoxFuture<'static, Result<Attachment, Error>> {
    Box::pin(async move { handle.attach(From::After(seen), backpressure).await })
}
