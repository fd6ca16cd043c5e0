//! Where the pieces of answers go. A dialect writes them as they come; whoever wants them as values takes [`Piece`]s.

use std::collections::VecDeque;

use bytes::Bytes;

use super::error::ExchangeError;
use super::token_count::TokenCount;
use crate::log::LogEntry;
use crate::model::{AgentName, ClientCall, Seq, SessionId, Text, TurnId};

/// Takes the pieces of all answers of a request, each with the number of its answer. Text comes as the body of a JSON
/// string, which most dialects splice as it is: handing it on as values costs a reference count and a queue for each.
pub trait AnswerSink {
    /// What happened in the turn of an answer, entry by entry, each before the pieces that come of it. For whoever wants to
    /// know more than the answer.
    fn entry(&mut self, _answer: usize, _entry: &LogEntry) {}
    /// A session has the prompt, and the answer will begin here unless another session must take it. Comes once at most, and only
    /// where the answer does not begin at once.
    fn accepted(&mut self, _answer: usize, _place: AnswerPlace) {}
    /// The answer begins here. Comes before anything of it; again where the answer takes another turn.
    fn begun(&mut self, _answer: usize, _place: AnswerPlace) {}
    /// The agent refused the model that was asked for, and its default answers.
    fn default_model(&mut self, agent: &AgentName);
    fn text(&mut self, answer: usize, escaped: &[u8]);
    fn thought(&mut self, answer: usize, escaped: &[u8]);
    fn refusal(&mut self, answer: usize, escaped: &[u8]);
    /// A call of a tool, `number` among those of the answer.
    fn call(&mut self, answer: usize, number: usize, call: &ClientCall);
    /// The text of the client's that ends the answer. Comes before its end, which is [`Finish::Stop`].
    fn stop_sequence(&mut self, _answer: usize, _text: &str) {}
    fn finish(&mut self, answer: usize, finish: Finish);
}

/// Where an answer begins: it is what the session's log has of the turn after this entry, up to where the turn ends or
/// waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnswerPlace {
    pub session: SessionId,
    pub turn: TurnId,
    pub after: Seq,
}

/// What is known of the answers once they have begun.
#[derive(Clone, Debug, Default)]
pub struct ExchangeMeta {
    /// That of the first answer: a client can go on with one.
    pub session: Option<SessionId>,
    /// Old messages that the agent was not told.
    pub left_out: usize,
    /// The agent refused the model, and its default answers.
    pub default_model: bool,
    /// The request was sent before: it is answered by the turn that it began then.
    pub repeated: bool,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The first answer has begun in this session.
    Begun {
        session: SessionId,
    },
    Text(Text),
    Thought(Text),
    Refusal(Text),
    Call(ClientCall),
    /// The answer is over.
    Ended(Finish),
    /// Every answer is over.
    Done(TokenCount),
    Failed(ExchangeError),
}

/// Pieces that wait to be taken, each with the number of its answer.
#[derive(Default)]
pub(super) struct PieceQueue {
    pub(super) pieces: VecDeque<(usize, Piece)>,
}

fn text_of(escaped: &[u8]) -> Text {
    Text::escaped(Bytes::copy_from_slice(escaped))
}

impl AnswerSink for PieceQueue {
    fn default_model(&mut self, _: &AgentName) {}

    fn text(&mut self, answer: usize, escaped: &[u8]) {
        self.pieces.push_back((answer, Piece::Text(text_of(escaped))));
    }

    fn thought(&mut self, answer: usize, escaped: &[u8]) {
        self.pieces.push_back((answer, Piece::Thought(text_of(escaped))));
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.pieces.push_back((answer, Piece::Refusal(text_of(escaped))));
    }

    fn call(&mut self, answer: usize, _: usize, call: &ClientCall) {
        self.pieces.push_back((answer, Piece::Call(call.clone())));
    }

    fn finish(&mut self, answer: usize, finish: Finish) {
        self.pieces.push_back((answer, Piece::Ended(finish)));
    }
}

/// The sink of one answer.
pub(super) struct AnswerPieces<'s, S> {
    pub sink: &'s mut S,
    pub answer: usize,
}

impl<S: AnswerSink> AnswerPieces<'_, S> {
    pub(super) fn entry(&mut self, entry: &LogEntry) {
        self.sink.entry(self.answer, entry);
    }

    pub(super) fn text(&mut self, escaped: &[u8]) {
        self.sink.text(self.answer, escaped);
    }

    pub(super) fn thought(&mut self, escaped: &[u8]) {
        self.sink.thought(self.answer, escaped);
    }

    pub(super) fn refusal(&mut self, escaped: &[u8]) {
        self.sink.refusal(self.answer, escaped);
    }

    pub(super) fn stop_sequence(&mut self, text: &str) {
        self.sink.stop_sequence(self.answer, text);
    }

    pub(super) fn call(&mut self, number: usize, call: &ClientCall) {
        self.sink.call(self.answer, number, call);
    }
}
