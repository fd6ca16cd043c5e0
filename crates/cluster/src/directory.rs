//! Which gateway has which session: `session:{id}` → the id of the gateway, written once when the session is made.

use gembridge_core::BoxFuture;
use gembridge_core::directory::{Directory, DirectoryError, NodeId};
use gembridge_core::model::SessionId;

use crate::error::ClusterError;
use crate::membership::{Cluster, session_key};

/// Sessions that are told in one go.
const AT_ONCE: usize = 256;

impl Directory for Cluster {
    fn claim(&self, session: SessionId) -> BoxFuture<'_, Result<(), DirectoryError>> {
        Box::pin(async move {
            self.check_lease()?;
            let claim = self.claiming(session);
            self.link.ask(|mut redis| async move { claim.query_async::<()>(&mut redis).await }).await?;
            Ok(())
        })
    }

    fn elsewhere(&self, session: SessionId) -> BoxFuture<'_, Result<Option<NodeId>, DirectoryError>> {
        Box::pin(async move {
            let get = redis::Cmd::get(session_key(session));
            let owner: Option<String> =
                self.link.ask(|mut redis| async move { get.query_async(&mut redis).await }).await?;
            Ok(owner.and_then(|owner| read_owner(&owner)).filter(|owner| *owner != self.node))
        })
    }

    fn release(&self, session: SessionId) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let delete = redis::Cmd::del(session_key(session));
            let deleted = self.link.ask(|mut redis| async move { delete.query_async::<()>(&mut redis).await }).await;
            if let Err(error) = deleted {
                tracing::debug!(%session, %error, "a session that is gone stays in the directory until it expires");
            }
        })
    }
}

impl Cluster {
    /// Tells of sessions that this gateway has on its disk: Redis may have lost them. What another has stays its own.
    pub async fn announce(&self, sessions: impl IntoIterator<Item = SessionId>) -> Result<(), ClusterError> {
        let sessions: Vec<SessionId> = sessions.into_iter().collect();
        for some in sessions.chunks(AT_ONCE) {
            let mut claims = redis::pipe();
            for session in some {
                claims.add_command(self.claiming(*session)).ignore();
            }
            self.link.ask(|mut redis| async move { claims.query_async::<()>(&mut redis).await }).await?;
        }
        Ok(())
    }

    fn claiming(&self, session: SessionId) -> redis::Cmd {
        let mut set = redis::cmd("SET");
        set.arg(session_key(session)).arg(self.node.to_string()).arg("NX");
        if let Some(keep) = self.keep {
            set.arg("PX").arg(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
        }
        set
    }
}

/// The first word is the gateway's id; a newer version may write more behind it.
fn read_owner(text: &str) -> Option<NodeId> {
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_writes_behind_the_owner_is_passed_over() {
        let node = NodeId::fresh();
        assert_eq!(read_owner(&node.to_string()), Some(node));
        assert_eq!(read_owner(&format!("{node} 7 more")), Some(node));
        assert_eq!(read_owner("somebody"), None);
    }
}
