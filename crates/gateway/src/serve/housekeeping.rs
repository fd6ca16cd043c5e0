//! Sessions that wait for their next message take up room in an agent's process. Stateless clients leave many behind:
//! those that were used longest ago leave the memory first. Where somebody waits for a session of an agent, idle ones are
//! closed at the agent, followed or not. Their logs stay, and the agent that the next prompt opens is told what was said.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gembridge_api::identity::Rank;
use gembridge_core::error::Error;
use gembridge_core::model::{AgentName, Timestamp};
use gembridge_core::session::{Description, SessionHandle, SessionStatus, Sessions, TurnState};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::agents::{Served, waiting};
use super::idle::{Attached, Idle, choose};
use super::session_cap::SessionCap;
use crate::config::settings::Settings;
use crate::keys::FileKeys;

/// Never fewer than this.
const AT_LEAST: usize = 1;

/// How many are closed at once.
const AT_ONCE: usize = 64;

/// Often enough that a thousand new sessions a second meet no full table.
const PERIOD: Duration = Duration::from_millis(50);

/// How long those who wait may gather before idle sessions are closed for them.
const GATHERING: Duration = Duration::from_millis(5);

/// How long idle sessions may take to close before others are looked at. One that takes longer goes on closing.
const CLOSING: Duration = Duration::from_secs(2);

pub struct Housekeeping {
    sessions: Arc<Sessions>,
    keys: Arc<FileKeys>,
    /// Waiting sessions that each agent may have.
    most: HashMap<AgentName, usize>,
    caps: Vec<(AgentName, SessionCap)>,
    /// Told when somebody waits for a session of an agent.
    wanted: Arc<Notify>,
}

impl Housekeeping {
    pub fn new(
        sessions: &Arc<Sessions>,
        keys: &Arc<FileKeys>,
        served: &[Served],
        settings: &Settings,
        wanted: Arc<Notify>,
    ) -> Self {
        let most = |served: &Served| (served.name.clone(), waiting(settings, &served.agent));
        Self {
            sessions: Arc::clone(sessions),
            keys: Arc::clone(keys),
            most: served.iter().map(most).collect(),
            caps: served.iter().map(|served| (served.name.clone(), served.cap.clone())).collect(),
            wanted,
        }
    }

    /// Never resolves.
    pub async fn keep(&self) {
        let mut tick = tokio::time::interval(PERIOD);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => self.clear().await,
                () = self.wanted.notified() => tokio::time::sleep(GATHERING).await,
            }
            for (agent, cap) in &self.caps {
                self.make_room(agent, cap).await;
            }
        }
    }

    /// Closes an idle session at the agent for each one who waits for a session of it.
    async fn make_room(&self, agent: &AgentName, cap: &SessionCap) {
        let demands = cap.demands();
        if demands.is_empty() {
            return;
        }
        let chosen = choose(&demands, self.idle(agent), cap.by_key());
        if !chosen.is_empty() {
            tracing::debug!(%agent, wanted = demands.len(), closing = chosen.len(), "idle sessions give way");
            let closed = tokio::time::timeout(CLOSING, close(chosen.into_iter(), Followed::AtTheAgent)).await;
            if closed.is_err() {
                tracing::warn!(%agent, "idle sessions take long to close at their agent");
            }
        }
    }

    /// Sessions of this agent that have a process and are not at work, as they looked the last time that they changed.
    fn idle(&self, agent: &AgentName) -> Vec<Idle<SessionHandle>> {
        let idle = |session: SessionHandle| {
            let view = self.sessions.view(session.id())?;
            let is_idle = session.has_agent() && view.record.agent == *agent && seems_idle(view.status);
            let owner = view.record.principal.clone();
            is_idle.then(|| Idle {
                rank: if self.keys.is_operator(&owner) { Rank::Admin } else { Rank::User },
                attached: if view.watchers.count() > 0 { Attached::Yes } else { Attached::No },
                used: view.record.updated,
                session,
                owner,
            })
        };
        self.sessions.live().into_iter().filter_map(idle).collect()
    }

    async fn clear(&self) {
        for (agent, surplus) in self.surplus() {
            // Only those that shall go are asked: a thousand that stay, asked twenty times a second, would do little else.
            let mut leaving = described(surplus).await;
            leaving.retain(|(_, found)| found.turn == TurnState::Idle && found.queued == 0 && found.followers == 0);
            if !leaving.is_empty() {
                tracing::debug!(%agent, closing = leaving.len(), "sessions that waited longest leave the memory");
                close(leaving.into_iter().map(|(session, _)| session), Followed::Stay).await;
            }
        }
    }

    /// The sessions of each agent beyond those that may wait, as they looked the last time that they changed: the ones that
    /// were used longest ago.
    fn surplus(&self) -> Vec<(AgentName, Vec<SessionHandle>)> {
        let live = self.sessions.live();
        // Most of the time there is nothing to do.
        if live.len() <= self.most.values().copied().min().unwrap_or(usize::MAX) {
            return Vec::new();
        }
        let mut idle: HashMap<AgentName, Vec<(Timestamp, SessionHandle)>> = HashMap::new();
        for session in live {
            let Some(view) = self.sessions.view(session.id()) else { continue };
            if seems_idle(view.status) && view.watchers.count() == 0 {
                idle.entry(view.record.agent.clone()).or_default().push((view.record.updated, session));
            }
        }
        let surplus = idle.into_iter().map(|(agent, mut sessions)| {
            let most = self.most.get(&agent).copied().unwrap_or(AT_LEAST);
            let surplus = sessions.len().saturating_sub(most);
            sessions.sort_by_key(|(used, _)| *used);
            sessions.truncate(surplus);
            (agent, sessions.into_iter().map(|(_, session)| session).collect())
        });
        surplus.collect()
    }
}

/// As it looked the last time that it changed. What it says of itself is asked before it goes.
fn seems_idle(status: SessionStatus) -> bool {
    match status {
        SessionStatus::Live { turn, queued, .. } => turn == TurnState::Idle && queued == 0,
        SessionStatus::Stored => false,
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

/// What becomes of an idle session that a client follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Followed {
    Stay,
    /// It is closed at its agent and stays in memory.
    AtTheAgent,
}

/// Ends them, some at once: each waits for its agent and for the disk.
async fn close(mut sessions: impl Iterator<Item = SessionHandle>, followed: Followed) {
    let end = |session: SessionHandle| async move {
        let mut closed = session.retire().await;
        if matches!(closed, Err(Error::Busy { .. })) && followed == Followed::AtTheAgent {
            closed = session.release_agent().await;
        }
        if let Err(error) = closed {
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
