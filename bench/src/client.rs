//! A client of one session: prompts, follows the log, and checks that every piece came, in order, unchanged.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use gembridge_core::log::{Backpressure, Batch, From};
use gembridge_core::model::{ClientId, Event, Outcome, Prompt, Stop, TurnId};
use gembridge_core::session::SessionHandle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::PATIENCE;

pub struct Client {
    handle: SessionHandle,
    follow: mpsc::Receiver<Batch>,
}

/// One turn as its client saw it.
#[derive(Debug)]
pub struct Turned {
    /// Until the first piece of text was in the client's hands.
    pub first: Duration,
    pub total: Duration,
    pub pieces: Vec<String>,
    pub outcome: Outcome,
}

impl Client {
    pub async fn attach(handle: SessionHandle) -> anyhow::Result<Self> {
        let attachment = handle.attach(From::Now, Backpressure::HoldAgent).await?;
        Ok(Self { handle, follow: attachment.follow })
    }

    /// Makes sure that the session's agent is there.
    pub async fn wake(&self) -> anyhow::Result<()> {
        self.handle.wake().await?;
        Ok(())
    }

    pub async fn prompt(&self, text: &str) -> anyhow::Result<TurnId> {
        Ok(self.handle.prompt(Prompt::text(text), ClientId(1)).await?.turn)
    }

    /// Prompts and follows to the end; times count from `since`.
    pub async fn turn(&mut self, text: &str, since: Instant) -> anyhow::Result<Turned> {
        let turn = self.prompt(text).await?;
        self.finish(turn, since).await
    }

    /// The same as a task of the runtime, where a frontend of the gateway would run; times count from when it begins, or
    /// from `due` if that is earlier.
    pub async fn turn_as_task(mut self, text: &str, due: Option<Instant>) -> anyhow::Result<(Self, Turned)> {
        let text = text.to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let since = due.unwrap_or_else(Instant::now);
            let turned = self.turn(&text, since).await?;
            anyhow::Ok((self, turned))
        });
        tasks.join_next().await.context("the task is gone")??
    }

    /// Follows a turn to its end, which must be the only one.
    pub async fn finish(&mut self, turn: TurnId, since: Instant) -> anyhow::Result<Turned> {
        let mut first = None;
        let mut pieces = Vec::new();
        loop {
            let batch = self.next().await?;
            let now = since.elapsed();
            for entry in batch.iter().filter(|entry| entry.turn == Some(turn)) {
                match &entry.event {
                    Event::Text(text) => {
                        first.get_or_insert(now);
                        pieces.push(text.to_str().into_owned());
                    }
                    Event::Ended(outcome) => {
                        let first = first.unwrap_or(now);
                        return Ok(Turned { first, total: now, pieces, outcome: outcome.clone() });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Waits for the first piece of a turn.
    pub async fn spoke(&mut self, turn: TurnId) -> anyhow::Result<()> {
        loop {
            let batch = self.next().await?;
            if batch.iter().any(|entry| entry.turn == Some(turn) && matches!(entry.event, Event::Text(_))) {
                return Ok(());
            }
        }
    }

    pub async fn next(&mut self) -> anyhow::Result<Batch> {
        let batch = timeout(PATIENCE, self.follow.recv()).await.context("nothing happens in the session")?;
        batch.context("the session let its follower go")
    }
}

impl Turned {
    /// Refuses a turn that did not end well or whose pieces are not these.
    pub fn check(&self, expected: &[String]) -> anyhow::Result<()> {
        anyhow::ensure!(self.outcome == Outcome::Finished(Stop::EndTurn), "the turn ended as {:?}", self.outcome);
        check_pieces(&self.pieces, expected)
    }
}

/// Every frame, in order, unchanged: else there is no score.
pub fn check_pieces(pieces: &[String], expected: &[String]) -> anyhow::Result<()> {
    let wrong = expected.iter().zip(pieces).position(|(expected, piece)| expected != piece);
    anyhow::ensure!(wrong.is_none(), "piece {} is `{}`", wrong.unwrap_or(0), pieces[wrong.unwrap_or(0)]);
    anyhow::ensure!(pieces.len() == expected.len(), "{} pieces of {} came", pieces.len(), expected.len());
    Ok(())
}
