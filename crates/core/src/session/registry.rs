//! Every live session by its id, and the way back to those that are only on disk.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::{Actor, Parts};
use super::handle::SessionHandle;
use super::journal::Journal;
use crate::driver::{Driver, Resume, SessionSpec, SlashCommands, ToolServer};
use crate::error::Error;
use crate::limit::Limits;
use crate::log::{Draft, LogEntry, SessionLog};
use crate::model::{AgentName, Event, Failure, FailureKind, Outcome, Principal, Seq, SessionId, Timestamp, TurnId};
use crate::store::{LogWriter, SessionRecord, Store, StoreError};
use crate::turn::PermissionPolicy;

/// An agent that sessions can be opened with.
#[derive(Clone)]
pub struct AgentSetup {
    pub driver: Arc<dyn Driver>,
    pub limits: Limits,
    pub policy: PermissionPolicy,
}

#[derive(Clone, Copy, Debug)]
pub struct SessionsConfig {
    /// Sessions in memory at once; one more is refused as busy.
    pub live: usize,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        Self { live: 4_096 }
    }
}

/// What a new session shall be.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub principal: Principal,
    pub agent: AgentName,
    pub workspace: Option<PathBuf>,
    pub model: Option<Arc<str>>,
    pub mode: Option<Arc<str>>,
    pub tool_servers: Vec<ToolServer>,
    pub slash: SlashCommands,
}

pub struct Sessions {
    store: Arc<dyn Store>,
    agents: HashMap<AgentName, AgentSetup>,
    config: SessionsConfig,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    live: HashMap<SessionId, Live>,
    /// The actors. Waited for at shutdown.
    tasks: JoinSet<()>,
    closed: bool,
}

struct Live {
    handle: SessionHandle,
    principal: Principal,
}

/// Commands that may wait for an actor; a sender beyond that waits for room.
const MAILBOX: usize = 64;

impl Sessions {
    pub fn new(store: Arc<dyn Store>, agents: HashMap<AgentName, AgentSetup>, config: SessionsConfig) -> Self {
        Self { store, agents, config, inner: Mutex::default() }
    }

    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &AgentSetup)> {
        self.agents.iter()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Begins a session. Its agent is opened by the first prompt, or by [`SessionHandle::wake`].
    pub async fn create(&self, new: NewSession) -> Result<SessionHandle, Error> {
        let setup = self.setup(&new.agent)?.clone();
        self.check_room()?;
        let now = Timestamp::now();
        let record = SessionRecord {
            id: SessionId::new(),
            principal: new.principal.clone(),
            agent: new.agent,
            agent_session: None,
            workspace: new.workspace.clone(),
            model: new.model.clone(),
            mode: new.mode.clone(),
            title: None,
            created: now,
            updated: now,
        };
        let writer = self.store.create(record.clone()).await?;
        let spec = SessionSpec {
            principal: new.principal,
            workspace: new.workspace,
            model: new.model,
            mode: new.mode,
            resume: None,
            tool_servers: new.tool_servers,
            slash: new.slash,
        };
        self.start(record, spec, writer, Past::none(), setup)
    }

    /// The session with this id, brought back from disk if it must be. To anyone but its owner it does not exist.
    pub async fn get(&self, id: SessionId, viewer: &Viewer) -> Result<SessionHandle, Error> {
        let unknown = || Error::UnknownSession(id.to_string());
        if let Some((handle, principal)) = self.find(id) {
            return if viewer.may_see(&principal) { Ok(handle) } else { Err(unknown()) };
        }
        let record = self.store.record(id).await.map_err(|error| match error {
            StoreError::Unknown(_) => unknown(),
            other => Error::Store(other),
        })?;
        if !viewer.may_see(&record.principal) {
            return Err(unknown());
        }
        self.reopen(record).await
    }

    /// What is known of the sessions that `viewer` may see; the newest change first.
    pub async fn list(&self, viewer: &Viewer, limit: usize) -> Result<Vec<SessionRecord>, Error> {
        let principal = match viewer {
            Viewer::Admin => None,
            Viewer::Principal(principal) => Some(principal.clone()),
        };
        Ok(self.store.list(principal, limit).await?)
    }

    pub fn live(&self) -> Vec<SessionHandle> {
        self.lock().live.values().map(|live| live.handle.clone()).collect()
    }

    /// Ends every turn, every session and every agent, and resolves when all of them are gone.
    pub async fn shutdown(&self) {
        let (handles, mut tasks) = {
            let mut inner = self.lock();
            inner.closed = true;
            let handles: Vec<_> = inner.live.drain().map(|(_, live)| live.handle).collect();
            (handles, std::mem::take(&mut inner.tasks))
        };
        for handle in handles {
            if let Err(error) = handle.close().await {
                tracing::warn!(session = %handle.id(), %error, "a session did not close");
            }
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a session's task panicked");
            }
        }
        for setup in self.agents.values() {
            setup.driver.shutdown().await;
        }
    }

    async fn reopen(&self, record: SessionRecord) -> Result<SessionHandle, Error> {
        let setup = self.setup(&record.agent)?.clone();
        self.check_room()?;
        let reopened = self.store.reopen(record.id, setup.limits.ring_entries).await?;
        let record = reopened.record;
        let spec = SessionSpec {
            principal: record.principal.clone(),
            workspace: record.workspace.clone(),
            model: record.model.clone(),
            mode: record.mode.clone(),
            resume: record
                .agent_session
                .clone()
                .map(|agent_session| Resume { agent_session, last_used: record.updated }),
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        let lost = record.agent_session.is_some().then(|| "the gateway was restarted".to_owned());
        let past = Past { last: reopened.last, last_turn: reopened.last_turn, tail: reopened.tail, lost };
        self.start(record, spec, reopened.writer, past, setup)
    }

    fn start(
        &self,
        record: SessionRecord,
        spec: SessionSpec,
        writer: Box<dyn LogWriter>,
        past: Past,
        setup: AgentSetup,
    ) -> Result<SessionHandle, Error> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(Error::Closed);
        }
        // Two clients may have asked for the same session at once: the first one's actor owns it.
        if let Some(live) = inner.live.get(&record.id).filter(|live| !live.handle.is_closed()) {
            return Ok(live.handle.clone());
        }
        let unfinished = unfinished_turns(&past);
        let mut journal = Journal::new(SessionLog::new(writer, past.last, past.tail, setup.limits));
        journal.append(unfinished)?;
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let handle = SessionHandle::new(record.id, mailbox);
        inner.live.insert(record.id, Live { handle: handle.clone(), principal: record.principal.clone() });
        let actor = Actor::new(Parts {
            record,
            spec,
            journal,
            last_turn: past.last_turn,
            driver: setup.driver,
            store: Arc::clone(&self.store),
            limits: setup.limits,
            policy: setup.policy,
            lost: past.lost,
        });
        inner.tasks.spawn(actor.run(commands));
        Ok(handle)
    }

    fn setup(&self, agent: &AgentName) -> Result<&AgentSetup, Error> {
        self.agents.get(agent).ok_or_else(|| {
            Error::Invalid(format!("agent `{agent}` is not configured; `gembridge agents` lists those that are"))
        })
    }

    fn find(&self, id: SessionId) -> Option<(SessionHandle, Principal)> {
        let inner = self.lock();
        let live = inner.live.get(&id).filter(|live| !live.handle.is_closed())?;
        Some((live.handle.clone(), live.principal.clone()))
    }

    fn check_room(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        while inner.tasks.try_join_next().is_some() {}
        inner.live.retain(|_, live| !live.handle.is_closed());
        if inner.live.len() < self.config.live {
            return Ok(());
        }
        Err(Error::Busy { what: "the gateway's table of sessions", retry_after: Duration::from_secs(10) })
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever asks for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The operator, who may see every session.
    Admin,
    Principal(Principal),
}

impl Viewer {
    fn may_see(&self, owner: &Principal) -> bool {
        match self {
            Self::Admin => true,
            Self::Principal(principal) => principal == owner,
        }
    }
}

/// What a session brings along from before.
struct Past {
    last: Seq,
    last_turn: Option<TurnId>,
    tail: Vec<LogEntry>,
    lost: Option<String>,
}

impl Past {
    fn none() -> Self {
        Self { last: Seq::START, last_turn: None, tail: Vec::new(), lost: None }
    }
}

/// The ends of turns that were running when the process ended. Every turn has exactly one.
fn unfinished_turns(past: &Past) -> Vec<Draft> {
    let Some(last_turn) = past.last_turn else { return Vec::new() };
    let first = past.tail.iter().find_map(|entry| entry.turn).unwrap_or(last_turn);
    let ended: BTreeSet<TurnId> = past
        .tail
        .iter()
        .filter(|entry| matches!(entry.event, Event::Ended(_)))
        .filter_map(|entry| entry.turn)
        .collect();
    let failure = Failure::new(FailureKind::ShuttingDown, "the gateway stopped while the turn ran; what came is kept");
    (first.0..=last_turn.0)
        .map(TurnId)
        .filter(|turn| !ended.contains(turn))
        .map(|turn| Draft { turn: Some(turn), event: Event::Ended(Outcome::Interrupted(failure.clone())), frame: None })
        .collect()
}
