//! Who sends a request, once the key is known, and the names under which requests and sessions are told apart.

use std::fmt;

use axum::http::HeaderName;
use gembridge_core::model::Principal;
use gembridge_core::session::Viewer;
use serde::Serialize;
use uuid::Uuid;

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

/// Names the session that answered; in a request, the one to go on with.
pub const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");

/// The number of a request: in its response, in every error, and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RequestId(Uuid);

impl RequestId {
    pub const LENGTH: usize = uuid::fmt::Hyphenated::LENGTH;

    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Its text, written into the given place.
    pub fn text<'a>(&self, place: &'a mut [u8; RequestId::LENGTH]) -> &'a str {
        self.0.hyphenated().encode_lower(place)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; Self::LENGTH]))
    }
}
