//! Sessions that wait for their next message hold a place in an agent's process. Stateless clients leave many behind:
//! those that were used longest ago leave the memory first. Their logs stay, and whoever comes back to one gets its
//! history told anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::model::AgentName;
use gembridge_core::session::{Description, SessionHandle, Sessions, TurnState};

use super::agents::Served;
use crate::config::settings::Settings;

/// How many processes full of waiting sessions an agent may have, and how many sessions in any case.
const PROCESSES: u32 = 4;
const AT_LEAST: usize = 16;

/// Often enough that a burst of new sessions meets no full table.
const PERIOD: Duration = Duration::from_millis(200);

pub struct Housekeeping {
    sessions: Arc<Sessions>,
    /// Waiting sessions that each agent may have.
    most: HashMap<AgentName, usize>,
}

impl Housekeeping {
    pub fn new(sessions: &Arc<Sessions>, served: &[Served], settings: &Settings) -> Self {
        let most = |served: &Served| match settings.limits.idle_sessions {
            Some(most) => most.0 as usize,
            None => ((PROCESSES * served.agent.profile.limits.sessions_per_process) as usize).max(AT_LEAST),
        };
        let most = served.iter().map(|served| (served.name.clone(), most(served))).collect();
        Self { sessions: Arc::clone(sessions), most }
    }

    /// Never resolves.
    pub async fn keep(&self) {
        let mut tick = tokio::time::interval(PERIOD);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.clear().await;
        }
    }

    async fn clear(&self) {
        let live = self.sessions.live();
        // Most of the time there is nothing to do, and nobody is asked.
        if live.len() <= self.most.values().copied().min().unwrap_or(usize::MAX) {
            return;
        }
        let mut waiting: HashMap<AgentName, Vec<(SessionHandle, Description)>> = HashMap::new();
        for session in live {
            // One that ends meanwhile needs no care.
            if let Ok(found) = session.describe().await
                && found.turn == TurnState::Idle
                && found.queued == 0
                && found.followers == 0
            {
                waiting.entry(found.record.agent.clone()).or_default().push((session, found));
            }
        }
        for (agent, mut sessions) in waiting {
            let most = self.most.get(&agent).copied().unwrap_or(AT_LEAST);
            let surplus = sessions.len().saturating_sub(most);
            if surplus == 0 {
                continue;
            }
            sessions.sort_by_key(|(_, found)| found.record.updated);
            for (session, _) in sessions.drain(..surplus) {
                if let Err(error) = session.close().await {
                    tracing::debug!(session = %session.id(), %error, "a waiting session did not close");
                }
            }
            tracing::debug!(%agent, closed = surplus, "sessions that waited longest left the memory");
        }
    }
}
