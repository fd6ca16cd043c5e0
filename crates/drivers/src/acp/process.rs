//! One agent process and whom it serves: it belongs to nobody until its first session, then to one principal for life.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{AgentFacts, Principal};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::client_methods::AgreedWrite;
use super::client_rights::ClientRights;
use super::connection::Connection;
use super::creation_times::CreationTimes;
use super::description::{Description, Descriptions};
use super::fence::Enclosure;
use crate::profile::{Limits, Quirk};
use crate::workspace::InnerDir;

pub(super) struct AgentProcess {
    connection: Connection,
    facts: AgentFacts,
    abilities: Abilities,
    rights: ClientRights,
    limits: Limits,
    /// What the profile adds to every `session/new`.
    session_meta: Map<String, Value>,
    /// Held while a session is being opened, for agents that open one at a time.
    opening: tokio::sync::Mutex<()>,
    tenancy: Mutex<Tenancy>,
    turns: AtomicU64,
    condemned: AtomicBool,
    vacated: Notify,
    premade: Mutex<Vec<Premade>>,
    descriptions: Descriptions,
    jobs: Mutex<JoinSet<()>>,
    /// Shared by all processes of the agent, those before this one included.
    creation_times: Arc<CreationTimes>,
    enclosure: Enclosure,
}

/// What holds for every session of a process.
pub(super) struct Terms {
    pub rights: ClientRights,
    pub limits: Limits,
    pub session_meta: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that the agent tells or not")]
pub(super) struct Abilities {
    pub load: bool,
    pub resume: bool,
    pub close: bool,
    /// It takes tool servers over HTTP.
    pub http_tools: bool,
    /// `authenticate` may be tried: the login comes from the environment and changes nothing of the operator's.
    pub authenticate: bool,
}

#[derive(Default)]
struct Tenancy {
    principal: Option<Principal>,
    live: u32,
    opened: u32,
    /// Sessions that are being made ahead.
    premaking: u32,
}

/// A session that was opened ahead of time.
pub(super) struct Premade {
    pub description: Arc<Description>,
    pub name: Arc<str>,
    pub signals: mpsc::Receiver<Vec<Signal>>,
    pub folder: Option<InnerDir>,
}

/// A session is being made ahead as long as this lives.
pub(super) struct Premaking(Arc<AgentProcess>);

impl Premaking {
    /// The process, if it still has room for the session.
    pub(super) fn process(&self) -> Option<&Arc<AgentProcess>> {
        let process = &self.0;
        let ready = process.ready();
        let tenancy = lock(&process.tenancy);
        let has_room = process.used(&tenancy, ready) + tenancy.premaking <= process.limits.sessions_per_process;
        (has_room && !process.is_condemned() && !process.connection.is_gone()).then_some(process)
    }
}

impl Drop for Premaking {
    fn drop(&mut self) {
        lock(&self.0.tenancy).premaking -= 1;
    }
}

/// The right to one session of a process. Dropping it gives the place back.
pub(super) struct Lease {
    process: Arc<AgentProcess>,
    /// The session's own folder in chat; goes with the session.
    folder: Option<InnerDir>,
}

impl AgentProcess {
    pub(super) fn new(
        connection: Connection,
        facts: AgentFacts,
        abilities: Abilities,
        terms: Terms,
        creation_times: Arc<CreationTimes>,
        enclosure: Enclosure,
    ) -> Arc<Self> {
        let Terms { rights, limits, session_meta } = terms;
        Arc::new(Self {
            connection,
            facts,
            abilities,
            rights,
            limits,
            session_meta,
            opening: tokio::sync::Mutex::default(),
            tenancy: Mutex::default(),
            turns: AtomicU64::new(0),
            condemned: AtomicBool::new(false),
            vacated: Notify::new(),
            premade: Mutex::default(),
            descriptions: Descriptions::default(),
            jobs: Mutex::default(),
            creation_times,
            enclosure,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Its own folder, and what stands around it.
    pub(super) fn enclosure(&self) -> &Enclosure {
        &self.enclosure
    }

    pub(super) fn creation_times(&self) -> &CreationTimes {
        &self.creation_times
    }

    pub(super) fn descriptions(&self) -> &Descriptions {
        &self.descriptions
    }

    pub(super) fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    pub(super) fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// What clients of its sessions may change.
    pub(super) fn rights(&self) -> &ClientRights {
        &self.rights
    }

    /// The turn to open a session, where the agent opens one at a time. Nobody's deadline runs while it is waited for.
    pub(super) async fn turn_to_open(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.connection.router().has(Quirk::SessionsOpenOneByOne) { Some(self.opening.lock().await) } else { None }
    }

    /// Binds the process to its first principal.
    pub(super) fn bind(&self, principal: &Principal) {
        lock(&self.tenancy).principal.get_or_insert_with(|| principal.clone());
    }

    /// A place for one more session of `principal`, if this process may serve it.
    pub(super) fn lease_for(self: &Arc<Self>, principal: &Principal) -> Option<Lease> {
        if self.connection.is_gone() || self.is_condemned() {
            return None;
        }
        // Those that are ready are places, not sessions that anybody has.
        let ready = self.ready();
        let mut tenancy = lock(&self.tenancy);
        let counted = if self.counts_for_life() { tenancy.opened.saturating_sub(ready) } else { tenancy.live };
        if tenancy.principal.as_ref() != Some(principal) || counted >= self.limits.sessions_per_process {
            return None;
        }
        tenancy.live += 1;
        tenancy.opened += 1;
        Some(Lease { process: Arc::clone(self), folder: None })
    }

    /// Counts a session that nobody has asked for yet, and keeps it for whoever does.
    pub(super) fn keep_premade(&self, premade: Premade) {
        lock(&self.tenancy).opened += 1;
        lock(&self.premade).push(premade);
    }

    /// A session that is ready, with its place.
    pub(super) fn take_premade(self: &Arc<Self>) -> Option<(Premade, Lease)> {
        let mut premade = lock(&self.premade).pop()?;
        lock(&self.tenancy).live += 1;
        let lease = Lease { process: Arc::clone(self), folder: premade.folder.take() };
        Some((premade, lease))
    }

    /// Gives back a place for which a session that was ready stepped in.
    pub(super) fn uncount(&self, place: Lease) {
        lock(&self.tenancy).opened -= 1;
        drop(place);
    }

    /// The right to make one more session ahead, if one is wanted. Those that are being made count.
    pub(super) fn begin_premade(self: &Arc<Self>, wanted: u32) -> Option<Premaking> {
        if wanted == 0 {
            return None;
        }
        let ready = self.ready();
        let mut tenancy = lock(&self.tenancy);
        let room = self.used(&tenancy, ready) + tenancy.premaking < self.limits.sessions_per_process;
        if ready + tenancy.premaking >= wanted || !room || self.is_condemned() || self.connection.is_gone() {
            return None;
        }
        tenancy.premaking += 1;
        Some(Premaking(Arc::clone(self)))
    }

    /// Places that are taken, with `ready` sessions that were opened ahead.
    fn used(&self, tenancy: &Tenancy, ready: u32) -> u32 {
        if self.counts_for_life() { tenancy.opened } else { tenancy.live + ready }
    }

    /// Sessions that were opened ahead and are nobody's yet.
    fn ready(&self) -> u32 {
        u32::try_from(lock(&self.premade).len()).unwrap_or(u32::MAX)
    }

    /// Whether a session takes its place until the process ends.
    fn counts_for_life(&self) -> bool {
        self.connection.router().has(Quirk::SessionsCannotBeClosed)
    }

    /// Resolves when its last session has gone, also if that was before.
    pub(super) async fn vacated(&self) {
        self.vacated.notified().await;
    }

    /// Sessions that somebody uses.
    pub(super) fn live(&self) -> u32 {
        lock(&self.tenancy).live
    }

    pub(super) fn is_condemned(&self) -> bool {
        self.condemned.load(Ordering::Relaxed)
            || self.turns.load(Ordering::Relaxed) >= u64::from(self.limits.recycle_after_turns)
    }

    /// No new sessions; it ends when it serves nobody any more.
    pub(super) fn condemn(&self) {
        self.condemned.store(true, Ordering::Relaxed);
    }

    /// `_meta` of a request that opens a session, where the profile has one.
    pub(super) fn session_meta(&self) -> Option<&Map<String, Value>> {
        (!self.session_meta.is_empty()).then_some(&self.session_meta)
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl Lease {
    #[must_use]
    pub(super) fn in_folder(mut self, folder: InnerDir) -> Self {
        self.folder = Some(folder);
        self
    }

    pub(super) fn process(&self) -> &Arc<AgentProcess> {
        &self.process
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.process.connection
    }

    pub(super) fn count_turn(&self) {
        self.process.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes what somebody agreed to, beside the reader, and tells how it went: `session` first, then the agent.
    pub(super) fn write(&self, write: AgreedWrite, session: Arc<str>) {
        let process = Arc::downgrade(&self.process);
        let mut jobs = lock(&self.process.jobs);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(async move {
            let (line, record) = write.perform().await;
            let Some(process) = process.upgrade() else { return };
            process.connection.table().push_to(&session, Signal::Update(Update::ours(record)));
            if let Err(failure) = process.connection.answer(line) {
                tracing::warn!(%failure, "an answer could not reach the agent");
            }
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let left = {
            let mut tenancy = lock(&self.process.tenancy);
            tenancy.live -= 1;
            tenancy.live
        };
        if left == 0 {
            self.process.vacated.notify_one();
        }
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
