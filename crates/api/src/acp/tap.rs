//! A tap: sees every message of this face, in both directions.

use gembridge_core::model::{ClientId, Timestamp};

/// Whoever embeds this crate, or the operator, and wants to see the traffic.
///
/// Called in the task of the connection, for each message in order: it must not block.
pub trait Tap: Send + Sync {
    fn message(&self, tapped: &Tapped<'_>);
}

/// One message on its way.
#[derive(Clone, Copy, Debug)]
pub struct Tapped<'a> {
    pub direction: Direction,
    pub client: ClientId,
    /// The name of the session, where the message is about one.
    pub session: Option<&'a str>,
    pub at: Timestamp,
    /// The whole message, as it is sent.
    pub message: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To a client: what the agent did, or what we answer in its place.
    Agent,
    /// From a client.
    Client,
}

impl Direction {
    /// The kind of the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent:message",
            Self::Client => "client:message",
        }
    }
}
