//! What was said in a session up to the end of one answer, out of its log: for clients that name an answer and keep no
//! history of their own.

use super::Exchanges;
use crate::error::Error;
use crate::model::{ClientCall, Event, Message, Outcome, Seq, SessionId, Timestamp, TurnId};
use crate::session::{PastTurns, Viewer};

/// A conversation as a session's log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedHistory {
    pub messages: Vec<Message>,
    /// The calls that the last answer made.
    pub calls: Vec<ClientCall>,
    /// When the last answer began and ended.
    pub began_at: Timestamp,
    pub ended_at: Timestamp,
    /// How the turn ended; `None`: it waits for results, or waited.
    pub outcome: Option<Outcome>,
}

/// Entries read at once.
const PAGE: usize = 256;

/// Where an answer ends in the log.
struct AnswerEnd {
    last: Seq,
    turn: TurnId,
    calls: Vec<ClientCall>,
    began_at: Timestamp,
    ended_at: Timestamp,
    outcome: Option<Outcome>,
}

impl Exchanges {
    /// What was said up to the end of the answer that begins after this entry. `None`: there is no such answer, it has no end yet,
    /// or a client deleted it.
    pub async fn history_of_answer(
        &self,
        session: SessionId,
        after: Seq,
        viewer: &Viewer,
    ) -> Result<Option<LoggedHistory>, Error> {
        // Whether it may be seen.
        self.sessions.get(session, viewer).await?;
        let Some(end) = self.answer_end(session, after).await? else { return Ok(None) };
        if self.is_deleted(session, after, end.last).await? {
            return Ok(None);
        }
        self.history_until(session, end).await.map(Some)
    }

    /// The answer is not to be had by its name any more, also not after a restart. What was said stays.
    pub async fn delete_answer(&self, session: SessionId, after: Seq, viewer: &Viewer) -> Result<(), Error> {
        self.sessions.get(session, viewer).await?.delete_answer(after).await
    }

    async fn is_deleted(&self, session: SessionId, answer: Seq, mut after: Seq) -> Result<bool, Error> {
        loop {
            let entries = self.sessions.store().read(session, after, Seq(u64::MAX), PAGE).await?;
            let Some(last) = entries.last() else { return Ok(false) };
            after = last.seq;
            if entries.iter().any(|entry| matches!(entry.event, Event::AnswerDeleted { after } if after == answer)) {
                return Ok(true);
            }
        }
    }

    /// What was said in a session whose turn waits for results of its client.
    pub async fn history_of_calls(&self, session: SessionId, viewer: &Viewer) -> Result<LoggedHistory, Error> {
        let described = self.sessions.get(session, viewer).await?.describe().await?;
        let turn = described.parked.first().map_or(TurnId(u64::MAX), |call| call.id.turn());
        let (last, calls, now) = (described.last, described.parked, Timestamp::now());
        self.history_until(session, AnswerEnd { last, turn, calls, began_at: now, ended_at: now, outcome: None }).await
    }

    async fn history_until(&self, session: SessionId, end: AnswerEnd) -> Result<LoggedHistory, Error> {
        let past = PastTurns {
            logs: self.sessions.logs(),
            session,
            last: end.last,
            last_turn: end.turn,
            budget: self.config.history_budget,
        };
        let messages = match past.recap().await? {
            Some(told) => told.into_messages(),
            None => Vec::new(),
        };
        let AnswerEnd { calls, began_at, ended_at, outcome, .. } = end;
        Ok(LoggedHistory { messages, calls, began_at, ended_at, outcome })
    }

    async fn answer_end(&self, session: SessionId, mut after: Seq) -> Result<Option<AnswerEnd>, Error> {
        let (mut own, mut calls, mut began) = (None, Vec::new(), None);
        loop {
            let entries = self.sessions.store().read(session, after, Seq(u64::MAX), PAGE).await?;
            let Some(last) = entries.last() else { return Ok(None) };
            after = last.seq;
            for entry in entries {
                let Some(turn) = entry.turn.filter(|turn| own.is_none_or(|own| own == *turn)) else { continue };
                own = Some(turn);
                let began_at = *began.get_or_insert(entry.at);
                let outcome = match entry.event {
                    Event::Called(call) => {
                        calls.push(*call);
                        continue;
                    }
                    Event::Parked(_) => None,
                    Event::Ended(outcome) => Some(outcome),
                    _ => continue,
                };
                let (last, ended_at) = (entry.seq, entry.at);
                return Ok(Some(AnswerEnd { last, turn, calls, began_at, ended_at, outcome }));
            }
        }
    }
}
