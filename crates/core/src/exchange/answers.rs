//! All answers to one request, on their way to whoever asked.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Exchanges;
use super::conversations::Owner;
use super::ending::Ending;
use super::error::ExchangeError;
use super::observer::{ExchangeObserver, Watched};
use super::plan::{AnswerPlan, Plan};
use super::queue_clock::QueueClock;
use super::repeats::SentRequest;
use super::required_output::Unmet;
use super::sink::{AnswerPieces, AnswerPlace, AnswerSink, ExchangeMeta, Finish, Piece, PieceQueue};
use super::start::{RetryContext, StartedAnswer, ask_again, begin, refuse_calls};
use super::started_turn::StartedTurn;
use super::token_count::{TokenCount, TokenTally};
use super::turn_reader::TurnReader;
use crate::BoxFuture;
use crate::error::Error;
use crate::log::Batch;
use crate::model::{CallId, Failure, Prompt, ToolReturn};

/// One request that is being answered. Dropped before its end, its turns are abandoned.
pub struct Exchange {
    exchanges: Arc<Exchanges>,
    owner: Owner,
    sent: Option<SentRequest>,
    /// Where the first answer begins.
    place: Option<AnswerPlace>,
    choices: Vec<Choice>,
    tally: TokenTally,
    /// The first failure; the other answers are let go.
    failure: Option<ExchangeError>,
    meta: ExchangeMeta,
    watched: Watched,
    /// What belongs to the request, until every answer has begun: until then its messages are held here.
    held: Option<Box<dyn Send>>,
    /// Something of an answer has come.
    said: bool,
    /// For [`Exchange::next`].
    pieces: PieceQueue,
    is_done: bool,
    is_closed: bool,
}

/// One answer.
struct Choice {
    stage: Stage,
    reader: Option<TurnReader>,
    clock: QueueClock,
    /// The sink knows where the prompt was accepted, or has seen the answer begin.
    is_accepted: bool,
}

type Starting = BoxFuture<'static, Result<StartedAnswer, ExchangeError>>;

enum Stage {
    /// Another answer to the same request waits, or there is no room for one more.
    Waiting(Starting),
    Starting(Starting),
    Running(Box<Running>),
    /// Everything is said; the other gateways of the cluster learn which of them can go on with it before the client does.
    Noting(BoxFuture<'static, ()>, Finish),
    Over,
}

struct Running {
    turn: StartedTurn,
    owner: Owner,
    retry: RetryContext,
}

impl Choice {
    /// Says once that a session has the prompt. Whether there was something to say.
    fn tell_accepted(&mut self, answer: usize, sink: &mut impl AnswerSink) -> bool {
        let Some(place) = self.clock.accepted().filter(|_| !self.is_accepted) else { return false };
        self.is_accepted = true;
        sink.accepted(answer, place);
        true
    }

    /// The same answer goes on.
    fn go_on(&mut self, starting: Starting, reader: TurnReader) {
        self.stage = Stage::Starting(starting);
        self.reader = Some(reader);
    }
}

impl Exchanges {
    /// Begins to answer. `held` is dropped once every answer has begun. Nothing happens before the exchange is polled.
    pub fn start(
        self: &Arc<Self>,
        plan: Plan,
        observer: Option<Box<dyn ExchangeObserver>>,
        held: Option<Box<dyn Send>>,
    ) -> Result<Exchange, ExchangeError> {
        if plan.needs_new_session() {
            // Before a session is made that nobody would use.
            let checked = self.sessions.check_queue(&plan.owner.agent, &plan.owner.principal);
            if let (Err(_), Some(observer)) = (&checked, &observer) {
                observer.queued(Duration::ZERO);
            }
            checked?;
        }
        let Plan { owner, answers, options, fingerprint, left_out, sent, .. } = plan;
        let choice = |answer: AnswerPlan| {
            let clock = QueueClock::default();
            let starting = Box::pin(begin(Arc::clone(self), answer, clock.clone(), sent));
            let reader = TurnReader::new(options.clone(), fingerprint.clone());
            Choice { stage: Stage::Waiting(starting), reader: Some(reader), clock, is_accepted: false }
        };
        let choices: Vec<Choice> = answers.into_iter().map(choice).collect();
        let clocks = choices.iter().map(|choice| choice.clock.clone()).collect();
        Ok(Exchange {
            exchanges: Arc::clone(self),
            owner,
            sent,
            place: None,
            choices,
            tally: TokenTally::default(),
            failure: None,
            meta: ExchangeMeta { left_out, ..ExchangeMeta::default() },
            watched: Watched { clocks, observer },
            held,
            said: false,
            pieces: PieceQueue::default(),
            is_done: false,
            is_closed: false,
        })
    }
}

impl Exchange {
    pub fn meta(&self) -> &ExchangeMeta {
        &self.meta
    }

    /// All of it was handed to the client's connection.
    pub fn delivered(&self) {
        if let (Some(sent), Some(place)) = (self.sent, self.place) {
            self.exchanges.repeats.delivered(&self.owner, sent, place);
        }
    }

    /// How long it waited for its session and for a permit of its agent, up to now.
    pub fn queued(&self) -> Duration {
        self.watched.waited()
    }

    /// The tokens of all answers up to now.
    pub fn tokens(&self) -> TokenCount {
        self.tally.sum().unwrap_or_default()
    }

    pub fn is_over(&self) -> bool {
        self.failure.is_some() || self.choices.iter().all(|choice| matches!(choice.stage, Stage::Over))
    }

    /// Why it ended before its answers did.
    pub fn take_failure(&mut self) -> Option<ExchangeError> {
        self.failure.take()
    }

    /// The next piece, with the number of its answer; `None` once everything was said. The last one is [`Piece::Done`]
    /// or [`Piece::Failed`].
    pub async fn next(&mut self) -> Option<(usize, Piece)> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let begun_before = self.meta.session;
        while pieces.pieces.is_empty() && !self.is_over() {
            std::future::poll_fn(|cx| self.poll_step(cx, &mut pieces)).await;
        }
        if let Some(session) = self.meta.session.filter(|_| begun_before.is_none()) {
            pieces.pieces.push_front((0, Piece::Begun { session }));
        }
        let next = pieces.pieces.pop_front();
        self.pieces = pieces;
        if next.is_some() || std::mem::replace(&mut self.is_done, true) {
            return next;
        }
        self.close();
        Some((0, self.failure.take().map_or_else(|| Piece::Done(self.tokens()), Piece::Failed)))
    }

    /// Waits until an agent has done something, or everything is over, but no longer than `patience` once the first
    /// answer is admitted: how long it waits before depends on others.
    pub async fn first_sign(&mut self, sink: &mut impl AnswerSink, patience: Duration) -> Result<(), ExchangeError> {
        let mut timer = pin!(None);
        std::future::poll_fn(|cx| {
            while !self.is_heard() && !self.is_over() {
                if self.poll_step(cx, sink).is_ready() {
                    continue;
                }
                if !self.choices.first().is_none_or(|choice| choice.clock.is_admitted()) {
                    return Poll::Pending;
                }
                if timer.is_none() {
                    timer.set(Some(tokio::time::sleep(patience)));
                }
                ready!(timer.as_mut().as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(cx)));
                return Poll::Ready(());
            }
            Poll::Ready(())
        })
        .await;
        match self.failure.take() {
            // What came before it belongs to the client; the failure ends the stream.
            Some(failure) if self.said => {
                self.failure = Some(failure);
                Ok(())
            }
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Waits until everything is over.
    pub async fn finish(&mut self, sink: &mut impl AnswerSink) -> Result<(), ExchangeError> {
        std::future::poll_fn(|cx| {
            while !self.is_over() {
                ready!(self.poll_step(cx, sink));
            }
            Poll::Ready(())
        })
        .await;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// An agent has done something, or an answer is over already; and it is known which session the first is in.
    fn is_heard(&self) -> bool {
        let has_begun = |choice: &Choice| matches!(choice.stage, Stage::Running(_) | Stage::Noting(..) | Stage::Over);
        self.choices.first().is_none_or(has_begun)
            && self.choices.iter().any(|choice| choice.reader.as_ref().is_none_or(TurnReader::heard))
    }

    /// Moves every answer on as far as it can. Ready when one of them moved.
    pub fn poll_step(&mut self, cx: &mut Context<'_>, sink: &mut impl AnswerSink) -> Poll<()> {
        let mut moved = false;
        self.begin_next();
        for answer in 0..self.choices.len() {
            moved |= match &mut self.choices[answer].stage {
                Stage::Starting(starting) => match starting.as_mut().poll(cx) {
                    Poll::Ready(started) => {
                        self.on_started(answer, started, sink);
                        true
                    }
                    Poll::Pending => self.choices[answer].tell_accepted(answer, sink),
                },
                Stage::Running(running) => match running.turn.poll_batch(cx) {
                    Poll::Ready(batch) => {
                        self.on_batch(answer, batch, sink);
                        true
                    }
                    Poll::Pending => false,
                },
                Stage::Noting(noting, _) => match noting.as_mut().poll(cx) {
                    Poll::Ready(()) => {
                        let noted = std::mem::replace(&mut self.choices[answer].stage, Stage::Over);
                        if let Stage::Noting(_, finish) = noted {
                            sink.finish(answer, finish);
                        }
                        true
                    }
                    Poll::Pending => false,
                },
                Stage::Waiting(_) | Stage::Over => false,
            };
            if self.failure.is_some() {
                break;
            }
        }
        if self.is_over() {
            self.close();
        }
        if moved { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Begins the next answer once those before it are admitted: at most one of a request waits in a queue.
    fn begin_next(&mut self) {
        let waits = |choice: &Choice| matches!(choice.stage, Stage::Starting(_)) && !choice.clock.is_admitted();
        let is_busy = |choice: &Choice| matches!(choice.stage, Stage::Starting(_) | Stage::Running(_));
        if self.choices.iter().any(waits) {
            return;
        }
        let mut stages = self.choices.iter().map(|choice| &choice.stage);
        let Some(next) = stages.position(|stage| matches!(stage, Stage::Waiting(_))) else { return };
        let Owner { agent, principal, .. } = &self.owner;
        if self.choices.iter().any(is_busy) && self.exchanges.sessions.check_queue(agent, principal).is_err() {
            return;
        }
        let stage = &mut self.choices[next].stage;
        if let Stage::Waiting(starting) = std::mem::replace(stage, Stage::Over) {
            *stage = Stage::Starting(starting);
        }
    }

    fn on_started(&mut self, answer: usize, started: Result<StartedAnswer, ExchangeError>, sink: &mut impl AnswerSink) {
        match started {
            Ok(StartedAnswer { turn, owner, left_out, default_model, repeated, waiting, retry }) => {
                if answer == 0 {
                    self.place.get_or_insert(turn.place());
                    self.meta.session = Some(turn.session());
                    self.observe(|observer| observer.session(turn.session()));
                }
                self.meta.left_out = self.meta.left_out.max(left_out);
                self.meta.default_model |= default_model;
                self.meta.repeated |= repeated;
                if default_model {
                    sink.default_model(&owner.agent);
                }
                sink.begun(answer, turn.place());
                let choice = &mut self.choices[answer];
                choice.is_accepted = true;
                if let Some(reader) = &mut choice.reader {
                    if let Some(earlier) = self.exchanges.ledger.find(turn.held()) {
                        reader.go_on_from(earlier);
                    }
                    reader.know(waiting);
                }
                choice.stage = Stage::Running(Box::new(Running { turn, owner, retry }));
                self.release_request();
            }
            Err(error) => self.fail(error),
        }
    }

    /// The request is held no more once every answer has begun.
    fn release_request(&mut self) {
        let has_begun = |choice: &Choice| !matches!(choice.stage, Stage::Waiting(_) | Stage::Starting(_));
        if self.choices.iter().all(has_begun) {
            self.held = None;
        }
    }

    fn on_batch(&mut self, answer: usize, batch: Result<Batch, Error>, sink: &mut impl AnswerSink) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.fail(error.into()),
        };
        let choice = &mut self.choices[answer];
        let (Stage::Running(running), Some(reader)) = (&mut choice.stage, &mut choice.reader) else { return };
        let id = running.turn.id();
        let mut own = batch.iter().enumerate().filter(|(_, entry)| entry.turn == Some(id));
        let mut pieces = AnswerPieces { sink: &mut *sink, answer };
        let ending = own.find_map(|(at, entry)| {
            pieces.entry(entry);
            Some((at, reader.event(&entry.event, &mut pieces)?))
        });
        if !self.said && reader.said() {
            self.said = true;
            self.observe(|observer| observer.first_piece());
        }
        if let Some((at, ending)) = ending {
            if let Ending::Refused(_) = ending
                && let Stage::Running(running) = &mut self.choices[answer].stage
            {
                running.turn.unread(&batch[at + 1..]);
            }
            self.on_ending(answer, ending, sink);
        }
    }

    fn on_ending(&mut self, answer: usize, ending: Ending, sink: &mut impl AnswerSink) {
        let choice = &mut self.choices[answer];
        let stage = std::mem::replace(&mut choice.stage, Stage::Over);
        let (Stage::Running(running), Some(reader)) = (stage, choice.reader.take()) else { return };
        let ending = match ending {
            Ending::Again(prompt) => return self.once_more(answer, *running, reader, prompt),
            Ending::Refused(results) => return self.go_on_without(answer, *running, reader, results),
            other => other,
        };
        self.tally.add(reader.tokens());
        match &ending {
            Ending::Parked(_) | Ending::Finished(Finish::ToolCalls) => {
                self.exchanges.ledger.note(running.turn.held(), reader.tokens_of_turn());
            }
            _ => self.exchanges.ledger.forget(running.turn.held()),
        }
        let Running { mut turn, owner, .. } = *running;
        let finish = match ending {
            Ending::Finished(finish) => {
                turn.ended();
                if let Some(fingerprint) = reader.into_fingerprint() {
                    let mark = fingerprint.mark();
                    self.exchanges.conversations.remember(&owner, mark, turn.held());
                    if let Some(cluster) = &self.exchanges.cluster {
                        let noting = cluster.remember(&owner, mark);
                        self.choices[answer].stage = Stage::Noting(noting, finish);
                        return;
                    }
                }
                finish
            }
            Ending::Parked(finish) | Ending::NotResumable(finish) => {
                turn.ended();
                finish
            }
            Ending::Cut(finish) => {
                turn.cut();
                finish
            }
            Ending::Failed(failure) => {
                turn.ended();
                self.observe(|observer| observer.failed(&for_log(&failure)));
                return self.fail(failure.into());
            }
            Ending::Cancelled => {
                turn.ended();
                self.observe(|observer| observer.failed("the turn was cancelled from elsewhere"));
                return self.fail(ExchangeError::Cancelled);
            }
            Ending::Unmet(unmet, message) => {
                turn.ended();
                // What the agent said is the client's alone.
                let (error, for_log) = match unmet {
                    Unmet::Call => (ExchangeError::NoToolCall(message), "the agent called no tool where it had to"),
                    Unmet::Output => {
                        (ExchangeError::NoOutput(message), "the answer does not have the form that was asked for")
                    }
                };
                self.observe(|observer| observer.failed(for_log));
                return self.fail(error);
            }
            Ending::Again(_) | Ending::Refused(_) => return,
        };
        sink.finish(answer, finish);
    }

    /// The same answer goes on in another turn of its session.
    fn once_more(&mut self, answer: usize, running: Running, reader: TurnReader, prompt: Prompt) {
        let exchanges = Arc::clone(&self.exchanges);
        let starting = Box::pin(ask_again(exchanges, running.turn, running.owner, running.retry, prompt));
        self.choices[answer].go_on(starting, reader);
    }

    /// The same turn goes on, without the calls that nobody wants.
    fn go_on_without(
        &mut self,
        answer: usize,
        running: Running,
        reader: TurnReader,
        results: Vec<(CallId, ToolReturn)>,
    ) {
        let starting = Box::pin(refuse_calls(running.turn, running.owner, running.retry, results));
        self.choices[answer].go_on(starting, reader);
    }

    fn fail(&mut self, error: ExchangeError) {
        self.observe(|observer| observer.failed(&error.to_string()));
        self.failure.get_or_insert(error);
    }

    /// Everything is said, or nothing more can be.
    fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        for choice in &mut self.choices {
            // A turn that still runs is abandoned by being dropped; what it took so far was spent.
            choice.stage = Stage::Over;
            if let Some(reader) = choice.reader.take() {
                self.tally.add(reader.tokens());
            }
        }
        self.observe(|observer| {
            observer.ended(self.tally.sum());
            observer.queued(self.queued());
        });
    }

    fn observe(&self, tell: impl FnOnce(&dyn ExchangeObserver)) {
        if let Some(observer) = &self.watched.observer {
            tell(observer.as_ref());
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let (Some(sent), Some(place)) = (self.sent, self.place) {
            self.exchanges.repeats.lost(&self.owner, sent, place);
        }
        self.close();
    }
}

/// The tail of the agent's standard error is for the log; it comes redacted.
fn for_log(failure: &Failure) -> String {
    match &failure.stderr_tail {
        Some(tail) => format!("{}; {tail}", failure.message),
        None => failure.message.clone(),
    }
}
