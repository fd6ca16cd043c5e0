//! Which gateway has the session that holds a history: a keyed hash of owner and history → the id of the gateway. Neither
//! texts nor names stand in Redis, nor anything that tells whether two cluster's histories are the same.

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::directory::{DirectoryError, HistoryIndex, NodeId};
use gembridge_core::exchange::{Mark, Owner};

use crate::keyed_hash::hash;
use crate::membership::{Cluster, history_key};

/// How long a history is found elsewhere than where it was said; after that it is told to a new session.
const KEEP: Duration = Duration::from_hours(6);

/// How long the end of an answer waits for its history to be noted.
const PATIENCE: Duration = Duration::from_millis(250);

/// The index of one cluster, for [`gembridge_core::exchange::Exchanges`].
pub struct Histories(pub Arc<Cluster>);

impl HistoryIndex for Histories {
    fn find(&self, owner: &Owner, history: Mark) -> BoxFuture<'_, Result<Option<NodeId>, DirectoryError>> {
        let get = redis::Cmd::get(self.0.name(owner, history));
        Box::pin(async move {
            let found: Option<String> =
                self.0.link.ask(|mut redis| async move { get.query_async(&mut redis).await }).await?;
            let Some(node) = found.and_then(|node| node.parse().ok()).filter(|node| *node != self.0.node) else {
                return Ok(None);
            };
            // Of one that is gone nobody can go on; the history is told to a new session.
            Ok(self.0.address(node).await.map(|_| node))
        })
    }

    fn remember(&self, owner: &Owner, history: Mark) -> BoxFuture<'static, ()> {
        let keep = u64::try_from(KEEP.as_millis()).unwrap_or(u64::MAX);
        let note = redis::Cmd::pset_ex(self.0.name(owner, history), self.0.node.to_string(), keep);
        let cluster = Arc::clone(&self.0);
        Box::pin(async move {
            let noting = cluster.link.ask(|mut redis| async move { note.query_async::<()>(&mut redis).await });
            match tokio::time::timeout(PATIENCE, noting).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a history was not noted for the other gateways"),
                Err(_) => tracing::debug!("a history was not noted in time for the other gateways"),
            }
        })
    }
}

impl Cluster {
    fn name(&self, owner: &Owner, history: Mark) -> String {
        let (principal, agent) = (owner.principal.as_str().as_bytes(), owner.agent.as_str().as_bytes());
        history_key(&hash(&self.histories, &[principal, agent, &history.to_bytes()]))
    }
}
