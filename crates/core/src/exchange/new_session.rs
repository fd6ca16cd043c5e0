//! Sessions that a request needs, and those in which nothing came to be said.

use std::sync::Arc;

use super::Exchanges;
use super::conversations::Owner;
use crate::driver::SlashCommands;
use crate::error::Error;
use crate::session::{NewSession, SessionHandle};

impl Exchanges {
    pub(super) async fn create(&self, owner: &Owner) -> Result<SessionHandle, Error> {
        let new = NewSession {
            principal: owner.principal.clone(),
            agent: owner.agent.clone(),
            workspace: None,
            model: owner.model.clone(),
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        self.sessions.create(new).await
    }

    /// Deletes a session in which nothing was said, beside whatever else happens.
    pub(super) fn discard(self: &Arc<Self>, unused: SessionHandle) {
        let app = Arc::clone(self);
        self.tasks.spawn(async move {
            let deleted = match unused.close().await {
                // At the end of the gateway it is closed before it comes here.
                Ok(()) | Err(Error::Closed) => app.sessions.store().delete(unused.id()).await.map_err(Error::Store),
                Err(error) => Err(error),
            };
            if let Err(error) = deleted {
                tracing::debug!(session = %unused.id(), %error, "an unused session is left behind");
            }
        });
    }
}
