//! A client's place at one session: what it is shown again, then what happens, in one order without gap or double.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::error::Error;
use gembridge_core::log::{Backpressure, Batch, From, LogEntry, Older};
use gembridge_core::model::{AgentName, Seq, TurnId, Usage};
use gembridge_core::session::{Description, Joined, Presence, SessionHandle};
use gembridge_core::store::{Store, StoreError};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::encode::{SessionName, Template};
use super::fanout::Subscriber;
use super::replay::Window;
use crate::guard::memory_budget::Charge;

pub struct Subscription {
    pub name: SessionName,
    /// What the client is shown alone is written by this.
    pub template: Template,
    /// What it is shown like all the others is written here.
    pub place: Subscriber,
    pub handle: SessionHandle,
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
    /// The last entry before it was taken: what comes after it comes live.
    pub joined: Seq,
    /// Nothing more comes: the session ended, or this client did not keep up.
    pub is_let_go: bool,
    /// This client can answer what the agent asks.
    _presence: Presence,
    source: Source,
    follow: mpsc::Receiver<Batch>,
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

/// Where the next entries come from.
enum Source {
    Replay(Box<Replay>),
    Live,
}

struct Replay {
    store: Arc<dyn Store>,
    window: Window,
    /// What is in the store only, and still to be read.
    older: Option<Older>,
    reading: Option<BoxFuture<'static, Result<Vec<LogEntry>, StoreError>>>,
    snapshot: std::vec::IntoIter<Batch>,
    end: Option<Box<ReplayEnd>>,
    begun: bool,
    last: Seq,
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
    /// The store cannot be read.
    Failed(StoreError),
    /// The session ended, or this client did not keep up.
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

/// Entries that are read from the store at once.
const CHUNK: usize = 256;

impl Subscription {
    /// Takes a place: everything in the window, then everything that happens.
    pub async fn take(
        handle: SessionHandle,
        store: Arc<dyn Store>,
        window: Window,
        announce: Announce,
        place: Subscriber,
        patience: impl FnOnce(&AgentName) -> Duration,
    ) -> Result<Self, Error> {
        let Joined { attachment, description, presence } =
            handle.join(From::After(window.after), Backpressure::Own).await?;
        let agent = description.record.agent.clone();
        let (is_cut, is_partial) = (window.is_cut(), !window.is_whole());
        let end = ReplayEnd { open: attachment.open, is_cut, is_partial, description, announce };
        let replay = Replay {
            store,
            window,
            older: attachment.older,
            reading: None,
            snapshot: attachment.snapshot.into_iter(),
            end: Some(Box::new(end)),
            begun: false,
            last: attachment.last,
        };
        Ok(Self {
            name: SessionName::new(handle.id()),
            template: Template::default(),
            place,
            patience: patience(&agent),
            handle,
            prompts: VecDeque::new(),
            usage: Usage::default(),
            order: None,
            open: Vec::new(),
            after_replay: Vec::new(),
            joined: attachment.last,
            is_let_go: false,
            _presence: presence,
            source: Source::Replay(Box::new(replay)),
            follow: attachment.follow,
        })
    }

    /// How the session stands where the replay ends that is still to come.
    pub fn description(&mut self) -> Option<&mut Description> {
        match &mut self.source {
            Source::Replay(replay) => replay.end.as_mut().map(|end| &mut end.description),
            Source::Live => None,
        }
    }

    /// Whether the client is told of the replay that is under way.
    pub fn is_announced(&self) -> bool {
        match &self.source {
            Source::Replay(replay) => replay.end.as_ref().is_some_and(|end| end.announce == Announce::Yes),
            Source::Live => false,
        }
    }

    /// What comes next. May be dropped and called again.
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let id = self.handle.id();
        match &mut self.source {
            Source::Live => Poll::Ready(ready!(self.follow.poll_recv(cx)).map_or(Step::Gone, Step::Live)),
            Source::Replay(replay) => {
                let step = ready!(replay.poll_step(id, cx));
                if let Step::Over(_) = step {
                    self.source = Source::Live;
                }
                Poll::Ready(step)
            }
        }
    }

    /// Whether the replay that is still to come shows this entry.
    pub fn shows_again(&self, entry: &LogEntry) -> bool {
        matches!(&self.source, Source::Replay(replay) if replay.window.shows(entry))
    }

    /// Takes what happened and was not shown yet. Whether it would have been next.
    pub fn unread(&mut self) -> (bool, Vec<Batch>) {
        let mut unread = Vec::new();
        loop {
            match self.follow.try_recv() {
                Ok(batch) => unread.push(batch),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.is_let_go = true;
                    break;
                }
            }
        }
        (matches!(self.source, Source::Live), unread)
    }

    /// Whether a request of this id still waits for its answer here.
    pub fn owes(&self, request: &RawValue) -> bool {
        let mut requests = self.prompts.iter().map(|own| &own.request);
        requests.any(|own| own.get() == request.get())
            || self.after_replay.iter().any(|(own, _)| own.get() == request.get())
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

impl Replay {
    fn poll_step(&mut self, id: gembridge_core::model::SessionId, cx: &mut Context<'_>) -> Poll<Step> {
        if !std::mem::replace(&mut self.begun, true) {
            let from = Seq(self.window.after.0.min(self.last.0)).next();
            return Poll::Ready(Step::Begins { from, to: self.last });
        }
        if let Some(older) = self.older {
            let reading = self.reading.get_or_insert_with(|| {
                let store = Arc::clone(&self.store);
                Box::pin(async move { store.read(id, older.after, older.until, CHUNK).await })
            });
            let read = ready!(reading.as_mut().poll(cx));
            self.reading = None;
            return Poll::Ready(match read {
                Ok(mut entries) => {
                    let reached = entries.last().map_or(older.until, |entry| entry.seq);
                    self.older = (reached < older.until).then_some(Older { after: reached, ..older });
                    entries.retain(|entry| self.window.shows(entry));
                    Step::Again(entries.into())
                }
                Err(error) => Step::Failed(error),
            });
        }
        if let Some(batch) = self.snapshot.next() {
            let all = batch.iter().all(|entry| self.window.shows(entry));
            return Poll::Ready(if all {
                Step::Again(batch)
            } else {
                Step::Again(batch.iter().filter(|entry| self.window.shows(entry)).cloned().collect())
            });
        }
        match self.end.take() {
            Some(end) => Poll::Ready(Step::Over(end)),
            None => Poll::Pending,
        }
    }
}
