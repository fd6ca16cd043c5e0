//! Every live session by its id, and the way back to those that are only on disk.

mod views;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::actor::{Actor, Parts};
use super::crash_recovery::unfinished_turns;
use super::handle::SessionHandle;
use super::journal::Journal;
use super::overview::Overview;
use super::published::PublishedState;
use crate::admission::{Admission, AdmissionStatus, GuestLimits};
use crate::directory::Directory;
use crate::driver::{Driver, Resume, SessionSpec, SlashCommands, ToolServer};
use crate::error::Error;
use crate::limit::Limits;
use crate::log::{Draft, LogEntry, LogObserver, SessionLog};
use crate::model::{AgentName, Principal, Seq, SessionFacts, SessionId, Timestamp, TurnId};
use crate::store::{LogWriter, Logs, Reopened, SessionRecord, Store, StoreError};
use crate::tool_host::ToolHost;
use crate::turn::PermissionPolicy;

/// An agent that sessions can be opened with.
#[derive(Clone)]
pub struct AgentSetup {
    pub driver: Arc<dyn Driver>,
    pub limits: Limits,
    pub policy: PermissionPolicy,
    /// Which turns of its sessions run, and which wait.
    pub admission: Admission,
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
    guests: Option<GuestLimits>,
    observer: Option<Arc<dyn LogObserver>>,
    tool_host: Option<Arc<dyn ToolHost>>,
    /// Of the cluster, where this gateway is one of several.
    directory: Option<Arc<dyn Directory>>,
    /// For the agents of sessions that are brought back; a new one is told its own.
    tool_servers: Vec<ToolServer>,
    overview: Arc<Overview>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<SessionId, Entry>,
    /// The actors. Waited for at shutdown.
    tasks: JoinSet<SessionId>,
    closed: bool,
}

impl Inner {
    /// Forgets the sessions that have left the memory.
    fn forget_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            match ended {
                // Another task may have it already.
                Ok(id) => {
                    if self.entries.get(&id).is_some_and(Entry::is_free) {
                        self.entries.remove(&id);
                    }
                }
                // One that panicked does not say which it was.
                Err(_) => self.entries.retain(|_, entry| !entry.is_free()),
            }
        }
    }
}

/// Where a session is, or is being brought to. A log has one writer, so there is one entry for each session.
struct Entry {
    /// Absent while the session is read from disk.
    live: Option<Live>,
    tenant: Tenancy,
}

#[derive(Clone)]
struct Live {
    handle: SessionHandle,
    principal: Principal,
}

/// Held by whoever has the entry: first by the reader from disk, then by the actor's task. Dropping it frees the entry.
type Lease = watch::Sender<()>;
type Tenancy = watch::Receiver<()>;

impl Entry {
    fn is_free(&self) -> bool {
        self.tenant.has_changed().is_err()
    }

    fn open(&self) -> Option<&Live> {
        self.live.as_ref().filter(|live| !live.handle.is_closed())
    }
}

/// What somebody finds who wants a session that is not live.
enum Found {
    Live(Live),
    /// Somebody has the entry: the session is on its way in, or out.
    Taken(Tenancy),
    Free(Lease),
}

/// Commands that may wait for an actor; a sender beyond that waits for room.
const MAILBOX: usize = 64;

impl Sessions {
    pub fn new(store: Arc<dyn Store>, agents: HashMap<AgentName, AgentSetup>, config: SessionsConfig) -> Self {
        let overview = Arc::new(Overview::new());
        Self {
            store,
            agents,
            config,
            guests: None,
            observer: None,
            tool_host: None,
            directory: None,
            tool_servers: Vec::new(),
            overview,
            inner: Mutex::default(),
        }
    }

    /// How many sessions guests may have in memory.
    #[must_use]
    pub fn with_guests(mut self, guests: GuestLimits) -> Self {
        self.guests = Some(guests);
        self
    }

    /// Who sees what happens in every session.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn LogObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Where agents find the tools that clients run. Without one, none can be offered.
    #[must_use]
    pub fn with_tool_host(mut self, host: Arc<dyn ToolHost>) -> Self {
        self.tool_host = Some(host);
        self
    }

    /// Where the gateways of a cluster say which sessions they have.
    #[must_use]
    pub fn with_directory(mut self, directory: Arc<dyn Directory>) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Tool servers that the agents of sessions shall connect to when they are brought back.
    #[must_use]
    pub fn with_tool_servers(mut self, servers: Vec<ToolServer>) -> Self {
        self.tool_servers = servers;
        self
    }

    pub fn tool_host(&self) -> Option<&Arc<dyn ToolHost>> {
        self.tool_host.as_ref()
    }

    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &AgentSetup)> {
        self.agents.iter()
    }

    /// How many turns of each agent run and wait.
    pub fn queues(&self) -> impl Iterator<Item = (&AgentName, AdmissionStatus)> {
        self.agents.iter().map(|(agent, setup)| (agent, setup.admission.status()))
    }

    /// Whether a turn of this principal could run with the agent now, or wait.
    pub fn check_queue(&self, agent: &AgentName, principal: &Principal) -> Result<(), Error> {
        Ok(self.setup(agent)?.admission.check(principal)?)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What a reader of a session needs of the store.
    pub fn logs(&self) -> Arc<dyn Logs> {
        self.store.clone()
    }

    /// Begins a session. Its agent is opened by the first prompt, or by [`SessionHandle::wake`].
    pub async fn create(&self, new: NewSession) -> Result<SessionHandle, Error> {
        let setup = self.setup(&new.agent)?.clone();
        self.check_room(&new.principal)?;
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
        if let Some(directory) = &self.directory {
            directory.claim(record.id).await?;
        }
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
        let (lease, _) = watch::channel(());
        let id = record.id;
        let started = self.start(record, spec, writer, Past::none(), setup, lease);
        if started.is_err()
            && let Err(error) = self.store.delete(id).await
        {
            tracing::warn!(session = %id, %error, "a session that was not begun is left in the store");
        }
        started
    }

    /// The session with this id, brought back from disk if it must be. To anyone but its owner it does not exist.
    pub async fn get(&self, id: SessionId, viewer: &Viewer) -> Result<SessionHandle, Error> {
        let unknown = || Error::UnknownSession(id.to_string());
        if let Some(live) = self.find(id) {
            return if viewer.may_see(&live.principal) { Ok(live.handle) } else { Err(unknown()) };
        }
        let record = self.stored(id).await?;
        if !viewer.may_see(&record.principal) {
            return Err(unknown());
        }
        self.check_room(&record.principal)?;
        loop {
            match self.enter(id) {
                Found::Live(live) => return Ok(live.handle),
                // It came in or went out: either way it is worth another look.
                Found::Taken(mut tenancy) => drop(tenancy.changed().await),
                Found::Free(lease) => return self.reopen(record, lease).await,
            }
        }
    }

    /// The record of a session that is here. One that is not in the store may be at another gateway.
    pub(super) async fn stored(&self, id: SessionId) -> Result<SessionRecord, Error> {
        match (self.store.record(id).await, &self.directory) {
            (Err(StoreError::Unknown(_)), Some(directory)) => match directory.elsewhere(id).await? {
                Some(node) => Err(Error::Elsewhere(node)),
                None => Err(Error::UnknownSession(id.to_string())),
            },
            (Err(StoreError::Unknown(_)), None) => Err(Error::UnknownSession(id.to_string())),
            (record, _) => Ok(record?),
        }
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
        self.lock().entries.values().filter_map(Entry::open).map(|live| live.handle.clone()).collect()
    }

    /// Ends every turn, every session and every agent, and resolves when all of them are gone.
    pub async fn shutdown(&self) {
        let (handles, mut tasks) = {
            let mut inner = self.lock();
            inner.closed = true;
            let handles: Vec<_> = inner.entries.drain().filter_map(|(_, entry)| entry.live).collect();
            (handles, std::mem::take(&mut inner.tasks))
        };
        let mut closing: JoinSet<_> =
            handles.into_iter().map(|live| async move { (live.handle.id(), live.handle.close().await) }).collect();
        while let Some(closed) = closing.join_next().await {
            if let Ok((session, Err(error))) = closed {
                tracing::warn!(%session, %error, "a session did not close");
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

    async fn reopen(&self, record: SessionRecord, lease: Lease) -> Result<SessionHandle, Error> {
        let setup = self.setup(&record.agent)?.clone();
        let Reopened { record, last, last_turn, tail, writer } =
            self.store.reopen(record.id, setup.limits.ring_entries).await?;
        let unfinished = unfinished_turns(self.store.as_ref(), record.id, last, last_turn, &tail).await?;
        let spec = SessionSpec {
            principal: record.principal.clone(),
            workspace: record.workspace.clone(),
            model: record.model.clone(),
            mode: record.mode.clone(),
            resume: record
                .agent_session
                .clone()
                .map(|agent_session| Resume { agent_session, last_used: record.updated }),
            tool_servers: self.tool_servers.clone(),
            slash: SlashCommands::AsText,
        };
        let lost = record.agent_session.is_some().then(|| "the session was brought back from disk".to_owned());
        self.start(record, spec, writer, Past { last, last_turn, tail, unfinished, lost }, setup, lease)
    }

    fn start(
        &self,
        record: SessionRecord,
        spec: SessionSpec,
        writer: Box<dyn LogWriter>,
        past: Past,
        setup: AgentSetup,
        lease: Lease,
    ) -> Result<SessionHandle, Error> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(Error::Closed);
        }
        let mut facts = SessionFacts::default();
        past.tail.iter().for_each(|entry| facts.learn(&entry.event));
        let observer = self.observer.as_ref().map(|observer| observer.observe(&record));
        let log = SessionLog::new(writer, past.last, past.tail, setup.limits).observed_by(observer);
        let mut journal = Journal::new(log);
        journal.append(past.unfinished)?;
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let published = Arc::new(PublishedState::of(&record));
        let handle = SessionHandle::new(record.id, Arc::clone(&published), mailbox);
        let live = Live { handle: handle.clone(), principal: record.principal.clone() };
        lease.send_replace(());
        inner.entries.insert(record.id, Entry { live: Some(live), tenant: lease.subscribe() });
        let (id, policy) = (record.id, setup.policy.of_session(record.workspace.as_deref()));
        // A task that is handed its actor by value keeps room for it twice.
        let actor = Box::new(Actor::new(Parts {
            record,
            published,
            spec,
            journal,
            last_turn: past.last_turn,
            facts,
            driver: setup.driver,
            store: Arc::clone(&self.store),
            tool_host: self.tool_host.clone(),
            limits: setup.limits,
            policy,
            admission: setup.admission,
            lost: past.lost,
            overview: Arc::clone(&self.overview),
        }));
        inner.tasks.spawn(async move {
            actor.run(commands).await;
            drop(lease);
            id
        });
        Ok(handle)
    }

    fn setup(&self, agent: &AgentName) -> Result<&AgentSetup, Error> {
        self.agents.get(agent).ok_or_else(|| Error::Invalid(format!("agent `{agent}` is not configured")))
    }

    fn find(&self, id: SessionId) -> Option<Live> {
        self.lock().entries.get(&id).and_then(Entry::open).cloned()
    }

    /// Takes the session's entry, if nobody has it.
    fn enter(&self, id: SessionId) -> Found {
        let mut inner = self.lock();
        match inner.entries.get(&id) {
            Some(entry) if !entry.is_free() => match entry.open() {
                Some(live) => Found::Live(live.clone()),
                None => Found::Taken(entry.tenant.clone()),
            },
            Some(_) | None => {
                let (lease, tenant) = watch::channel(());
                inner.entries.insert(id, Entry { live: None, tenant });
                Found::Free(lease)
            }
        }
    }

    fn check_room(&self, principal: &Principal) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.forget_ended();
        let full = |what| Err(Error::Busy { what, retry_after: Duration::from_secs(10) });
        if inner.entries.len() >= self.config.live {
            // Of sessions that could not be read from disk nothing but the entry is left.
            inner.entries.retain(|_, entry| !entry.is_free());
            if inner.entries.len() >= self.config.live {
                return full("the gateway's table of sessions");
            }
        }
        let Some(guests) = self.guests.as_ref().filter(|guests| (guests.is_guest)(principal)) else { return Ok(()) };
        if inner.entries.len() < guests.each.min(guests.together) {
            return Ok(());
        }
        let owners = || inner.entries.values().filter_map(|entry| Some(&entry.live.as_ref()?.principal));
        if owners().filter(|owner| *owner == principal).count() >= guests.each {
            return full("this key's share of the gateway's table of sessions");
        }
        // Asked once for each owner: it costs more than to compare names.
        let mut of_guests = 0;
        let mut of_owner: HashMap<&Principal, usize> = HashMap::new();
        owners().for_each(|owner| *of_owner.entry(owner).or_default() += 1);
        for (owner, sessions) in of_owner {
            of_guests += if (guests.is_guest)(owner) { sessions } else { 0 };
        }
        if of_guests >= guests.together {
            return full("the guests' share of the gateway's table of sessions");
        }
        Ok(())
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
    /// Whether what `owner` has is there for this viewer at all.
    pub fn may_see(&self, owner: &Principal) -> bool {
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
    /// The ends that are missing in the log.
    unfinished: Vec<Draft>,
    lost: Option<String>,
}

impl Past {
    fn none() -> Self {
        Self { last: Seq::START, last_turn: None, tail: Vec::new(), unfinished: Vec::new(), lost: None }
    }
}
