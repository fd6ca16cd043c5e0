//! All answers to one request on their way out: in chunks as they come, or kept until they are whole.

mod body;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::error::Error;
use gembridge_core::exchange::{Held, Owner};
use gembridge_core::log::Batch;
use gembridge_core::model::{AgentName, CallId, Principal, Prompt, ToolReturn};

use self::body::AnswerBody;
use super::begin::{Again, Begun, ask_again, refuse_calls};
use super::encode::{Chunks, Ending, Reading, Tally, Unmet, Wholes};
use super::queue_clock::QueueClock;
use super::turn::LiveTurn;
use super::wire::FinishReason;
use super::{OpenAi, error};
use crate::guard::memory_budget::BodyCharge;
use crate::guard::record::RequestNotes;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

pub(super) struct Answers {
    app: Arc<OpenAi>,
    request: RequestId,
    notes: Option<RequestNotes>,
    lanes: Vec<Lane>,
    out: Out,
    tally: Tally,
    /// The first failure; the others are let go.
    failure: Option<Problem>,
    /// Whose turns of which agent they are.
    queue: (AgentName, Principal),
    queue_note: QueueNote,
    /// What the request was charged, until every answer has begun: until then its messages are held here.
    memory: Option<BodyCharge>,
    /// Something of an answer has come.
    said: bool,
}

/// Notes how long the request waited, however that ends: also where its client left.
struct QueueNote {
    clocks: Vec<QueueClock>,
    notes: Option<RequestNotes>,
}

impl QueueNote {
    fn waited(&self) -> Duration {
        self.clocks.iter().map(QueueClock::waited).max().unwrap_or_default()
    }
}

impl Drop for QueueNote {
    fn drop(&mut self) {
        if let Some(notes) = &self.notes {
            let waited = self.waited();
            notes.edit(|notes| notes.queued = Some(waited));
        }
    }
}

/// Where the pieces go.
pub(super) enum Out {
    Chunks(Chunks),
    Wholes(Wholes),
}

impl Out {
    fn rename(&mut self, model: &str) {
        match self {
            Self::Chunks(chunks) => chunks.rename(model),
            Self::Wholes(wholes) => wholes.rename(model),
        }
    }
}

/// One answer.
pub(super) struct Lane {
    stage: Stage,
    reading: Option<Reading>,
    clock: QueueClock,
}

enum Stage {
    /// Another answer to the same request waits, or there is no room for one more.
    Waiting(BoxFuture<'static, Result<Begun, Problem>>),
    Starting(BoxFuture<'static, Result<Begun, Problem>>),
    Running(Box<Running>),
    Over,
}

struct Running {
    turn: LiveTurn,
    owner: Owner,
    again: Again,
}

/// What is known once an answer has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginnings {
    /// That of the first answer: a client can go on with one.
    pub session: Option<String>,
    pub left_out: usize,
    pub default_model: bool,
    /// How long it waited for its session and for a permit of its agent.
    pub queued: Duration,
}

impl Lane {
    pub(super) fn new(begin: BoxFuture<'static, Result<Begun, Problem>>, reading: Reading, clock: QueueClock) -> Self {
        Self { stage: Stage::Waiting(begin), reading: Some(reading), clock }
    }

    /// The same answer goes on.
    fn go_on(&mut self, begin: BoxFuture<'static, Result<Begun, Problem>>, reading: Reading) {
        self.stage = Stage::Starting(begin);
        self.reading = Some(reading);
    }
}

impl Answers {
    pub(super) fn new(
        app: Arc<OpenAi>,
        request: RequestId,
        notes: Option<RequestNotes>,
        lanes: Vec<Lane>,
        out: Out,
        queue: (AgentName, Principal),
        memory: Option<BodyCharge>,
    ) -> Self {
        let clocks = lanes.iter().map(|lane| lane.clock.clone()).collect();
        let queue_note = QueueNote { clocks, notes: notes.clone() };
        let tally = Tally::default();
        Self { app, request, notes, lanes, out, tally, failure: None, queue, queue_note, memory, said: false }
    }

    /// Waits until an agent has done something, or everything is over, but no longer than `patience` once the first
    /// answer is admitted: how long it waits before depends on others.
    pub(super) async fn first_sign(&mut self, beginnings: &mut Beginnings, patience: Duration) -> Result<(), Problem> {
        let mut timer = pin!(None);
        std::future::poll_fn(|cx| {
            while !self.is_heard() && !self.is_over() {
                if self.poll_step(cx, beginnings).is_ready() {
                    continue;
                }
                if !self.lanes.first().is_none_or(|lane| lane.clock.is_admitted()) {
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
        beginnings.queued = self.queue_note.waited();
        match self.failure.take() {
            // What came before it belongs to the client; the failure ends the stream.
            Some(problem) if self.said => {
                self.failure = Some(problem);
                Ok(())
            }
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    /// Waits until everything is over.
    pub(super) async fn whole(mut self, beginnings: &mut Beginnings) -> Result<Vec<u8>, Problem> {
        std::future::poll_fn(|cx| {
            while !self.is_over() {
                ready!(self.poll_step(cx, beginnings));
            }
            Poll::Ready(())
        })
        .await;
        beginnings.queued = self.queue_note.waited();
        if let Some(problem) = self.failure.take() {
            return Err(problem);
        }
        let Out::Wholes(wholes) = self.out else { return Ok(Vec::new()) };
        wholes
            .encode(self.tally.sum().unwrap_or_default())
            .map_err(|error| Problem::new(Kind::Agent, format!("the agent's text is not sound JSON: {error}")))
    }

    pub(super) fn into_body(self) -> AnswerBody {
        AnswerBody::new(self)
    }

    /// An agent has done something, or an answer is over already; and it is known which session the first is in.
    fn is_heard(&self) -> bool {
        let has_begun = |lane: &Lane| matches!(lane.stage, Stage::Running(_) | Stage::Over);
        self.lanes.first().is_none_or(has_begun)
            && self.lanes.iter().any(|lane| lane.reading.as_ref().is_none_or(Reading::heard))
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.lanes.iter().all(|lane| matches!(lane.stage, Stage::Over))
    }

    /// Moves every answer on as far as it can. Ready when one of them moved.
    fn poll_step(&mut self, cx: &mut Context<'_>, beginnings: &mut Beginnings) -> Poll<()> {
        let mut moved = false;
        self.let_in();
        for index in 0..self.lanes.len() {
            moved |= match &mut self.lanes[index].stage {
                Stage::Starting(begin) => match begin.as_mut().poll(cx) {
                    Poll::Ready(result) => {
                        self.on_begun(index, result, beginnings);
                        true
                    }
                    Poll::Pending => false,
                },
                Stage::Running(running) => match running.turn.poll_batch(cx) {
                    Poll::Ready(batch) => {
                        self.on_batch(index, batch);
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
    fn let_in(&mut self) {
        let waits = |lane: &Lane| matches!(lane.stage, Stage::Starting(_)) && !lane.clock.is_admitted();
        let is_busy = |lane: &Lane| matches!(lane.stage, Stage::Starting(_) | Stage::Running(_));
        if self.lanes.iter().any(waits) {
            return;
        }
        let (agent, principal) = &self.queue;
        if self.lanes.iter().any(is_busy) && self.app.sessions.check_queue(agent, principal).is_err() {
            return;
        }
        let next = self.lanes.iter_mut().map(|lane| &mut lane.stage).find(|stage| matches!(stage, Stage::Waiting(_)));
        if let Some(stage) = next
            && let Stage::Waiting(begin) = std::mem::replace(stage, Stage::Over)
        {
            *stage = Stage::Starting(begin);
        }
    }

    /// The request is held no more once every answer has begun.
    fn release_memory(&mut self) {
        if !self.lanes.iter().any(|lane| matches!(lane.stage, Stage::Waiting(_) | Stage::Starting(_))) {
            self.memory = None;
        }
    }

    fn on_begun(&mut self, index: usize, begun: Result<Begun, Problem>, beginnings: &mut Beginnings) {
        match begun {
            Ok(Begun { turn, owner, left_out, default_model, waiting, again }) => {
                if index == 0 {
                    let session = turn.session().to_string();
                    beginnings.session = Some(session.clone());
                    self.note(|notes| notes.session = Some(session));
                }
                beginnings.left_out = beginnings.left_out.max(left_out);
                beginnings.default_model |= default_model;
                if default_model {
                    self.out.rename(owner.agent.as_str());
                }
                let lane = &mut self.lanes[index];
                if let Some(reading) = &mut lane.reading {
                    reading.know(waiting);
                }
                lane.stage = Stage::Running(Box::new(Running { turn, owner, again }));
                self.release_memory();
            }
            Err(problem) => self.fail(problem),
        }
    }

    fn on_batch(&mut self, index: usize, batch: Result<Batch, Error>) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.fail(error.into()),
        };
        let lane = &mut self.lanes[index];
        let (Stage::Running(running), Some(reading)) = (&mut lane.stage, &mut lane.reading) else { return };
        let id = running.turn.id();
        let mut own = batch.iter().enumerate().filter(|(_, entry)| entry.turn == Some(id));
        let ending = match &mut self.out {
            Out::Chunks(chunks) => {
                let mut pieces = chunks.of(index);
                own.find_map(|(at, entry)| Some((at, reading.event(&entry.event, &mut pieces)?)))
            }
            Out::Wholes(wholes) => {
                let whole = wholes.of(index);
                own.find_map(|(at, entry)| Some((at, reading.event(&entry.event, whole)?)))
            }
        };
        if !self.said && reading.said() {
            self.said = true;
            if let Some(notes) = &self.notes {
                notes.first_token();
            }
        }
        if let Some((at, ending)) = ending {
            if let Ending::Refused(_) = ending {
                running.turn.unread(&batch[at + 1..]);
            }
            self.on_ending(index, ending);
        }
    }

    fn on_ending(&mut self, index: usize, ending: Ending) {
        let lane = &mut self.lanes[index];
        let stage = std::mem::replace(&mut lane.stage, Stage::Over);
        let (Stage::Running(running), Some(reading)) = (stage, lane.reading.take()) else { return };
        let ending = match ending {
            Ending::Again(prompt) => return self.once_more(index, *running, reading, prompt),
            Ending::Refused(results) => return self.go_on_without(index, *running, reading, results),
            other => other,
        };
        self.tally.add(reading.usage());
        let Running { mut turn, owner, .. } = *running;
        let reason = match ending {
            // A client that has no id of its call comes back with its history alone.
            Ending::Finished(reason) | Ending::Parked(reason @ FinishReason::FunctionCall) => {
                turn.ended();
                if let Some(fingerprint) = reading.into_fingerprint() {
                    let held = Held { session: turn.session(), turn: turn.id() };
                    self.app.conversations.remember(&owner, fingerprint.mark(), held);
                }
                reason
            }
            Ending::Parked(reason) | Ending::Forgotten(reason) => {
                turn.ended();
                reason
            }
            Ending::Cut(reason) => {
                turn.cut();
                reason
            }
            Ending::Failed(failure) => {
                turn.ended();
                self.note(|notes| notes.failure = Some(failure_for_log(&failure)));
                return self.fail(failure.into());
            }
            Ending::Unmet(unmet, message) => {
                turn.ended();
                let (kind, for_log) = match unmet {
                    Unmet::Call => (Kind::NoToolCall, "the agent called no tool where it had to"),
                    Unmet::Output => (Kind::NoOutput, "the answer does not have the form that was asked for"),
                };
                // What the agent said is the client's alone.
                self.note(|notes| notes.failure = Some(for_log.to_owned()));
                return self.fail(Problem::new(kind, message));
            }
            Ending::Again(_) | Ending::Refused(_) => return,
        };
        match &mut self.out {
            Out::Chunks(chunks) => chunks.finish(index, reason),
            Out::Wholes(wholes) => wholes.finish(index, reason),
        }
    }

    /// The same answer goes on in another turn of its session.
    fn once_more(&mut self, index: usize, running: Running, reading: Reading, prompt: Prompt) {
        let begin = Box::pin(ask_again(Arc::clone(&self.app), running.turn, running.owner, running.again, prompt));
        self.lanes[index].go_on(begin, reading);
    }

    /// The same turn goes on, without the calls that nobody wants.
    fn go_on_without(&mut self, index: usize, running: Running, reading: Reading, results: Vec<(CallId, ToolReturn)>) {
        let begin = Box::pin(refuse_calls(running.turn, running.owner, running.again, results));
        self.lanes[index].go_on(begin, reading);
    }

    fn fail(&mut self, problem: Problem) {
        self.note(|notes| {
            notes.failure.get_or_insert_with(|| problem.message.clone());
        });
        self.failure.get_or_insert(problem);
    }

    /// Everything is said, or nothing more can be.
    fn close(&mut self) {
        for lane in &mut self.lanes {
            // A turn that still runs is abandoned by being dropped; what it took so far was spent.
            lane.stage = Stage::Over;
            if let Some(reading) = lane.reading.take() {
                self.tally.add(reading.usage());
            }
        }
        let usage = self.tally.sum();
        self.note(|notes| {
            notes.input_tokens = usage.map(|usage| usage.prompt_tokens);
            notes.output_tokens = usage.map(|usage| usage.completion_tokens);
        });
    }

    /// The last words of a stream.
    fn write_end(&mut self) {
        let Out::Chunks(chunks) = &mut self.out else { return };
        match self.failure.take() {
            Some(problem) => error::event(chunks.out(), &problem, &self.request),
            None => chunks.end(self.tally.sum().unwrap_or_default()),
        }
    }

    fn note(&self, edit: impl FnOnce(&mut crate::guard::record::Notes)) {
        if let Some(notes) = &self.notes {
            notes.edit(edit);
        }
    }
}

/// The tail of the agent's standard error is for the log; it comes redacted.
fn failure_for_log(failure: &gembridge_core::model::Failure) -> String {
    match &failure.stderr_tail {
        Some(tail) => format!("{}; {tail}", failure.message),
        None => failure.message.clone(),
    }
}
