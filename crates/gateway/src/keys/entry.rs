//! One key, as the file has it.

use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, Key};
use gembridge_core::admission::Share;
use gembridge_core::model::Principal;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::{BEARER, OPERATOR};
use crate::config::ConfigError;
use crate::config::entries;
use crate::config::value::Count;

/// What is known of a key.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub name: String,
    pub(super) digest: StoredDigest,
    pub rank: StoredRank,
    /// Since when its secret is good.
    pub created: jiff::Timestamp,
    /// Whose the sessions are that are begun with it. Made with the key and kept when its secret is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<OwnerId>,
    #[serde(skip_serializing_if = "KeyLimits::is_empty")]
    pub limits: KeyLimits,
}

/// What one key gets of the agents. What is left out is as for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimits {
    /// Turns that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Count>,
    /// Requests that may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Count>,
    /// Higher ones go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum StoredRank {
    /// Sees every session.
    Admin,
    /// Sees its own sessions.
    User,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StoredDigest(pub(super) Digest);

impl Serialize for StoredDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_hex())
    }
}

/// The name that a key was made with, `#`, and 128 random bits: no name of a key holds a `#`, and no two keys that are
/// made share an owner.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct OwnerId(String);

impl OwnerId {
    const DIGITS: usize = 32;

    pub(super) fn fresh(name: &str) -> Result<Self, ConfigError> {
        let random = fresh_key()?.digest().to_hex();
        Ok(Self(format!("{name}#{}", &random[..Self::DIGITS])))
    }

    fn decode(text: &str) -> Option<Self> {
        let (name, random) = text.split_once('#')?;
        let is_random = random.len() == Self::DIGITS && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        (check_name(name).is_ok() && is_random).then(|| Self(text.to_owned()))
    }
}

impl KeyLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn share(self) -> Share {
        Share {
            priority: self.priority.unwrap_or_default(),
            running: self.turns.map(|turns| turns.0 as usize),
            waiting: self.queue.map(|queue| queue.0 as usize),
        }
    }
}

impl Entry {
    /// A key that was not there before, and its entry.
    pub(super) fn new(name: &str, rank: StoredRank, limits: KeyLimits) -> Result<(Key, Self), ConfigError> {
        let key = fresh_key()?;
        let entry = Self {
            name: name.to_owned(),
            digest: StoredDigest(key.digest()),
            rank,
            created: jiff::Timestamp::now(),
            owner: Some(OwnerId::fresh(name)?),
            limits,
        };
        Ok((key, entry))
    }

    /// Another secret for the same owner.
    pub(super) fn rotate(&mut self) -> Result<Key, ConfigError> {
        let key = fresh_key()?;
        self.digest = StoredDigest(key.digest());
        self.created = jiff::Timestamp::now();
        Ok(key)
    }

    pub(super) fn identity(&self) -> Identity {
        let rank = match self.rank {
            StoredRank::Admin => Rank::Admin,
            StoredRank::User => Rank::User,
        };
        Identity { principal: self.principal(), rank }
    }

    /// An entry of an earlier version has no owner: its sessions are kept under its name.
    fn principal(&self) -> Principal {
        Principal::new(self.owner.as_ref().map_or(self.name.as_str(), |owner| owner.0.as_str()))
    }

    /// What the fair queue must know of it, if it is treated otherwise than the rest.
    pub(super) fn share(&self) -> Option<(Principal, Share)> {
        (!self.limits.is_empty()).then(|| (self.principal(), self.limits.share()))
    }
}

impl entries::Entry for Entry {
    const LIST: &'static str = "keys";
    const WRITTEN_BY: &'static str = "gembridge keys create";

    fn decode(value: &Value) -> Result<Self, &'static str> {
        let table = value.as_table().ok_or("this key is not a table")?;
        let known = ["name", "digest", "rank", "created", "owner", "limits"];
        if table.keys().any(|field| !known.contains(&field.as_str())) {
            return Err("this key has a field that is not known here");
        }
        let text = |field: &str| table.get(field).and_then(Value::as_str);
        let name =
            text("name").filter(|name| check_name(name).is_ok()).ok_or("this key has no name that is allowed")?;
        let digest = text("digest").and_then(Digest::from_hex).ok_or("the digest is not 64 hexadecimal digits")?;
        let rank = match text("rank") {
            Some("admin") => StoredRank::Admin,
            Some("user") => StoredRank::User,
            _ => return Err("the rank of this key is neither `admin` nor `user`"),
        };
        let created = text("created").and_then(|text| text.parse().ok()).ok_or("`created` is not a time")?;
        let owner = match table.get("owner") {
            None => None,
            Some(owner) => Some(owner.as_str().and_then(OwnerId::decode).ok_or("the owner of this key is malformed")?),
        };
        let limits = match table.get("limits") {
            None => KeyLimits::default(),
            Some(limits) => limits.clone().try_into().map_err(|_| "the limits of this key are malformed")?,
        };
        Ok(Self { name: name.to_owned(), digest: StoredDigest(digest), rank, created, owner, limits })
    }

    fn marks(&self) -> Vec<String> {
        let owner = self.principal();
        vec![format!("name {}", self.name), format!("digest {}", self.digest.0.to_hex()), format!("owner {owner}")]
    }
}

fn fresh_key() -> Result<Key, ConfigError> {
    Key::generate().map_err(|error| {
        ConfigError::Invalid(format!("no randomness for a key: {error}; check that `/dev/urandom` can be read"))
    })
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.bytes().all(is_plain) {
        let shown = name.escape_debug();
        return Err(format!("`{shown}` is not a name for a key: up to 64 letters, digits and `._-@`"));
    }
    if [BEARER, OPERATOR].contains(&name) {
        return Err(format!("`{name}` is a name of gembridge's own; choose another for the key"));
    }
    Ok(())
}
