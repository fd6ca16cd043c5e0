//! What the methods of the protocol do, each with everything it needs and nothing of the connection.

mod changes;
mod handshake;
mod live;
mod sessions;

use std::sync::Arc;

use gembridge_core::model::SessionId;
use gembridge_core::session::Viewer;

use super::Acp;
use crate::identity::Identity;

pub use changes::{extension, order};
pub use live::is_shown;

/// Who asks, and of what.
pub struct RequestContext {
    pub app: Arc<Acp>,
    pub identity: Identity,
    pub viewer: Viewer,
    pub connection_id: String,
    /// The session that the client's address names.
    pub named: Option<SessionId>,
}
