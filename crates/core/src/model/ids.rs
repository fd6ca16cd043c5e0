//! Identities. Each is a type of its own, so that none can stand in for another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One conversation, named the same in every API. Sorts by the time of its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(Uuid);

impl SessionId {
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id that a text writes as ours are written. Other programs use other ids in the same places, such as names and
    /// random UUIDs: those are none of ours.
    pub fn of_our_form(text: &str) -> Option<Self> {
        let id = Uuid::try_parse(text).ok().filter(|id| id.get_version_num() == 7)?;
        (text.len() == uuid::fmt::Hyphenated::LENGTH).then_some(Self(id))
    }

    pub(super) fn from_u128(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }

    pub(super) fn as_u128(self) -> u128 {
        self.0.as_u128()
    }

    /// As a store keeps it; these sort as the ids do.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl Default for SessionId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

/// The place of an entry in its session's log, from 1, without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first entry.
    pub const START: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The number of a turn in its session, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnId(pub u64);

/// A question of the agent that waits for an answer; unique in its session's log. Drivers number their own, see
/// [`Driver`](crate::driver::Driver).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AskId(pub u64);

/// One attached client of one API, for as long as it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub u64);

impl ClientId {
    /// One that no other client of any API has in this process. Logs of earlier processes may hold the same number.
    pub fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A tool call, as its agent named it. Unique in its session.
    ToolCallId
}
name! {
    /// A configured agent: the key of its profile.
    AgentName
}
name! {
    /// Whoever owns a session. Sessions and processes are never shared between two of them. What follows a `#` tells
    /// owners of one name apart.
    Principal
}

impl Principal {
    /// What people are shown.
    pub fn name(&self) -> &str {
        self.0.split_once('#').map_or(&self.0, |(name, _)| name)
    }
}
