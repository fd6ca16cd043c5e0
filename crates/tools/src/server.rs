//! The tool server as agents know it: what it says of itself, and whom it tells of a new list.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};
use rmcp::service::NotificationContext;
use rmcp::{RoleServer, ServerHandler};

use crate::calls::PendingCalls;

#[derive(Clone)]
pub struct Server {
    pub pending: Arc<PendingCalls>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("gembridge", env!("CARGO_PKG_VERSION")))
    }

    /// The versions that have sessions: only in one can an agent be told that its list has changed.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.pending.greet(context.peer);
    }
}
