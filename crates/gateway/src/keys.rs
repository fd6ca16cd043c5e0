//! Who may use the gateway: `keys.toml` of the config folder. It holds digests, so that nobody who reads it can ask
//! with what stands there.

mod ring;

use std::path::{Path, PathBuf};

use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, Key};
use gembridge_core::fair::Share;
use gembridge_core::model::Principal;
use serde::{Deserialize, Serialize};

pub use ring::FileKeys;

use crate::config::private_file;
use crate::config::value::{Count, Secret};
use crate::config::{ConfigError, Folders};

/// The key of the first run.
pub const FIRST: &str = "admin";

/// The owner of `BEARER_TOKEN`. The file cannot name it, so neither can get the other's sessions.
pub const BEARER: &str = "bearer-token";

/// `gembridge run` and `chat` keep their sessions under this name.
const OPERATOR: &str = "operator";

/// Every key looks at all of them, on every request.
const MOST: usize = 1_000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    keys: Vec<Entry>,
}

/// What is known of a key. Its name is the owner of the sessions that are begun with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    digest: StoredDigest,
    pub rank: StoredRank,
    pub created: jiff::Timestamp,
    #[serde(default, skip_serializing_if = "KeyLimits::is_empty")]
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
struct StoredDigest(Digest);

impl Serialize for StoredDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_hex())
    }
}

impl<'de> Deserialize<'de> for StoredDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Not repeated: somebody may have put the key itself there.
        let wrong = || serde::de::Error::custom("`digest` is not 64 hexadecimal digits");
        Digest::from_hex(&text).map(Self).ok_or_else(wrong)
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
    fn identity(&self) -> Identity {
        let rank = match self.rank {
            StoredRank::Admin => Rank::Admin,
            StoredRank::User => Rank::User,
        };
        Identity { principal: Principal::new(self.name.as_str()), rank }
    }
}

/// The file, as it is on disk.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl KeyFile {
    /// A file that is not there holds no key.
    pub fn load(folders: &Folders) -> Result<Self, ConfigError> {
        Self::read(Self::path(folders))
    }

    pub fn path(folders: &Folders) -> PathBuf {
        folders.config.join("keys.toml")
    }

    fn read(path: PathBuf) -> Result<Self, ConfigError> {
        let file: File = private_file::read(&path, "gembridge keys create")?;
        for (place, entry) in file.keys.iter().enumerate() {
            let is_known = file.keys[..place].iter().any(|earlier| earlier.name == entry.name);
            let problem = check_name(&entry.name).err().or_else(|| is_known.then(|| taken(&entry.name)));
            if let Some(problem) = problem {
                return Err(ConfigError::Invalid(format!("`{}`: {problem}", path.display())));
            }
        }
        Ok(Self { path, entries: file.keys })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A new key, which is told once and kept as its digest.
    pub fn create(&mut self, name: &str, rank: StoredRank, limits: KeyLimits) -> Result<Key, ConfigError> {
        check_name(name).map_err(ConfigError::Invalid)?;
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(ConfigError::Invalid(taken(name)));
        }
        if self.entries.len() >= MOST {
            return Err(ConfigError::Invalid(format!("there are {MOST} keys already; revoke one first")));
        }
        let key = Key::generate().map_err(|error| {
            ConfigError::Invalid(format!("no randomness for a key: {error}; check that `/dev/urandom` can be read"))
        })?;
        self.entries.push(Entry {
            name: name.to_owned(),
            digest: StoredDigest(key.digest()),
            rank,
            created: jiff::Timestamp::now(),
            limits,
        });
        self.save()?;
        Ok(key)
    }

    pub fn revoke(&mut self, name: &str) -> Result<(), ConfigError> {
        let Some(place) = self.entries.iter().position(|entry| entry.name == name) else {
            let way_out = if name == BEARER {
                "it is `BEARER_TOKEN` in the environment, or `auth.bearer_token` in the settings; remove it there"
            } else {
                "`gembridge keys list` shows those that are"
            };
            return Err(ConfigError::Invalid(format!("key `{name}` is not known; {way_out}")));
        };
        self.entries.remove(place);
        self.save()
    }

    /// What the fair queue must know of those who are treated otherwise.
    pub fn shares(&self) -> impl Iterator<Item = (Principal, Share)> + '_ {
        let limited = self.entries.iter().filter(|entry| !entry.limits.is_empty());
        limited.map(|entry| (Principal::new(entry.name.as_str()), entry.limits.share()))
    }

    fn save(&self) -> Result<(), ConfigError> {
        let text = toml::to_string(&File { keys: self.entries.clone() })
            .map_err(|error| ConfigError::Invalid(format!("cannot write the keys: {error}")))?;
        private_file::write(&self.path, &text)
    }

    /// Every key with its owner, the operator's token among them.
    fn identities(&self, token: Option<&Secret>) -> Vec<(Digest, Identity)> {
        let of_file = self.entries.iter().map(|entry| (entry.digest.0, entry.identity()));
        let of_operator = token.map(|token| {
            let identity = Identity { principal: Principal::new(BEARER), rank: Rank::Admin };
            (Digest::of(token.reveal().as_bytes()), identity)
        });
        of_file.chain(of_operator).collect()
    }
}

/// Where the first key lies in plain text, for its owner.
pub fn first_key_path(folders: &Folders) -> PathBuf {
    folders.state.join("key")
}

/// Keeps the first key where its owner finds it again.
pub fn keep_first(key: &Key, path: &Path) -> Result<(), ConfigError> {
    private_file::write(path, &format!("{}\n", key.expose()))
}

/// Takes the plain text of the first key away, once it is good for nothing.
pub fn forget_first(folders: &Folders) -> Result<(), ConfigError> {
    let path = first_key_path(folders);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ConfigError::Unwritable { path, error }),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), String> {
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

fn taken(name: &str) -> String {
    format!("there is a key `{name}` already; choose another name, or run `gembridge keys revoke {name}` first")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(root: &Path) -> KeyFile {
        KeyFile::read(root.join("keys.toml")).unwrap()
    }

    #[test]
    fn s16_the_file_holds_digests_and_never_a_key() {
        let root = tempfile::tempdir().unwrap();
        let key = file(root.path()).create("ann", StoredRank::User, KeyLimits::default()).unwrap();
        let text = fs::read_to_string(root.path().join("keys.toml")).unwrap();
        assert!(!text.contains(key.expose()) && text.contains(&key.digest().to_hex()), "{text}");
        assert_eq!(file(root.path()).identities(None)[0].1.rank, Rank::User);
    }

    #[test]
    fn a_key_is_created_listed_and_revoked_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let mut keys = file(root.path());
        let limits = KeyLimits { turns: Some(Count(2)), priority: Some(5), queue: None };
        keys.create("ann", StoredRank::Admin, limits).unwrap();
        keys.create("bob", StoredRank::User, KeyLimits::default()).unwrap();
        assert!(keys.create("ann", StoredRank::User, limits).unwrap_err().to_string().contains("already"));
        let again = file(root.path());
        let names: Vec<_> = again.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["ann", "bob"]);
        let shares: Vec<_> = again.shares().collect();
        let expected = Share { priority: 5, running: Some(2), waiting: None };
        assert_eq!(shares, [(Principal::new("ann"), expected)]);
        keys.revoke("ann").unwrap();
        assert!(keys.revoke("ann").unwrap_err().to_string().contains("is not known"));
        assert!(keys.revoke(BEARER).unwrap_err().to_string().contains("BEARER_TOKEN"));
        assert_eq!(file(root.path()).entries().len(), 1);
    }

    #[test]
    fn a_name_that_would_be_somebody_elses_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "a b", "-x", "é", "a\nb", BEARER, OPERATOR, &"x".repeat(65)] {
            let made = file(root.path()).create(name, StoredRank::User, KeyLimits::default());
            assert!(made.is_err(), "{name}");
        }
    }

    #[test]
    fn s16_a_broken_file_is_an_error_that_does_not_repeat_it() {
        let root = tempfile::tempdir().unwrap();
        let entry = |name: &str, digest: &str| {
            format!("[[keys]]\nname = '{name}'\ndigest = '{digest}'\nrank = 'user'\ncreated = '2026-01-02T03:04:05Z'\n")
        };
        let good = "0".repeat(64);
        for text in [
            entry("ann", "gb-canary"),
            entry("a b", &good),
            entry("ann", &good) + &entry("ann", &good),
            entry(OPERATOR, &good),
            "keys = 'canary'\n".to_owned(),
            "canary = 1\n".to_owned() + &entry("ann", &good),
        ] {
            fs::write(root.path().join("keys.toml"), &text).unwrap();
            let error = KeyFile::read(root.path().join("keys.toml")).unwrap_err().to_string();
            assert!(error.contains("keys.toml") && !error.contains("gb-canary"), "{error}");
        }
    }
}
