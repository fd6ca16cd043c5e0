//! Who may use the gateway: `keys.toml` of the config folder. It holds digests, so that nobody who reads it can ask
//! with what stands there.

mod entry;
mod ring;
mod watch;

use std::path::{Path, PathBuf};

use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, Key};
use gembridge_core::admission::Share;
use gembridge_core::model::Principal;
use toml::Value;

pub use entry::{Entry, KeyLimits, StoredRank};
pub use ring::{FileKeys, Ranks};

use crate::config::entries::{self, Entries, Report};
use crate::config::private_file::{self, Contents};
use crate::config::value::Secret;
use crate::config::{ConfigError, Folders};
use entry::check_name;

/// The key of the first run.
pub const FIRST: &str = "admin";

/// The owner of `BEARER_TOKEN`. The file cannot name it, so neither can get the other's sessions.
pub const BEARER: &str = "bearer-token";

/// `gembridge run` and `chat` keep their sessions under this name.
const OPERATOR: &str = "operator";

/// A request is compared with every key.
const MOST: usize = 1_000;

/// A shorter token can be guessed.
const SHORTEST_TOKEN: usize = 32;

/// The file, as it is on disk.
#[derive(Clone, Debug)]
pub struct KeyFile(Entries<Entry>);

impl KeyFile {
    /// A file that is not there holds no key.
    pub fn load(folders: &Folders) -> Result<Self, ConfigError> {
        Entries::load(Self::path(folders)).map(Self)
    }

    pub fn path(folders: &Folders) -> PathBuf {
        folders.config.join("keys.toml")
    }

    fn of(path: PathBuf, contents: Contents) -> Result<Self, ConfigError> {
        Entries::of(path, contents).map(Self)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.0.good
    }

    /// What in it is damaged.
    pub fn reports(&self) -> Vec<Report> {
        self.0.reports()
    }

    /// What the fair queue must know of those who are treated otherwise.
    pub fn shares(&self) -> impl Iterator<Item = (Principal, Share)> + '_ {
        self.0.good.iter().filter_map(Entry::share)
    }

    /// Every key with its owner, the operator's token among them.
    fn identities(&self, token: Option<&Secret>) -> Vec<(Digest, Identity)> {
        let of_file = self.entries().iter().map(|entry| (entry.digest.0, entry.identity()));
        let of_operator = token.map(|token| {
            let identity = Identity { principal: Principal::new(BEARER), rank: Rank::Admin };
            (Digest::of(token.reveal().as_bytes()), identity)
        });
        of_file.chain(of_operator).collect()
    }
}

/// A new key, which is told once and kept as its digest.
pub fn create(folders: &Folders, name: &str, rank: StoredRank, limits: KeyLimits) -> Result<Key, ConfigError> {
    check_name(name).map_err(ConfigError::Invalid)?;
    entries::change(&KeyFile::path(folders), |keys: &mut Entries<Entry>| {
        if names(keys).any(|taken| taken == name) {
            return Err(ConfigError::Invalid(format!(
                "there is a key `{name}` already; choose another name, run `gembridge keys rotate {name}` for another \
                 secret, or `gembridge keys revoke {name}` first"
            )));
        }
        if keys.good.len() >= MOST {
            return Err(ConfigError::Invalid(format!("there are {MOST} keys already; revoke one first")));
        }
        let (key, entry) = Entry::new(name, rank, limits)?;
        keys.good.push(entry);
        Ok(key)
    })
}

/// Another secret for the same owner. The old one is good no more.
pub fn rotate(folders: &Folders, name: &str) -> Result<Key, ConfigError> {
    let key = entries::change(&KeyFile::path(folders), |keys: &mut Entries<Entry>| {
        if let Some(entry) = keys.good.iter_mut().find(|entry| entry.name == name) {
            return entry.rotate();
        }
        if names(keys).any(|damaged| damaged == name) {
            return Err(ConfigError::Invalid(format!(
                "the entry of key `{name}` is damaged; run `gembridge keys revoke {name}`, then create it again"
            )));
        }
        Err(unknown(name))
    })?;
    let first = first_key_path(folders);
    if name == FIRST && first.exists() {
        keep_first(&key, &first)?;
    }
    Ok(key)
}

/// Removes every entry of this name, damaged ones too, and every other that holds the same secret: none of them may
/// become good again by what is removed beside it.
pub fn revoke(folders: &Folders, name: &str) -> Result<(), ConfigError> {
    entries::change(&KeyFile::path(folders), |keys: &mut Entries<Entry>| {
        let is_named = |value: &Value| value.get("name").and_then(Value::as_str) == Some(name);
        let of_good = keys.good.iter().filter(|entry| entry.name == name).map(|entry| entry.digest.0);
        let of_damaged = keys.damaged.iter().filter(|damaged| is_named(&damaged.value));
        let secrets: Vec<_> = of_good.chain(of_damaged.filter_map(|damaged| digest_of(&damaged.value))).collect();
        let is_revoked = |digest: Option<Digest>| digest.is_some_and(|one| secrets.iter().any(|it| it.matches(&one)));
        let before = keys.good.len() + keys.damaged.len();
        keys.good.retain(|entry| entry.name != name && !is_revoked(Some(entry.digest.0)));
        keys.damaged.retain(|damaged| !is_named(&damaged.value) && !is_revoked(digest_of(&damaged.value)));
        if keys.good.len() + keys.damaged.len() == before {
            return Err(unknown(name));
        }
        Ok(())
    })?;
    if name == FIRST { forget_first(folders) } else { Ok(()) }
}

/// The names that stand in the file, those of damaged entries too.
fn names(keys: &Entries<Entry>) -> impl Iterator<Item = &str> {
    let of_damaged = keys.damaged.iter().filter_map(|damaged| damaged.value.get("name")?.as_str());
    keys.good.iter().map(|entry| entry.name.as_str()).chain(of_damaged)
}

fn digest_of(value: &Value) -> Option<Digest> {
    Digest::from_hex(value.get("digest")?.as_str()?)
}

fn unknown(name: &str) -> ConfigError {
    let way_out = if name == BEARER {
        "it is `BEARER_TOKEN` in the environment, or `auth.bearer_token` in the settings; change it there"
    } else {
        "`gembridge keys list` shows those that are"
    };
    ConfigError::Invalid(format!("key `{}` is not known; {way_out}", name.escape_debug()))
}

/// What is wrong with a token that is too short.
pub fn weak_token(token: Option<&Secret>) -> Option<String> {
    let length = token?.reveal().chars().count();
    (length < SHORTEST_TOKEN).then(|| {
        format!("`BEARER_TOKEN` has {length} characters and can be guessed; take {SHORTEST_TOKEN} or more random ones")
    })
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
fn forget_first(folders: &Folders) -> Result<(), ConfigError> {
    let path = first_key_path(folders);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ConfigError::Unwritable { path, error }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::value::Count;

    fn folders(root: &Path) -> Folders {
        Folders { config: root.join("config"), state: root.join("state"), cache: root.join("cache") }
    }

    fn make(folders: &Folders, name: &str) -> Key {
        create(folders, name, StoredRank::User, KeyLimits::default()).unwrap()
    }

    fn load(folders: &Folders) -> KeyFile {
        KeyFile::load(folders).unwrap()
    }

    fn names_of(folders: &Folders) -> Vec<String> {
        load(folders).entries().iter().map(|entry| entry.name.clone()).collect()
    }

    fn text(folders: &Folders) -> String {
        fs::read_to_string(KeyFile::path(folders)).unwrap()
    }

    #[test]
    fn s16_the_file_holds_digests_and_never_a_key() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let key = make(&folders, "ann");
        assert!(!text(&folders).contains(key.expose()) && text(&folders).contains(&key.digest().to_hex()));
        assert_eq!(load(&folders).identities(None)[0].1.rank, Rank::User);
    }

    #[test]
    fn a_key_is_created_listed_and_revoked_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let limits = KeyLimits { turns: Some(Count(2)), priority: Some(5), queue: None };
        create(&folders, "ann", StoredRank::Admin, limits).unwrap();
        make(&folders, "bob");
        let again = create(&folders, "ann", StoredRank::User, limits);
        assert!(again.unwrap_err().to_string().contains("already"));
        assert_eq!(names_of(&folders), ["ann", "bob"]);
        let shares: Vec<_> = load(&folders).shares().collect();
        assert_eq!(shares.len(), 1);
        assert_eq!(shares[0].1, Share { priority: 5, running: Some(2), waiting: None });
        assert_eq!(shares[0].0.name(), "ann");
        revoke(&folders, "ann").unwrap();
        assert!(revoke(&folders, "ann").unwrap_err().to_string().contains("is not known"));
        assert!(revoke(&folders, BEARER).unwrap_err().to_string().contains("BEARER_TOKEN"));
        assert_eq!(names_of(&folders), ["bob"]);
    }

    #[test]
    fn a_name_that_would_be_somebody_elses_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "a b", "-x", "é", "a\nb", "ann#0", BEARER, OPERATOR, &"x".repeat(65)] {
            let made = create(&folders(root.path()), name, StoredRank::User, KeyLimits::default());
            assert!(made.is_err(), "{name}");
        }
    }

    #[test]
    fn f11_every_new_key_has_an_owner_that_no_name_can_be_and_rotating_keeps_it() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let owner = |folders: &Folders| load(folders).identities(None)[0].1.principal.clone();
        let first = make(&folders, "ann");
        let of_first = owner(&folders);
        assert!(of_first.name() == "ann" && of_first.as_str() != "ann" && check_name(of_first.as_str()).is_err());
        let second = rotate(&folders, "ann").unwrap();
        assert!(!first.digest().matches(&second.digest()));
        assert_eq!(owner(&folders), of_first);
        assert!(rotate(&folders, "bob").unwrap_err().to_string().contains("is not known"));
        revoke(&folders, "ann").unwrap();
        make(&folders, "ann");
        assert_ne!(owner(&folders), of_first);
    }

    fn entry(name: &str, digest: &str) -> String {
        format!("[[keys]]\nname = '{name}'\ndigest = '{digest}'\nrank = 'user'\ncreated = '2026-01-02T03:04:05Z'\n")
    }

    #[test]
    fn s16_a_damaged_entry_is_reported_without_its_contents_and_can_be_revoked() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let good = "0".repeat(64);
        fs::create_dir(&folders.config).unwrap();
        for damaged in [
            entry("ann", "gb-canary"),
            entry("a canary", &good),
            entry(OPERATOR, &good),
            entry("ann", &good) + "canary = 1\n",
            entry("ann", &good).replace("'user'", "'canary'"),
            entry("ann", &good) + "owner = 'ann'\n",
            entry("ann", &good) + "owner = 'canary#0'\n",
            entry("ann", &good) + "[keys.limits]\nturns = 'canary'\n",
            "[[keys]]\ncanary\n".to_owned(),
            "canary = 1\n".to_owned(),
        ] {
            let bob = entry("bob", &"1".repeat(64));
            fs::write(KeyFile::path(&folders), damaged.clone() + &bob).unwrap();
            assert_eq!(names_of(&folders), ["bob"], "{damaged}");
            let reports = load(&folders).reports();
            assert!(!reports.is_empty(), "{damaged}");
            assert!(reports.iter().all(|report| !report.to_string().contains("canary")), "{reports:?}");
            if damaged.contains("'ann'\ndigest") {
                assert!(create(&folders, "ann", StoredRank::User, KeyLimits::default()).is_err(), "the name is taken");
                revoke(&folders, "ann").unwrap();
                assert!(load(&folders).reports().is_empty());
            }
            make(&folders, "carl");
            assert_eq!(names_of(&folders), ["bob", "carl"], "{damaged}");
        }
        fs::write(KeyFile::path(&folders), "keys = 'canary'\n").unwrap();
        assert!(!KeyFile::load(&folders).unwrap_err().to_string().contains("canary"));
    }

    #[test]
    fn f5_entries_that_share_a_name_a_secret_or_an_owner_count_for_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        fs::create_dir(&folders.config).unwrap();
        let (one, two) = ("0".repeat(64), "1".repeat(64));
        let owner = format!("owner = 'ann#{}'\n", "a".repeat(32));
        let bob = entry("bob", &"2".repeat(64));
        for (first, second) in [
            (entry("ann", &one), entry("ann", &two)),
            (entry("ann", &one), entry("ann", &one).replace("'user'", "'admin'")),
            (entry("ann", &one), entry("carl", &one)),
            (entry("ann", &one) + &owner, entry("carl", &two) + &owner),
        ] {
            fs::write(KeyFile::path(&folders), format!("{first}{bob}{second}")).unwrap();
            assert_eq!(names_of(&folders), ["bob"], "{first}{second}");
            assert_eq!(load(&folders).reports().len(), 2);
            revoke(&folders, "ann").unwrap();
            // What is left may be good again, but never with the secret that was revoked.
            let left = load(&folders).identities(None);
            let revoked = Digest::from_hex(&one).unwrap();
            assert!(left.iter().all(|(digest, _)| !digest.matches(&revoked)), "{first}{second}");
        }
        let ann = entry("ann", &one);
        fs::write(KeyFile::path(&folders), format!("{ann}{bob}{ann}{ann}")).unwrap();
        assert_eq!(names_of(&folders), ["ann", "bob"]);
        revoke(&folders, "ann").unwrap();
        assert_eq!(names_of(&folders), ["bob"]);
    }

    #[test]
    fn f17_a_token_of_fewer_than_32_characters_is_weak() {
        let token = |length: usize| Value::String("x".repeat(length)).try_into::<Secret>().unwrap();
        let weak = |length: usize| weak_token(Some(&token(length)));
        assert!(weak(31).unwrap().contains("31 characters"));
        assert!(weak(32).is_none() && weak_token(None).is_none());
    }
}
