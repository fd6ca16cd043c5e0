//! The driver: sessions that share nothing but how they are set up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, Failure, FailureKind, Mode, Model, PromptAbilities, SessionFacts, SessionId};
use gembridge_process::PoolStatus;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::encode::{self, Continuity};
use super::session::{HeadlessSession, State};
use crate::acp::launch::no_folder;
use crate::profile::{ApprovalMode, Execution, Headless, Quirk};
use crate::setup::{Audience, DriverSetup, Home, ManagedDriver, ProcessStatus};
use crate::workspace::PrivateDir;

/// Batches that a session's owner may be behind; then the program waits.
const SIGNALS: usize = 16;
/// Sessions that a program no longer had, as far as they are remembered.
const FORGOTTEN: usize = 1_024;

pub struct HeadlessDriver {
    shared: Arc<Shared>,
}

/// What sessions and their turns have in common.
pub(super) struct Shared {
    setup: DriverSetup,
    headless: Headless,
    running: Mutex<HashMap<u64, CancellationToken>>,
    next: AtomicU64,
    /// Told when a process is gone.
    idle: Notify,
    /// Sessions that the program said it does not have.
    forgotten: Mutex<HashSet<Arc<str>>>,
}

/// A process that runs. Dropping it takes it off the list.
pub(super) struct Running {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.shared.running).remove(&self.number);
        self.shared.idle.notify_waiters();
    }
}

impl Shared {
    pub(super) fn headless(&self) -> &Headless {
        &self.headless
    }

    pub(super) fn begin(self: &Arc<Self>, cancel: &CancellationToken) -> Running {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.running).insert(number, cancel.clone());
        Running { shared: Arc::clone(self), number }
    }

    pub(super) fn forget(&self, session: Arc<str>) {
        let mut forgotten = lock(&self.forgotten);
        if forgotten.len() >= FORGOTTEN {
            forgotten.clear();
        }
        forgotten.insert(session);
    }

    /// A mode that whoever is served may have.
    pub(super) fn allowed_mode(&self, word: &str) -> Result<ApprovalMode, Failure> {
        let profile = &self.setup.profile;
        let mode = encode::mode(profile, word)?;
        profile
            .mode_id(mode, self.setup.trust)
            .map_err(|error| Failure::new(FailureKind::Forbidden, error.to_string()))?;
        Ok(mode)
    }

    /// Whether a session of an earlier process can still be where the program looks for it.
    fn is_kept(&self, spec: &SessionSpec) -> bool {
        let own_home = self.setup.login.as_ref().is_some_and(|login| login.private_home);
        let home_stays = !own_home || matches!(self.setup.home, Home::Lasting(_));
        let folder_stays = self.setup.workspace.is_some() || spec.workspace.is_some();
        home_stays && (folder_stays || !self.setup.profile.has(Quirk::SessionsAreKeptByFolder))
    }
}

impl HeadlessDriver {
    /// `headless` is how the profile says that the program runs without a protocol.
    pub fn new(setup: DriverSetup, headless: Headless) -> Self {
        let shared = Shared {
            setup,
            headless,
            running: Mutex::default(),
            next: AtomicU64::new(1),
            idle: Notify::new(),
            forgotten: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    fn opened(&self, spec: &SessionSpec) -> Result<Opened, Failure> {
        let shared = &self.shared;
        let agent = &shared.setup.profile.name;
        if shared.setup.audience == Audience::Guests {
            let text = format!("agent `{agent}` runs headless and serves admin keys only");
            return Err(Failure::new(FailureKind::Forbidden, text));
        }
        if !spec.tool_servers.is_empty() {
            let text = format!("agent `{agent}` runs headless and takes no tools of a client; use the driver `acp`");
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        let mode = match &spec.mode {
            Some(word) => shared.allowed_mode(word)?,
            None => shared.setup.approval,
        };
        let earlier = spec.resume.as_ref().map(|resume| Arc::clone(&resume.agent_session));
        let earlier = earlier.filter(|name| shared.is_kept(spec) && !lock(&shared.forgotten).contains(name));
        let (name, continuity) = match earlier {
            Some(name) => (name, Continuity::GoesOn),
            None => (SessionId::new().to_string().into(), Continuity::Begins),
        };
        encode::checked_session(&name)?;
        let setup = &shared.setup;
        let private = PrivateDir::create(&setup.private, agent).map_err(|error| no_folder(setup, &error))?;
        let mut own = setup.clone();
        own.workspace = spec.workspace.clone().or(own.workspace);
        own.model = spec.model.as_deref().map(str::to_owned).or(own.model);
        let mut facts = facts(&own);
        facts.mode.clone_from(&spec.mode);
        let (sink, signals) = mpsc::channel(SIGNALS);
        let state = State::new(Arc::clone(&name), private);
        let session = HeadlessSession::new(Arc::clone(shared), state, own, (mode, spec.slash), continuity, sink);
        Ok(Opened {
            agent: Box::new(session),
            signals,
            facts,
            agent_session: name,
            resumed: continuity == Continuity::GoesOn,
            // With tools of its own it has more to lose than that one turn.
            forgets_cut_turns: setup.execution == Execution::Chat && setup.profile.has(Quirk::CutTurnsAreForgotten),
        })
    }
}

/// What is known without asking: nothing is started for it.
fn facts(setup: &DriverSetup) -> SessionFacts {
    let profile = &setup.profile;
    let named = |name: &str| -> Arc<str> { name.into() };
    let offered_modes =
        profile.modes.values().map(|mode| Mode { id: named(&mode.id), name: named(&mode.id), description: None });
    let known = profile.model.known.iter().map(|id| Model { id: named(id), name: named(id), description: None });
    SessionFacts {
        modes: offered_modes.collect(),
        models: known.collect(),
        model: setup.model.as_deref().or(profile.model.default.as_deref()).map(named),
        ..SessionFacts::default()
    }
}

impl Driver for HeadlessDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(std::future::ready(self.opened(&spec)))
    }

    fn facts(&self) -> Option<AgentFacts> {
        Some(AgentFacts {
            name: Some(self.shared.setup.profile.name.as_str().into()),
            version: None,
            prompt: PromptAbilities::default(),
            load_session: true,
            mcp_http: false,
            handshake: None,
        })
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        Some(Arc::new(facts(&self.shared.setup)))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let idle = self.shared.idle.notified();
                tokio::pin!(idle);
                // From here on no end is missed.
                idle.as_mut().enable();
                let running: Vec<_> = lock(&self.shared.running).values().cloned().collect();
                if running.is_empty() {
                    return;
                }
                running.iter().for_each(CancellationToken::cancel);
                idle.await;
            }
        })
    }
}

impl ManagedDriver for HeadlessDriver {
    fn processes(&self) -> Vec<ProcessStatus> {
        let running = lock(&self.shared.running).len();
        (0..running).map(|_| ProcessStatus { pid: None, sessions: 1, condemned: false }).collect()
    }

    /// Nothing is kept ready: a process is started for its prompt.
    fn pools(&self) -> Vec<PoolStatus> {
        Vec::new()
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
