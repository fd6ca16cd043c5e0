//! What one connection keeps in mind: the calls that wait for an answer and the sessions that live on it.
//!
//! Behind one lock that nobody holds across an await. The reader takes it once per batch of lines.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::Signal;
use gembridge_core::model::{AskBody, AskId, Command, Failure, Subject, ToolCallId};
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::client_methods::ClientMethods;
use super::decode::Shapes;
use super::retry_dedup::RetryDedup;

pub(super) type Sink = mpsc::Sender<Vec<Signal>>;

/// The update that last told a session its commands, and what it said.
struct KnownCommands {
    update: Box<str>,
    commands: Arc<[Command]>,
}

#[derive(Default)]
pub(super) struct RoutingTable {
    last_id: u64,
    last_ask: u64,
    pending: HashMap<u64, Pending>,
    by_name: HashMap<Arc<str>, usize>,
    slots: Vec<Option<Slot>>,
    /// The slot of the line before: most lines belong to the same session as the one before them.
    latest: usize,
    /// Slots whose batch is not empty.
    dirty: Vec<usize>,
    /// Updates of sessions whose `session/new` has not been answered yet.
    early: Vec<(Arc<str>, Signal)>,
    lost: Option<Failure>,
    shapes: Shapes,
    commands: Option<KnownCommands>,
}

/// A call of ours that waits for the agent.
pub(super) enum Pending {
    /// Whoever called waits for the whole result.
    Call(oneshot::Sender<Result<Bytes, CallError>>),
    /// `session/new`: its session begins the moment the answer is read, since updates may follow in the same breath.
    Open { opening: Box<Opening>, reply: oneshot::Sender<Result<Bytes, CallError>> },
    /// The end of a turn, which must not overtake the updates before it.
    Prompt { session: Arc<str> },
}

/// Why a call has no result.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    Refused(super::wire::RpcError),
    Lost(Failure),
}

/// What a new session's slot will be made of.
pub(super) struct Opening {
    pub sink: Sink,
    pub methods: Arc<ClientMethods>,
    pub repeat: Option<RetryDedup>,
    pub tools: Tools,
}

/// One session on this connection.
pub(super) struct Slot {
    pub name: Arc<str>,
    pub sink: Sink,
    pub batch: Vec<Signal>,
    pub methods: Arc<ClientMethods>,
    pub asks: HashMap<AskId, OpenAsk>,
    pub phase: Phase,
    /// Updates of a replay that were not passed on.
    pub replayed: u64,
    pub repeat: Option<RetryDedup>,
    pub tools: Tools,
    /// Calls of tools of ours that the agent announced and may still ask about. At most [`MOST_ANNOUNCED`].
    pub announced: VecDeque<ToolCallId>,
}

/// Whether the agent was given a tool server of ours for this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tools {
    Given,
    NotGiven,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The agent repeats an old conversation, which we have in our own log.
    Replaying,
    /// Opened ahead of time: nobody takes what comes, so what does not fit is dropped.
    Ahead,
    Live,
}

/// What is left of a session that was taken out.
pub(super) struct Removed {
    pub methods: Arc<ClientMethods>,
    /// The agent still works on a prompt of it.
    pub had_turn: bool,
}

/// A request of the agent that waits for somebody.
pub(super) struct OpenAsk {
    pub id: Box<RawValue>,
    pub body: AskBody,
    pub purpose: Purpose,
}

/// What an answer is for.
pub(super) enum Purpose {
    /// It goes to the agent.
    Agent,
    /// It decides whether we write a file that could change how programs behave.
    Write { path: String, content: String },
}

/// Requests of one agent that may wait for an answer at once; one more is answered at once, with no.
pub(super) const MOST_ASKS: usize = 1_024;

/// Announced calls that are remembered; the oldest is forgotten for one more, and a permission for it goes to people.
const MOST_ANNOUNCED: usize = 64;

/// Updates that may arrive before their session is known; beyond that they are noise.
const MOST_EARLY: usize = 64;

impl Slot {
    pub(super) fn announce(&mut self, call: ToolCallId) {
        if self.announced.contains(&call) {
            return;
        }
        if self.announced.len() >= MOST_ANNOUNCED {
            self.announced.pop_front();
        }
        self.announced.push_back(call);
    }

    /// Whose tool a permission is about, by the call that was announced before it. One permission each.
    pub(super) fn announced_subject(&mut self, call: &ToolCallId) -> Subject {
        match self.announced.iter().position(|announced| announced == call) {
            Some(at) => {
                self.announced.remove(at);
                Subject::ClientTool
            }
            None => Subject::AgentTool,
        }
    }
}

impl RoutingTable {
    /// What the agent's lines have looked like so far.
    pub(super) fn shapes(&mut self) -> &mut Shapes {
        &mut self.shapes
    }

    /// The commands of an update that is the same as one before: each session of an agent is told the same, so
    /// they are read once and kept once.
    pub(super) fn known_commands(&self, update: &str) -> Option<Arc<[Command]>> {
        self.commands.as_ref().filter(|known| *known.update == *update).map(|known| Arc::clone(&known.commands))
    }

    pub(super) fn learn_commands(&mut self, update: &str, commands: &Arc<[Command]>) {
        if self.known_commands(update).is_none() {
            self.commands = Some(KnownCommands { update: update.into(), commands: Arc::clone(commands) });
        }
    }

    pub(super) fn lost(&self) -> Option<&Failure> {
        self.lost.as_ref()
    }

    /// Takes the number of the next call, and remembers who waits for it.
    pub(super) fn expect(&mut self, pending: Pending) -> Result<u64, Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        self.last_id += 1;
        self.pending.insert(self.last_id, pending);
        Ok(self.last_id)
    }

    pub(super) fn forget(&mut self, id: u64) -> Option<Pending> {
        self.pending.remove(&id)
    }

    /// The session whose prompt has this number and still waits for its end.
    pub(super) fn prompted(&self, id: u64) -> Option<Arc<str>> {
        match self.pending.get(&id)? {
            Pending::Prompt { session } => Some(Arc::clone(session)),
            Pending::Call(_) | Pending::Open { .. } => None,
        }
    }

    pub(super) fn add(&mut self, name: &Arc<str>, opening: Opening, phase: Phase) {
        let slot = Slot {
            name: Arc::clone(name),
            sink: opening.sink,
            batch: Vec::new(),
            methods: opening.methods,
            asks: HashMap::new(),
            phase,
            replayed: 0,
            repeat: opening.repeat,
            tools: opening.tools,
            announced: VecDeque::new(),
        };
        let at = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(slot);
        self.by_name.insert(Arc::clone(name), at);
        let early = std::mem::take(&mut self.early);
        for (session, signal) in early {
            if session == *name {
                self.push(at, signal);
            } else {
                self.early.push((session, signal));
            }
        }
    }

    /// Takes a session out. What still comes for it, the end of a turn included, is noise from now on.
    pub(super) fn remove(&mut self, name: &str) -> Option<Removed> {
        let at = self.by_name.remove(name)?;
        self.dirty.retain(|dirty| *dirty != at);
        let calls = self.pending.len();
        self.pending.retain(|_, pending| !matches!(pending, Pending::Prompt { session } if **session == *name));
        let slot = self.slots[at].take()?;
        Some(Removed { methods: slot.methods, had_turn: self.pending.len() < calls })
    }

    pub(super) fn slot(&mut self, name: &str) -> Option<&mut Slot> {
        let at = self.find(name)?;
        self.slots[at].as_mut()
    }

    pub(super) fn find(&mut self, name: &str) -> Option<usize> {
        if let Some(Some(slot)) = self.slots.get(self.latest)
            && *slot.name == *name
        {
            return Some(self.latest);
        }
        let at = *self.by_name.get(name)?;
        self.latest = at;
        Some(at)
    }

    /// The question that the agent asked under this id, taken out.
    pub(super) fn take_ask(&mut self, id: &RawValue) -> Option<(usize, AskId)> {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let Some(slot) = slot else { continue };
            let found = slot.asks.iter().find(|(_, open)| open.id.get() == id.get()).map(|(ask, _)| *ask);
            if let Some(ask) = found {
                slot.asks.remove(&ask);
                return Some((at, ask));
            }
        }
        None
    }

    /// A number for a question of the agent, by which the session answers it.
    pub(super) fn next_ask(&mut self) -> AskId {
        self.last_ask += 1;
        AskId(self.last_ask)
    }

    /// Requests of the agent that wait for somebody, in all sessions.
    pub(super) fn open_asks(&self) -> usize {
        self.slots.iter().flatten().map(|slot| slot.asks.len()).sum()
    }

    pub(super) fn at(&mut self, at: usize) -> Option<&mut Slot> {
        self.slots.get_mut(at)?.as_mut()
    }

    pub(super) fn push(&mut self, at: usize, signal: Signal) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        if slot.batch.is_empty() {
            self.dirty.push(at);
        }
        slot.batch.push(signal);
    }

    /// The same for whoever knows the session by name. It goes out with what the agent says next.
    pub(super) fn push_to(&mut self, name: &str, signal: Signal) {
        if let Some(at) = self.find(name) {
            self.push(at, signal);
        }
    }

    /// Keeps an update for a session that is about to begin. Whether there was room.
    pub(super) fn push_early(&mut self, session: &str, signal: Signal) -> bool {
        let awaited = self.pending.values().any(|pending| matches!(pending, Pending::Open { .. }));
        if !awaited || self.early.len() >= MOST_EARLY {
            return false;
        }
        self.early.push((session.into(), signal));
        true
    }

    /// Turns that the agent works on.
    pub(super) fn running_turns(&self) -> usize {
        self.pending.values().filter(|pending| matches!(pending, Pending::Prompt { .. })).count()
    }

    /// Hands each session what waits for it. What is given back did not fit: its session has to be waited for.
    pub(super) fn take_deliveries(&mut self) -> Vec<(Sink, Vec<Signal>)> {
        let mut left = Vec::new();
        let mut dirty = std::mem::take(&mut self.dirty);
        for at in dirty.drain(..) {
            let Some(slot) = self.slots[at].as_mut() else { continue };
            let room = Vec::with_capacity(slot.batch.len());
            match slot.sink.try_send(std::mem::replace(&mut slot.batch, room)) {
                Err(TrySendError::Full(batch)) if slot.phase != Phase::Ahead => left.push((slot.sink.clone(), batch)),
                // One that has gone wants nothing, and nobody waits for one that was opened ahead.
                Ok(()) | Err(_) => {}
            }
        }
        self.dirty = dirty;
        left
    }

    /// The process is gone: everyone who waits hears it, and every session ends with it.
    pub(super) fn lose(&mut self, failure: &Failure) -> Vec<(Sink, Vec<Signal>)> {
        if self.lost.is_some() {
            return Vec::new();
        }
        self.lost = Some(failure.clone());
        for (_, pending) in self.pending.drain() {
            if let Pending::Call(reply) | Pending::Open { reply, .. } = pending {
                // A caller that has gone does not need to know.
                drop(reply.send(Err(CallError::Lost(failure.clone()))));
            }
        }
        for at in 0..self.slots.len() {
            self.push(at, Signal::Lost(failure.clone()));
        }
        self.take_deliveries()
    }
}
