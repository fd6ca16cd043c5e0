//! What the operator sees and changes over HTTP: the same files that the commands change, and what runs now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gembridge_api::acp::Acp;
use gembridge_api::admin::operator::{
    AgentStatus, Circuit, KeyEntry, Operations, Origins, ProcessStatus, QueueStatus, SessionCounts, Status,
};
use gembridge_api::guard::Guard;
use gembridge_api::identity::Rank;
use gembridge_api::problem::{Kind, Problem};
use gembridge_core::model::AgentName;
use gembridge_core::session::Sessions;

use super::agents::Served;
use super::tenant_driver::TenantDriver;
use crate::config::{ConfigError, Folders};
use crate::keys::{self, FileKeys, KeyFile, KeyLimits, StoredRank};
use crate::origins::{self, OriginFile};

pub struct Operator {
    started: Instant,
    agents: Vec<(AgentName, String, Arc<TenantDriver>)>,
    folders: Folders,
    guard: Arc<Guard>,
    keys: Arc<FileKeys>,
    acp: Arc<Acp>,
    sessions: Arc<Sessions>,
}

/// The parts that a gateway is made of, as far as its operator looks into them.
pub struct Parts<'a> {
    pub served: &'a [Served],
    pub folders: &'a Folders,
    pub guard: &'a Arc<Guard>,
    pub keys: &'a Arc<FileKeys>,
    pub acp: &'a Arc<Acp>,
    pub sessions: &'a Arc<Sessions>,
}

impl Operator {
    pub fn new(parts: &Parts<'_>) -> Self {
        let agent =
            |served: &Served| (served.name.clone(), served.agent.profile.title.clone(), Arc::clone(&served.driver));
        Self {
            started: Instant::now(),
            agents: parts.served.iter().map(agent).collect(),
            folders: parts.folders.clone(),
            guard: Arc::clone(parts.guard),
            keys: Arc::clone(parts.keys),
            acp: Arc::clone(parts.acp),
            sessions: Arc::clone(parts.sessions),
        }
    }

    fn session_counts(&self) -> SessionCounts {
        let mut counts = SessionCounts::default();
        for status in self.sessions.statuses() {
            counts.live += 1;
            counts.running += usize::from(status.is_running());
            counts.waiting += usize::from(status.is_waiting());
        }
        counts
    }
}

impl Operations for Operator {
    fn status(&self) -> Status {
        let queue = |(agent, line): (&AgentName, gembridge_core::admission::AdmissionStatus)| QueueStatus {
            agent: agent.as_str().to_owned(),
            running: line.running,
            waiting: line.waiting,
        };
        let mut queues: Vec<_> = self.sessions.queues().map(queue).collect();
        queues.sort_by(|one, other| one.agent.cmp(&other.agent));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_ms: millis(self.started.elapsed()),
            agents: self.agents.iter().map(agent).collect(),
            queues,
            sessions: self.session_counts(),
            connections: self.acp.connections(),
        }
    }

    fn origins(&self) -> Result<Origins, Problem> {
        let file = OriginFile::load(&self.folders).map_err(|error| problem(&error))?;
        Ok(Origins { allowed: file.origins(), refused: self.guard.refused_origins() })
    }

    fn allow_origin(&self, origin: &str) -> Result<String, Problem> {
        let allowed = changed(|| origins::allow(&self.folders, origin))?;
        // The gateway looks at the file every second, whoever wrote it.
        self.guard.forget_refusals(&allowed);
        tracing::info!(target: "gembridge::audit", origin = allowed, "an origin was allowed");
        Ok(allowed)
    }

    fn remove_origin(&self, origin: &str) -> Result<String, Problem> {
        let removed = changed(|| origins::remove(&self.folders, origin))?;
        tracing::info!(target: "gembridge::audit", origin = removed, "an origin was removed");
        Ok(removed)
    }

    fn keys(&self) -> Result<Vec<KeyEntry>, Problem> {
        let file = KeyFile::load(&self.folders).map_err(|error| problem(&error))?;
        let entry = |entry: &crate::keys::Entry| KeyEntry {
            name: entry.name.clone(),
            rank: match entry.rank {
                StoredRank::Admin => "admin",
                StoredRank::User => "user",
            },
            created_at: entry.created.to_string(),
        };
        Ok(file.entries().iter().map(entry).collect())
    }

    fn create_key(&self, name: &str, rank: Rank) -> Result<String, Problem> {
        let rank = match rank {
            Rank::Admin => StoredRank::Admin,
            Rank::User => StoredRank::User,
        };
        let key = changed(|| keys::create(&self.folders, name, rank, KeyLimits::default()))?;
        self.keys.reread();
        tracing::info!(target: "gembridge::audit", name, "a key was made");
        Ok(key.expose().to_owned())
    }

    fn rotate_key(&self, name: &str) -> Result<String, Problem> {
        let key = changed(|| keys::rotate(&self.folders, name))?;
        self.keys.reread();
        tracing::info!(target: "gembridge::audit", name, "a key got another secret");
        Ok(key.expose().to_owned())
    }

    fn revoke_key(&self, name: &str) -> Result<(), Problem> {
        changed(|| keys::revoke(&self.folders, name))?;
        self.keys.reread();
        tracing::info!(target: "gembridge::audit", name, "a key was revoked");
        Ok(())
    }
}

/// A change waits for the disk and for other writers, which must not hold up what else runs on this thread.
fn changed<T>(change: impl FnOnce() -> Result<T, ConfigError>) -> Result<T, Problem> {
    tokio::task::block_in_place(change).map_err(|error| problem(&error))
}

fn agent((name, title, driver): &(AgentName, String, Arc<TenantDriver>)) -> AgentStatus {
    let pools: Vec<_> = driver.pools().collect();
    let retry_after = pools.iter().filter_map(|pool| pool.retry_after).min();
    let processes: Vec<_> = driver.processes().iter().map(process).collect();
    let spares = pools.iter().map(|pool| pool.spares).sum();
    let state = match retry_after {
        Some(_) => "failing",
        None if spares == 0 && processes.is_empty() && pools.iter().any(|pool| pool.making > 0) => "starting",
        None => "ready",
    };
    AgentStatus {
        name: name.as_str().to_owned(),
        title: title.clone(),
        state,
        processes,
        spares,
        restarts: pools.iter().map(|pool| pool.failures).sum(),
        circuit: Circuit { open: retry_after.is_some(), retry_after_ms: retry_after.map(millis) },
    }
}

/// What was wrong with the wish is the caller's to know; what is wrong with the disk is in the log.
fn problem(error: &ConfigError) -> Problem {
    match error {
        ConfigError::Invalid(message) => Problem::new(Kind::Invalid, message.clone()),
        ConfigError::Locked { .. } => Problem::new(
            Kind::Unavailable { retry_after: Duration::from_secs(5) },
            "another process changes the file; try again",
        ),
        other => {
            tracing::error!(error = %other, "a file of the gateway cannot be changed");
            Problem::new(Kind::Internal, "the file cannot be changed now; the log says why")
        }
    }
}

fn process(process: &gembridge_drivers::setup::ProcessStatus) -> ProcessStatus {
    let usage = process.pid.and_then(gembridge_process::usage);
    ProcessStatus {
        pid: process.pid,
        uptime_ms: usage.map(|usage| millis(usage.uptime)),
        sessions: process.sessions,
        rss_kb: usage.map(|usage| usage.resident / 1024),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
