//! The driver: which server a session gets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, Failure, FailureKind, Model, SessionFacts, SessionId};
use gembridge_process::{Environment, PoolStatus, Secrets};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::card::{self, Card};
use super::http::Server;
use super::session::{A2aSession, Terms};
use crate::profile::A2a;
use crate::setup::{Audience, DriverSetup, ManagedDriver, ProcessStatus};
use crate::workspace::{Jail, JailLimits};

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
}

/// The server of one session.
pub(super) struct Lease {
    pub server: Arc<Server>,
    pub card: Arc<Card>,
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
        };
        Self { shared: Arc::new(shared) }
    }

    /// What the server says of itself.
    pub async fn greet(&self) -> Result<AgentFacts, Failure> {
        Ok(self.lease().await?.card.facts.clone())
    }

    async fn lease(&self) -> Result<Arc<Lease>, Failure> {
        let shared = &self.shared;
        let agent = &shared.setup.profile.name;
        let Some(address) = shared.a2a.address.clone() else {
            let text = format!("agent `{agent}` has no `url`; name the A2A server");
            return Err(Failure::new(FailureKind::Unsupported, text));
        };
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
        let card = card::fetch(&server).await.map_err(|trouble| trouble.failure(agent))?;
        *lock(&shared.facts) = Some(card.facts.clone());
        Ok(Arc::new(Lease { server: Arc::new(server), card: Arc::new(card), shared: Arc::clone(shared) }))
    }

    async fn opened(&self, spec: SessionSpec) -> Result<Opened, Failure> {
        let setup = &self.shared.setup;
        let agent: Arc<str> = setup.profile.name.as_str().into();
        if setup.audience == Audience::Guests {
            let text = format!("agent `{agent}` is an A2A server and serves admin keys only");
            return Err(Failure::new(FailureKind::Forbidden, text));
        }
        if !spec.tool_servers.is_empty() {
            let text = format!("agent `{agent}` is an A2A server and takes no tools of a client; leave them out");
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        if let Some(mode) = &spec.mode {
            let text = format!("agent `{agent}` has no mode `{}`; leave it out", mode.escape_debug());
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
        let workspace = spec.workspace.or_else(|| setup.workspace.clone());
        let jail = workspace.map(|folder| Jail::open(&folder, JailLimits::default())).transpose();
        let jail = jail.map_err(|error| {
            Failure::new(FailureKind::Unsupported, format!("the workspace cannot be opened: {error}"))
        })?;
        let lease = self.lease().await?;
        let chosen = setup.model.as_deref().or(setup.profile.model.default.as_deref());
        let model = spec.model.or_else(|| chosen.map(Into::into));
        let terms = Terms {
            model: model.clone(),
            slash: spec.slash,
            of_task: json!({}),
            cancel_by: self.shared.a2a.cancel,
            jail,
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
                    return;
                }
                running.iter().for_each(CancellationToken::cancel);
                idle.await;
            }
        })
    }
}

impl ManagedDriver for A2aDriver {
    fn processes(&self) -> Vec<ProcessStatus> {
        Vec::new()
    }

    fn pools(&self) -> Vec<PoolStatus> {
        Vec::new()
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
