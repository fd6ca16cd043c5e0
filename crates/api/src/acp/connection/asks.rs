//! Questions that a client was asked, by the ids that it knows them by.

use std::collections::{HashMap, VecDeque};

use gembridge_core::error::Error;
use gembridge_core::model::{Answer, AskBody, AskId, SessionId};
use serde_json::json;
use serde_json::value::RawValue;

use super::Connection;
use crate::acp::decode;

#[derive(Default)]
pub(super) struct Asks {
    open: HashMap<u64, Asked>,
    /// Those that were settled last: whoever still answers is told that it is too late.
    settled: VecDeque<(u64, SessionId, AskId)>,
    last: u64,
}

pub(super) struct Asked {
    pub session: SessionId,
    pub ask: AskId,
    pub body: AskBody,
}

/// Questions of one client. A session has far fewer open, and they leave with its turn.
const MOST: usize = 4_096;
/// Settled ones that are remembered.
const SETTLED: usize = 64;

impl Asks {
    /// A number for a question; `None` when it was asked already or there are too many.
    pub(super) fn add(&mut self, session: SessionId, ask: AskId, body: &AskBody) -> Option<u64> {
        let is_known = self.open.values().any(|asked| asked.session == session && asked.ask == ask);
        if is_known || self.open.len() >= MOST {
            return None;
        }
        self.last += 1;
        self.open.insert(self.last, Asked { session, ask, body: body.clone() });
        Some(self.last)
    }

    fn take(&mut self, id: u64) -> Option<Asked> {
        let asked = self.open.remove(&id)?;
        self.note_settled(id, asked.session, asked.ask);
        Some(asked)
    }

    fn settled(&self, id: u64) -> Option<(SessionId, AskId)> {
        let found = self.settled.iter().find(|(settled, ..)| *settled == id)?;
        Some((found.1, found.2))
    }

    /// Settled: whoever still answers is too late. Gives the number of a question that this client has still before it.
    pub(super) fn settle(&mut self, session: SessionId, ask: AskId) -> Option<u64> {
        let of_ask = self.open.iter().find(|(_, asked)| asked.session == session && asked.ask == ask);
        let id = of_ask.map(|(id, _)| *id)?;
        self.open.remove(&id);
        self.note_settled(id, session, ask);
        Some(id)
    }

    fn note_settled(&mut self, id: u64, session: SessionId, ask: AskId) {
        if self.settled.len() >= SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back((id, session, ask));
    }

    pub(super) fn leave(&mut self, session: SessionId) {
        self.open.retain(|_, asked| asked.session != session);
    }
}

impl Connection {
    /// A client answers one of our requests. The first answer of all clients wins.
    pub(super) fn on_response(&mut self, id: &RawValue, result: Result<&RawValue, &RawValue>) {
        let Ok(id) = id.get().parse() else { return };
        let Some(asked) = self.asks.take(id) else {
            // What was never asked needs no word.
            if let Some((session, ask)) = self.asks.settled(id) {
                self.refuse_answer(session, ask, &Error::NotAsked.to_string());
            }
            return;
        };
        let Some(subscription) =
            self.subscriptions.iter().find(|subscription| subscription.handle().id() == asked.session)
        else {
            return;
        };
        let handle = subscription.handle().clone();
        let Asked { session, ask, body } = asked;
        let answer = match result.map(|result| decode::answer(&body, result)) {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(refusal)) => {
                self.refuse_answer(session, ask, &refusal.message);
                self.ask_again(session, ask);
                return;
            }
            // It cannot answer; somebody else may.
            Err(_) => None,
        };
        let client = self.client;
        self.calls.answer(async move {
            let given = match answer {
                Some(answer) => handle.answer(ask, answer, client).await,
                None => match handle.describe().await {
                    Ok(found) if found.followers <= 1 => handle.answer(ask, Answer::Cancelled, client).await,
                    Ok(_) => return None,
                    Err(error) => Err(error),
                },
            };
            given.err().map(|error| (session, ask, error))
        });
    }

    pub(super) fn on_refused_answer(&mut self, session: SessionId, ask: AskId, error: &Error) {
        self.refuse_answer(session, ask, &error.to_string());
        // The question stays open when the answer was no good, and is put again.
        if matches!(error, Error::Invalid(_)) {
            self.ask_again(session, ask);
        }
    }

    fn refuse_answer(&mut self, session: SessionId, ask: AskId, reason: &str) {
        let params = json!({ "sessionId": session.to_string(), "ask": ask.0, "reason": reason });
        self.notify("_gembridge/answer_refused", &params);
    }
}
