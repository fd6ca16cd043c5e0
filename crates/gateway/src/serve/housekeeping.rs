//! Sessions that wait for their next message hold a place in an agent's process. Stateless clients leave many behind:
//! those that were used longest ago leave the memory first. Their logs stay, and whoever comes back to one gets its
//! history told anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::model::AgentName;
use gembridge_core::session::{Description, SessionHandle, Sessions, Standing, TurnState};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::agents::{Served, waiting};
use crate::config::settings::Settings;

/// Never fewer than this.
const AT_LEAST: usize = 1;

/// How many are closed at once.
const AT_ONCE: usize = 64;

/// Often enough that a burst of new sessions meets no full table.
const PERIOD: Duration = Duration::from_millis(200);

pub struct Housekeeping {
    sessions: Arc<Sessions>,
    /// Waiting sessions that each agent may have.
    most: HashMap<AgentName, usize>,
    /// Told when somebody waits for a place.
    wanted: Arc<Notify>,
}

impl Housekeeping {
    pub fn new(sessions: &Arc<Sessions>, served: &[Served], settings: &Settings, wanted: Arc<Notify>) -> Self {
        let most = |served: &Served| (served.name.clone(), waiting(settings, &served.agent));
        Self { sessions: Arc::clone(sessions), most: served.iter().map(most).collect(), wanted }
    }

    /// Never resolves.
    pub async fn keep(&self) {
        let mut tick = tokio::time::interval(PERIOD);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = self.wanted.notified() => {}
            }
            self.clear().await;
        }
    }

    async fn clear(&self) {
        // Those that work are left alone: a thousand of them, asked five times a second, would do little else.
        let mut live = self.sessions.live();
        live.retain(|session| self.sessions.view(session.id()).is_none_or(|view| seems_idle(view.standing)));
        // Most of the time there is nothing to do, and nobody is asked.
        if live.len() <= self.most.values().copied().min().unwrap_or(usize::MAX) {
            return;
        }
        let mut idle: HashMap<AgentName, Vec<(SessionHandle, Description)>> = HashMap::new();
        for (session, found) in described(live).await {
            if found.turn == TurnState::Idle && found.queued == 0 && found.followers == 0 {
                idle.entry(found.record.agent.clone()).or_default().push((session, found));
            }
        }
        for (agent, mut sessions) in idle {
            let most = self.most.get(&agent).copied().unwrap_or(AT_LEAST);
            let surplus = sessions.len().saturating_sub(most);
            if surplus > 0 {
                sessions.sort_by_key(|(_, found)| found.record.updated);
                sessions.truncate(surplus);
                tracing::debug!(%agent, closing = surplus, "sessions that waited longest leave the memory");
                close(sessions.into_iter().map(|(session, _)| session)).await;
            }
        }
    }
}

/// As it looked the last time that it changed. What it says of itself is asked before it goes.
fn seems_idle(standing: Standing) -> bool {
    match standing {
        Standing::Live { turn, queued, .. } => turn == TurnState::Idle && queued == 0,
        Standing::Stored => false,
    }
}

/// What they say of themselves. One that ends meanwhile needs no care.
async fn described(sessions: Vec<SessionHandle>) -> Vec<(SessionHandle, Description)> {
    let ask = |session: SessionHandle| async move {
        let found = session.describe().await;
        (session, found)
    };
    let asked: JoinSet<_> = sessions.into_iter().map(ask).collect();
    asked.join_all().await.into_iter().filter_map(|(session, found)| Some((session, found.ok()?))).collect()
}

/// Ends them, some at once: each waits for its agent and for the disk.
async fn close(mut sessions: impl Iterator<Item = SessionHandle>) {
    let end = |session: SessionHandle| async move {
        if let Err(error) = session.retire().await {
            tracing::debug!(session = %session.id(), %error, "a waiting session did not close");
        }
    };
    let mut closing: JoinSet<()> = sessions.by_ref().take(AT_ONCE).map(end).collect();
    while closing.join_next().await.is_some() {
        if let Some(next) = sessions.next() {
            closing.spawn(end(next));
        }
    }
}
