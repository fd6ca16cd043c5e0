//! A tap: sees every message of this frontend, in both directions.

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

/// The session that a message names.
pub(super) fn session_of(message: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        params: Option<super::wire::ForSession>,
    }
    serde_json::from_str::<Message>(message).ok()?.params.map(|params| params.session_id)
}

/// The message of the first text frame of ours, and what follows it. Other frames are skipped.
pub(super) fn split_frame(mut bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    loop {
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let (length, head) = match second {
            126 => (usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
            127 => (usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?, 10),
            short => (usize::from(short), 2),
        };
        let message = bytes.get(head..head + length)?;
        let rest = &bytes[head + length..];
        if first == 0x81 {
            return Some((message, rest));
        }
        bytes = rest;
    }
}
