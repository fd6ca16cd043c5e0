//! The servers that we started: one for each principal, since no process is shared between two.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::model::{Failure, FailureKind, Principal};
use tokio::task::JoinSet;

use super::server_process::ServerProcess;
use crate::profile::A2aServer;
use crate::setup::{DriverSetup, ProcessStatus};

/// How often a server is looked after.
const LOOK: Duration = Duration::from_secs(30);
/// Principals that have a server at the same time.
const MOST: usize = 32;

pub(super) struct Servers {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    of: HashMap<Principal, Arc<Slot>>,
    /// One for each slot.
    monitors: JoinSet<()>,
    /// They were stopped on purpose, and stay so.
    is_stopped: bool,
}

#[derive(Default)]
struct Slot {
    /// Held while a server starts: whoever comes meanwhile waits for that one.
    server: tokio::sync::Mutex<Option<Arc<ServerProcess>>>,
}

impl Servers {
    pub fn new() -> Self {
        Self { slots: Mutex::default() }
    }

    /// The server of this principal, with room for one more task: the one that runs if it is healthy, else a new one.
    pub async fn lease(
        &self,
        principal: &Principal,
        setup: &DriverSetup,
        how: &A2aServer,
    ) -> Result<Arc<ServerProcess>, Failure> {
        let slot = self.slot(principal, setup, how)?;
        let mut server = slot.server.lock().await;
        if let Some(running) = &*server
            && running.is_healthy().await
            && !running.is_used_up(setup.profile.limits.recycle_after_turns)
        {
            return Ok(Arc::clone(running));
        }
        // One that is used up lives on until its last session is over.
        let started = Arc::new(ServerProcess::start(setup, how).await?);
        started.is_used_up(setup.profile.limits.recycle_after_turns);
        *server = Some(Arc::clone(&started));
        Ok(started)
    }

    fn slot(&self, principal: &Principal, setup: &DriverSetup, how: &A2aServer) -> Result<Arc<Slot>, Failure> {
        let mut slots = self.slots();
        if slots.is_stopped {
            return Err(Failure::new(FailureKind::ShuttingDown, "the gateway is going down"));
        }
        if let Some(slot) = slots.of.get(principal) {
            return Ok(Arc::clone(slot));
        }
        if slots.of.len() >= MOST {
            let text = format!("agent `{}` has servers for {MOST} keys, which is the most", setup.profile.name);
            return Err(Failure::new(FailureKind::LimitReached, text));
        }
        let slot = Arc::<Slot>::default();
        slots.of.insert(principal.clone(), Arc::clone(&slot));
        slots.monitors.spawn(look_after(Arc::clone(&slot), setup.clone(), how.clone()));
        Ok(slot)
    }

    pub fn statuses(&self) -> Vec<ProcessStatus> {
        let slots: Vec<_> = self.slots().of.values().cloned().collect();
        let status = |slot: Arc<Slot>| {
            // One that is just being started serves nobody yet.
            let held = slot.server.try_lock().ok()?;
            let running = held.as_ref().filter(|running| !running.is_gone())?;
            let sessions = u32::try_from(Arc::strong_count(running) - 1).unwrap_or(u32::MAX);
            Some(ProcessStatus { pid: running.pid(), sessions, condemned: false })
        };
        slots.into_iter().filter_map(status).collect()
    }

    /// Ends all of them, and resolves when they are gone.
    pub async fn stop(&self) {
        let slots: Vec<_> = {
            let mut slots = self.slots();
            slots.is_stopped = true;
            slots.monitors.abort_all();
            slots.of.drain().map(|(_, slot)| slot).collect()
        };
        for slot in slots {
            if let Some(running) = slot.server.lock().await.take() {
                running.stop().await;
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces a server that no longer answers, so that the next session does not wait for its start.
async fn look_after(slot: Arc<Slot>, setup: DriverSetup, how: A2aServer) {
    loop {
        tokio::time::sleep(LOOK).await;
        let mut server = slot.server.lock().await;
        let Some(running) = server.as_ref() else { continue };
        if running.is_healthy().await {
            continue;
        }
        tracing::warn!(agent = %setup.profile.name, pid = running.pid(), "an A2A server does not answer; starting another");
        running.stop().await;
        *server = match ServerProcess::start(&setup, &how).await {
            Ok(started) => Some(Arc::new(started)),
            Err(failure) => {
                tracing::warn!(agent = %setup.profile.name, %failure, "no A2A server runs");
                None
            }
        };
    }
}
