//! The driver: which server a session gets.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec, Signal, ToolServer};
use gembridge_core::model::{AgentFacts, Failure, FailureKind, Model, Principal, SessionFacts, SessionId};
use gembridge_process::{Environment, PoolStatus, Secrets};
use hyper::Uri;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::card::{self, Addressing, Card};
use super::encode;
use super::http::Server;
use super::server_process::{self, ServerProcess};
use super::servers::Servers;
use super::session::{A2aSession, Terms};
use crate::acp::launch::no_folder;
use crate::profile::{A2a, SessionSettings};
use crate::setup::{Audience, DriverSetup, ManagedDriver, ProcessStatus};
use crate::workspace::{Jail, JailLimits, PrivateDir};

/// Batches that a session's owner may be behind; then the server waits.
const SIGNALS: usize = 16;

pub struct A2aDriver {
    shared: Arc<Shared>,
}

/// What sessions and their turns have in common.
struct Shared {
    setup: DriverSetup,
    a2a: A2a,
    running: Mutex<HashMap<u64, CancellationToken>>,
    next: AtomicU64,
    /// Told when a turn is over.
    idle: Notify,
    facts: Mutex<Option<AgentFacts>>,
    /// Those that we started.
    servers: Servers,
}

/// The server of one session.
pub(super) struct Lease {
    pub server: Arc<Server>,
    pub card: Arc<Card>,
    /// Where it is ours. Held by the sessions that it serves.
    process: Option<Arc<ServerProcess>>,
    shared: Arc<Shared>,
}

/// A turn that runs. Dropping it takes it off the list.
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

impl Lease {
    pub fn begin(&self, cancel: &CancellationToken) -> Running {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.running).insert(number, cancel.clone());
        Running { shared: Arc::clone(&self.shared), number }
    }

    /// How a turn ended. With a server of ours the conversation is gone.
    pub fn judged(&self, signal: Signal) -> Signal {
        match signal {
            Signal::Failed(failure) if self.process.as_ref().is_some_and(|process| process.is_gone()) => {
                Signal::Lost(Failure { kind: FailureKind::Crashed, ..failure })
            }
            other => other,
        }
    }

    /// Whether a message may name the model.
    pub fn takes_models(&self) -> bool {
        self.process.is_none()
    }

    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref()?.pid()
    }
}

impl A2aDriver {
    /// `a2a` is how the profile or the configuration says that the server is reached.
    pub fn new(setup: DriverSetup, a2a: A2a) -> Self {
        let shared = Shared {
            setup,
            a2a,
            running: Mutex::default(),
            next: AtomicU64::new(1),
            idle: Notify::new(),
            facts: Mutex::default(),
            servers: Servers::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What the server says of itself.
    pub async fn greet(&self) -> Result<AgentFacts, Failure> {
        let facts = self.lease(&Principal::new("nobody")).await.map(|lease| lease.card.facts.clone());
        self.shared.servers.stop().await;
        facts
    }

    async fn lease(&self, principal: &Principal) -> Result<Arc<Lease>, Failure> {
        let shared = &self.shared;
        let lease = match (&shared.a2a.address, &shared.a2a.server) {
            (Some(address), _) => self.at_address(address.clone()).await?,
            (None, Some(how)) => {
                let process = shared.servers.lease(principal, &shared.setup, how).await?;
                let (server, card) = (Arc::clone(&process.server), Arc::clone(&process.card));
                Lease { server, card, process: Some(process), shared: Arc::clone(shared) }
            }
            (None, None) => {
                let text = format!("agent `{}` has no `url`; name the A2A server", shared.setup.profile.name);
                return Err(Failure::new(FailureKind::Unsupported, text));
            }
        };
        *lock(&shared.facts) = Some(lease.card.facts.clone());
        Ok(Arc::new(lease))
    }

    async fn at_address(&self, address: Uri) -> Result<Lease, Failure> {
        let shared = &self.shared;
        let agent = &shared.setup.profile.name;
        let environment = &shared.setup.environment;
        let key = match &shared.a2a.key_variable {
            Some(variable) => {
                let key = environment.get(variable).filter(|key| !key.is_empty()).ok_or_else(|| {
                    let text = format!("agent `{agent}` needs `{variable}` for its key, which is not set; set it");
                    Failure::new(FailureKind::NeedsLogin, text)
                })?;
                Some(key.as_str())
            }
            None => None,
        };
        // By the name under which an environment would have it, so that it is hidden in what the server says.
        let known = key.map(|key| ("KEY".into(), key.into())).into_iter().collect();
        let secrets = Secrets::of(&Environment::inherit(known));
        let server = Server::new(address, key, secrets).map_err(|trouble| trouble.failure(agent))?;
        let card = card::fetch(&server, Addressing::ByCard).await.map_err(|trouble| trouble.failure(agent))?;
        Ok(Lease { server: Arc::new(server), card: Arc::new(card), process: None, shared: Arc::clone(shared) })
    }

    /// A folder that tells the server of a client's tools, where a session has some.
    fn session_folder(&self, servers: &[ToolServer]) -> Result<Option<PrivateDir>, Failure> {
        let (Some(how), false) = (&self.shared.a2a.server, servers.is_empty()) else { return Ok(None) };
        let setup = &self.shared.setup;
        let SessionSettings::Gemini = how.session_settings;
        let written = || {
            let folder = PrivateDir::create(&setup.private, &setup.profile.name)?;
            server_process::stop_search_for_settings(folder.path())?;
            let settings = encode::gemini_settings(servers, setup.profile.mcp.call_seconds).to_string();
            std::fs::write(folder.path().join(".gemini/settings.json"), settings)?;
            Ok(folder)
        };
        written().map(Some).map_err(|error| no_folder(setup, &error))
    }

    async fn opened(&self, spec: SessionSpec) -> Result<Opened, Failure> {
        let setup = &self.shared.setup;
        let agent: Arc<str> = setup.profile.name.as_str().into();
        if setup.audience == Audience::Guests {
            let text = format!("agent `{agent}` is an A2A server and serves admin keys only");
            return Err(Failure::new(FailureKind::Forbidden, text));
        }
        if let Some(mode) = &spec.mode {
            let text = format!("agent `{agent}` has no mode `{}`; leave it out", mode.escape_debug());
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        if let Some(model) = spec.model.as_ref().filter(|_| self.shared.a2a.address.is_none()) {
            let text = format!("agent `{agent}` chooses its model itself; leave `{}` out", model.escape_debug());
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        let workspace = spec.workspace.or_else(|| setup.workspace.clone());
        let takes_tools = self.shared.a2a.address.is_none() && workspace.is_none();
        if !spec.tool_servers.is_empty() && !takes_tools {
            let text = format!("agent `{agent}` takes no tools of a client here; leave them out");
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        let jail = workspace.as_deref().map(|folder| Jail::open(folder, JailLimits::default())).transpose();
        let jail = jail.map_err(|error| {
            Failure::new(FailureKind::Unsupported, format!("the workspace cannot be opened: {error}"))
        })?;
        let lease = self.lease(&spec.principal).await?;
        let folder = self.session_folder(&spec.tool_servers)?;
        let works_in = match (&lease.process, &folder) {
            (None, _) => None,
            (Some(_), Some(folder)) => Some(folder.path().to_owned()),
            (Some(process), None) => Some(workspace.unwrap_or_else(|| process.empty_folder())),
        };
        let chosen = setup.model.as_deref().or(setup.profile.model.default.as_deref());
        let model = spec.model.or_else(|| chosen.map(Into::into));
        let terms = Terms {
            model: model.clone(),
            slash: spec.slash,
            of_task: works_in.map_or_else(|| json!({}), |folder| of_task(&folder)),
            cancel_by: self.shared.a2a.cancel,
            jail,
            _folder: folder,
        };
        let (sink, signals) = mpsc::channel(SIGNALS);
        Ok(Opened {
            agent: Box::new(A2aSession::new(agent, lease, terms, sink)),
            signals,
            facts: SessionFacts { model, ..facts(setup) },
            // The server names its conversation when it gets the first message; a new one is told what was said.
            agent_session: SessionId::new().to_string().into(),
            resumed: false,
            forgets_cut_turns: false,
        })
    }
}

/// The first message of a task says where it works.
fn of_task(folder: &Path) -> Value {
    json!({ "coderAgent": { "kind": "agent-settings", "workspacePath": folder } })
}

fn facts(setup: &DriverSetup) -> SessionFacts {
    let named = |id: &String| Model { id: id.as_str().into(), name: id.as_str().into(), description: None };
    SessionFacts { models: setup.profile.model.known.iter().map(named).collect(), ..SessionFacts::default() }
}

impl Driver for A2aDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(self.opened(spec))
    }

    fn facts(&self) -> Option<AgentFacts> {
        lock(&self.shared.facts).clone()
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
                    break;
                }
                running.iter().for_each(CancellationToken::cancel);
                idle.await;
            }
            self.shared.servers.stop().await;
        })
    }
}

impl ManagedDriver for A2aDriver {
    fn processes(&self) -> Vec<ProcessStatus> {
        self.shared.servers.statuses()
    }

    fn pools(&self) -> Vec<PoolStatus> {
        Vec::new()
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
