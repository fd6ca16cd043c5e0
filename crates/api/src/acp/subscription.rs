//! A client's place at one session: what it is shown again, then what happens, in one order without gap or double.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gembridge_core::error::Error;
use gembridge_core::log::{Backpressure, Batch, From, LogEntry};
use gembridge_core::model::{AgentName, Seq, TurnId, Usage};
use gembridge_core::session::{Description, Joined, Presence, SessionHandle, SessionReader};
use gembridge_core::store::Logs;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::encode::{SessionName, Template};
use super::fanout::Subscriber;
use super::replay::Window;
use crate::guard::memory_budget::Charge;

pub struct Subscription {
    pub name: SessionName,
    pub agent: AgentName,
    /// What the client is shown alone is written by this.
    pub template: Template,
    /// What it is shown like all the others is written here.
    pub place: Subscriber,
    /// How long a question waits for its answer.
    pub patience: Duration,
    /// Prompts of this client, oldest first.
    pub prompts: VecDeque<OwnPrompt>,
    /// Tokens of the turn that runs.
    pub usage: Usage,
    /// When the prompt before this one was taken: prompts go in as they came.
    pub order: Option<oneshot::Receiver<()>>,
    /// The questions that nobody has answered.
    pub open: Vec<LogEntry>,
    /// What a request gets once everything was shown again.
    pub after_replay: Vec<(Box<RawValue>, Value)>,
    /// This client can answer what the agent asks.
    _presence: Presence,
    /// Never lost: a client that does not keep up is served from the store until it has caught up.
    reader: SessionReader,
    phase: Phase,
    /// The last entry before it was taken: what comes after it comes live.
    joined: Seq,
    /// The client has attached again. The new subscription begins when this one has come to where the new one joined.
    successor: Option<Box<Subscription>>,
}

/// A prompt whose answer the client waits for.
pub struct OwnPrompt {
    pub request: Box<RawValue>,
    /// Known once it is in the log.
    pub turn: Option<TurnId>,
    /// What its text was charged, until the agent has it.
    pub memory: Option<Charge>,
    pub has_started: bool,
    /// Tells the prompt to leave the line, and says whether its turn is to be cancelled once there is one.
    pub cancel: CancellationToken,
}

/// What the next entries are to the client.
enum Phase {
    Replay(Box<Replay>),
    Live,
}

struct Replay {
    window: Window,
    end: ReplayEnd,
    announced: Announced,
}

/// Whether the beginning of a replay was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    NotYet,
    Done,
}

/// How the session stands where the replay ends.
pub struct ReplayEnd {
    pub description: Description,
    /// The questions that nobody has answered.
    pub open: Vec<LogEntry>,
    pub is_cut: bool,
    /// Something is left out that may have told what the session is.
    pub is_partial: bool,
    pub announce: Announce,
}

/// Whether a client is told that it sees what was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announce {
    Yes,
    /// A session that has just begun: what there is belongs to its beginning.
    No,
}

pub enum Step {
    /// A replay begins with this number.
    Begins {
        from: Seq,
        to: Seq,
    },
    Again(Batch),
    Over(Box<ReplayEnd>),
    Live(Batch),
    /// The last entries before the client's new subscription begins.
    BeforeSuccessor(Batch),
    /// The client's new subscription begins.
    Replaced,
    /// The store cannot be read.
    Failed(Error),
    /// The session has closed, and all of its log was shown.
    Gone,
}

/// A place, and what the request for it is told.
pub struct Taken {
    pub subscription: Subscription,
    pub result: Value,
    pub when: When,
}

/// When a request hears that its place is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    AtOnce,
    AfterReplay,
}

impl Subscription {
    /// Takes a place: everything in the window, then everything that happens.
    pub async fn take(
        handle: SessionHandle,
        logs: Arc<dyn Logs>,
        window: Window,
        announce: Announce,
        place: Subscriber,
        patience: impl FnOnce(&AgentName) -> Duration,
    ) -> Result<Self, Error> {
        let Joined { attachment, description, presence } =
            handle.join(From::After(window.after), Backpressure::Own).await?;
        let agent = description.record.agent.clone();
        let (is_cut, is_partial) = (window.is_cut(), !window.is_whole());
        let end = ReplayEnd { open: attachment.open.clone(), is_cut, is_partial, description, announce };
        Ok(Self {
            name: SessionName::new(handle.id()),
            template: Template::default(),
            place,
            patience: patience(&agent),
            agent,
            prompts: VecDeque::new(),
            usage: Usage::default(),
            order: None,
            open: Vec::new(),
            after_replay: Vec::new(),
            _presence: presence,
            joined: attachment.last,
            reader: SessionReader::new(handle, attachment, logs),
            phase: Phase::Replay(Box::new(Replay { window, end, announced: Announced::NotYet })),
            successor: None,
        })
    }

    pub fn handle(&self) -> &SessionHandle {
        self.reader.handle()
    }

    /// How the session stands where the replay ends that is still to come.
    pub fn description(&mut self) -> Option<&mut Description> {
        match &mut self.phase {
            Phase::Replay(replay) => Some(&mut replay.end.description),
            Phase::Live => None,
        }
    }

    /// Whether the client is told of the replay that is under way.
    pub fn is_announced(&self) -> bool {
        matches!(&self.phase, Phase::Replay(replay) if replay.end.announce == Announce::Yes)
    }

    /// What comes next. May be dropped and called again.
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(successor) = &self.successor {
            let until = successor.joined;
            return self.poll_before_successor(until, cx);
        }
        let Phase::Replay(replay) = &mut self.phase else {
            return self.reader.poll_next(cx).map(|read| read.map_or_else(Step::ended, Step::Live));
        };
        if replay.announced == Announced::NotYet {
            replay.announced = Announced::Done;
            let from = Seq(replay.window.after.0.min(self.joined.0)).next();
            return Poll::Ready(Step::Begins { from, to: self.joined });
        }
        if !self.reader.is_live() {
            let read = ready!(self.reader.poll_next(cx));
            return Poll::Ready(read.map_or_else(Step::ended, |batch| Step::Again(replay.window.shown(batch))));
        }
        let Phase::Replay(replay) = std::mem::replace(&mut self.phase, Phase::Live) else { return Poll::Pending };
        Poll::Ready(Step::Over(Box::new(replay.end)))
    }

    fn poll_before_successor(&mut self, until: Seq, cx: &mut Context<'_>) -> Poll<Step> {
        if self.reader.seen() >= until {
            return Poll::Ready(Step::Replaced);
        }
        let read = ready!(self.reader.poll_next(cx));
        Poll::Ready(match read {
            Ok(batch) if batch.last().is_some_and(|entry| entry.seq > until) => {
                Step::BeforeSuccessor(batch.iter().take_while(|entry| entry.seq <= until).cloned().collect())
            }
            Ok(batch) => Step::BeforeSuccessor(batch),
            // The successor learns of it in its turn.
            Err(Error::Closed) => Step::Replaced,
            Err(error) => Step::Failed(error),
        })
    }

    /// The client has attached again.
    pub fn hand_over_to(&mut self, mut successor: Box<Self>) {
        if let Some(earlier) = self.successor.take() {
            successor.after_replay.splice(..0, earlier.after_replay);
        }
        if self.reader.seen() < self.joined {
            // What is left of this replay was for a request that is superseded.
            self.reader.go_to(self.joined);
        }
        self.successor = Some(successor);
    }

    /// Whether an entry that the client has not seen is shown before its new subscription begins.
    pub fn shows_before_successor(&self, entry: &LogEntry) -> bool {
        let shows_again = |successor: &Self| match &successor.phase {
            Phase::Replay(replay) => replay.window.shows(entry),
            Phase::Live => false,
        };
        matches!(self.phase, Phase::Live) && !self.successor.as_deref().is_some_and(shows_again)
    }

    /// The new subscription, with what the client still waits for.
    pub fn into_successor(self) -> Option<Self> {
        let mut successor = *self.successor?;
        successor.order = self.order;
        successor.after_replay.splice(..0, self.after_replay);
        successor.prompts = self.prompts;
        Some(successor)
    }

    /// The requests that wait for the end of a replay.
    pub fn take_after_replay(&mut self) -> Vec<(Box<RawValue>, Value)> {
        let mut waiting = std::mem::take(&mut self.after_replay);
        if let Some(successor) = &mut self.successor {
            waiting.append(&mut successor.after_replay);
        }
        waiting
    }

    /// Whether a request of this id still waits for its answer here.
    pub fn owes(&self, request: &RawValue) -> bool {
        let mut requests = self.prompts.iter().map(|own| &own.request);
        requests.any(|own| own.get() == request.get())
            || self.after_replay.iter().any(|(own, _)| own.get() == request.get())
            || self.successor.as_ref().is_some_and(|successor| successor.owes(request))
    }

    /// The prompt that became this turn, once its entry is seen. Whether it was cancelled before that.
    pub fn claim(&mut self, turn: TurnId) -> bool {
        let Some(own) = self.prompts.iter_mut().find(|own| own.turn.is_none()) else { return false };
        own.turn = Some(turn);
        own.cancel.is_cancelled()
    }

    /// Whether a turn that starts is this client's own.
    pub fn start(&mut self, turn: Option<TurnId>) -> bool {
        let own = self.prompts.iter_mut().find(|own| own.turn.is_some() && own.turn == turn);
        own.is_some_and(|own| {
            own.has_started = true;
            own.memory = None;
            true
        })
    }

    /// Takes out the prompt that has ended.
    pub fn finish(&mut self, turn: Option<TurnId>) -> Option<OwnPrompt> {
        let at = self.prompts.iter().position(|own| own.turn.is_some() && own.turn == turn)?;
        self.prompts.remove(at)
    }

    /// The prompt that this request brought.
    pub fn own(&mut self, request: &RawValue) -> Option<&mut OwnPrompt> {
        self.prompts.iter_mut().find(|own| own.request.get() == request.get())
    }

    /// Takes out a prompt that was refused.
    pub fn refuse(&mut self, request: &RawValue) -> Option<OwnPrompt> {
        let at = self.prompts.iter().position(|own| own.request.get() == request.get())?;
        self.prompts.remove(at)
    }
}

impl Step {
    fn ended(error: Error) -> Self {
        match error {
            Error::Closed => Self::Gone,
            error => Self::Failed(error),
        }
    }
}
