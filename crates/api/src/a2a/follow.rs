//! Reads a task out of its session: first as it stood at some entry, then step by step.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gembridge_core::error::Error;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Seq, Timestamp};
use gembridge_core::session::{Presence, SessionHandle, SessionReader};
use gembridge_core::store::Logs;

use super::fold::Fold;
use super::model::{Task, Update};

pub struct Follow {
    reader: SessionReader,
    fold: Fold,
    phase: Phase,
    end: End,
    /// Held while this client can answer the agent's questions.
    _presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Up to this entry it is told as a whole.
    Before(Seq),
    Live,
    Over,
}

/// Where the reading ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where the task needs its client.
    AtRest,
    /// Where the task is over: what its client says on the way is followed as well.
    Terminal,
    /// Where no turn of it is left, whatever it waits for on the way.
    AfterItsTurns,
}

pub enum Step {
    Task(Box<Task>),
    Updates(Vec<Update>),
    /// The task needs its client again, or is over.
    Over,
}

/// Where a task is read as a whole.
#[derive(Clone, Copy)]
pub enum Until {
    Entry(Seq),
    /// All that there is when it is asked for.
    Now,
}

impl Follow {
    /// Reads the entries after `start`.
    pub async fn begin(
        handle: SessionHandle,
        logs: Arc<dyn Logs>,
        start: Seq,
        until: Until,
        end: End,
        fold: Fold,
    ) -> Result<Self, Error> {
        let joined = handle.join(From::After(start), Backpressure::Own).await?;
        let until = match until {
            Until::Entry(entry) => entry,
            Until::Now => joined.attachment.last,
        };
        let reader = SessionReader::new(handle, joined.attachment, logs);
        Ok(Self { reader, fold, phase: Phase::Before(until), end, _presence: joined.presence })
    }

    pub fn fold(&mut self) -> &mut Fold {
        &mut self.fold
    }

    pub fn handle(&self) -> &SessionHandle {
        self.reader.handle()
    }

    pub async fn next(&mut self) -> Result<Step, Error> {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }

    /// Reads on until the task is at rest, and gives it as a whole.
    pub async fn rest(&mut self) -> Result<Task, Error> {
        while !matches!(self.next().await?, Step::Over) {}
        Ok(self.fold.task())
    }

    /// The task was given up while nothing ran. What is still to be told of it.
    pub fn close(&mut self, at: Timestamp) -> Option<Update> {
        self.fold.close(at);
        if self.is_done() {
            self.phase = Phase::Over;
        }
        self.fold.change()
    }

    /// Reads on until this is true of the task, and tells it as a whole from there.
    pub async fn settle(&mut self, is_settled: impl Fn(&Fold) -> bool) -> Result<(), Error> {
        let mut told = Vec::new();
        while !is_settled(&self.fold) {
            let batch = self.reader.next().await?;
            for (at, entry) in batch.iter().enumerate() {
                self.fold.take(entry, &mut told);
                told.clear();
                if is_settled(&self.fold) {
                    self.reader.put_back(vec![batch[at + 1..].into()]);
                    break;
                }
            }
        }
        self.phase = Phase::Before(Seq::START);
        Ok(())
    }

    /// What comes next. May be dropped and called again.
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, Error>> {
        loop {
            match self.phase {
                Phase::Over => return Poll::Ready(Ok(Step::Over)),
                Phase::Before(until) if self.reader.seen() >= until => return Poll::Ready(Ok(self.whole())),
                Phase::Before(until) => {
                    let batch = match ready!(self.reader.poll_next(cx)) {
                        Ok(batch) => batch,
                        Err(Error::Closed) => return Poll::Ready(Ok(self.whole())),
                        Err(error) => return Poll::Ready(Err(error)),
                    };
                    let split = batch.partition_point(|entry| entry.seq <= until);
                    let mut told = Vec::new();
                    batch[..split].iter().for_each(|entry| self.fold.take(entry, &mut told));
                    if split < batch.len() {
                        self.reader.put_back(vec![batch[split..].into()]);
                        return Poll::Ready(Ok(self.whole()));
                    }
                }
                Phase::Live => match ready!(self.reader.poll_next(cx)) {
                    Ok(batch) => {
                        let mut updates = Vec::new();
                        batch.iter().for_each(|entry| self.fold.take(entry, &mut updates));
                        updates.extend(self.fold.change());
                        if self.is_done() {
                            self.phase = Phase::Over;
                        }
                        if !updates.is_empty() {
                            return Poll::Ready(Ok(Step::Updates(updates)));
                        }
                    }
                    Err(Error::Closed) => self.phase = Phase::Over,
                    Err(error) => return Poll::Ready(Err(error)),
                },
            }
        }
    }

    fn whole(&mut self) -> Step {
        self.phase = if self.is_done() { Phase::Over } else { Phase::Live };
        Step::Task(Box::new(self.fold.task()))
    }

    fn is_done(&self) -> bool {
        match self.end {
            End::AtRest => self.fold.state().is_at_rest(),
            End::Terminal => self.fold.state().is_terminal(),
            End::AfterItsTurns => self.fold.live_turns().next().is_none(),
        }
    }
}
