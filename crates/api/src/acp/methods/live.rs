//! The live view: all sessions that a client may see, whoever began them, and the agents that there are.

use std::sync::Arc;

use gembridge_core::session::SessionView;
use serde_json::{Value, json};

use super::RequestContext;
use crate::acp::encode;
use crate::acp::error::Refusal;
use crate::acp::wire::SessionsWish;

const SESSIONS: usize = 200;
const MOST_SESSIONS: usize = 5_000;
/// Sessions that are looked at, at most about so many, for those that are shown.
const DEEPEST: usize = 100_000;

/// Sessions in which nothing was said are not worth a line.
pub fn is_shown(view: &SessionView) -> bool {
    view.record.title.is_some() || view.status.is_running() || view.watchers.count() > 0
}

impl RequestContext {
    pub async fn sessions(&self, wish: SessionsWish) -> Result<Value, Refusal> {
        let limit = wish.limit.unwrap_or(SESSIONS).min(MOST_SESSIONS);
        let wanted = wish.search.as_deref().map(str::to_lowercase).filter(|search| !search.is_empty());
        // A search looks at more than it shows.
        let views = self.shown(if wanted.is_some() { MOST_SESSIONS } else { limit }).await?;
        let is_wanted = |view: &SessionView| {
            let Some(wanted) = &wanted else { return true };
            let title = view.record.title.as_deref().unwrap_or_default().to_lowercase();
            title.contains(wanted.as_str())
                || view.record.agent.as_str().contains(wanted.as_str())
                || view.record.id.to_string().starts_with(wanted.as_str())
        };
        let shown = views.iter().filter(|view| is_wanted(view)).take(limit);
        let sessions: Vec<_> = shown.map(|view| encode::session_entry(view)).collect();
        Ok(json!({ "sessions": sessions }))
    }

    /// The newest sessions that are shown, so many if there are: those that are not shown take nobody's place.
    pub async fn shown(&self, wanted: usize) -> Result<Vec<Arc<SessionView>>, Refusal> {
        let mut depth = wanted;
        loop {
            let mut views = self.app.sessions().views(&self.viewer, depth).await?;
            let is_all = views.len() < depth;
            views.retain(|view| is_shown(view));
            if is_all || views.len() >= wanted || depth >= DEEPEST {
                views.truncate(wanted);
                return Ok(views);
            }
            depth = depth.saturating_mul(4);
        }
    }

    /// For a watcher that missed something.
    pub async fn all_sessions(&self) -> Vec<Value> {
        match self.shown(SESSIONS).await {
            Ok(views) => views.iter().map(|view| encode::session_entry(view)).collect(),
            Err(error) => {
                tracing::warn!(error = error.message, "the sessions cannot be listed");
                Vec::new()
            }
        }
    }

    pub async fn agents(&self) -> Value {
        self.app.parts.catalog.learn(&self.identity.principal).await;
        let driver =
            |name| self.app.sessions().agents().find(|(agent, _)| *agent == name).map(|(_, setup)| &setup.driver);
        let agents = self.app.parts.agents.iter().enumerate().map(|(at, card)| {
            let driver = driver(&card.name);
            let version = driver.and_then(|driver| driver.facts()).and_then(|facts| facts.version);
            let offers = driver.and_then(|driver| driver.offers());
            encode::agent_entry(card, version.as_deref(), offers.as_deref(), at == 0)
        });
        json!({ "agents": agents.collect::<Vec<_>>() })
    }
}
