//! Who sends a request, once the key is known.

use gembridge_core::model::Principal;
use gembridge_core::session::Viewer;

/// The owner of the key that a request carries. Put into the request by the guard, read by every route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub principal: Principal,
    pub rank: Rank,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The operator: sees every session, and what belongs to the gateway itself.
    Admin,
    /// Sees its own sessions.
    User,
}

impl Identity {
    /// Whose sessions it may see.
    pub fn viewer(&self) -> Viewer {
        match self.rank {
            Rank::Admin => Viewer::Admin,
            Rank::User => Viewer::Principal(self.principal.clone()),
        }
    }
}

/// The number of a request: in its response, in every error, and in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);
