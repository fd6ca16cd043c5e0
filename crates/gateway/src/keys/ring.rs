//! The keys of a running gateway: those of the file as it is now, and the operator's token.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, KeyRing, KeyTable};
use gembridge_core::admission::Shares;
use gembridge_core::model::Principal;
use tokio::sync::watch;

use super::{KeyFile, OPERATOR};
use crate::config::entries::Reported;
use crate::config::private_file::{self, Stamp};
use crate::config::value::Secret;
use crate::config::{ConfigError, Folders};

/// A key that was revoked must fail on the very next request, whoever wrote the file. While nobody watches the file, every
/// request looks whether it is still the one that was read.
pub struct FileKeys {
    pub(super) path: PathBuf,
    is_watched: AtomicBool,
    table: KeyTable,
    shares: Shares,
    known: Mutex<Known>,
    reported: Reported,
}

/// Every owner who has a good key, and its rank.
pub type Ranks = Arc<HashMap<Principal, Rank>>;

struct Known {
    stamp: Stamp,
    token: Option<Secret>,
    ranks: Ranks,
}

fn ranks(identities: &[(Digest, Identity)]) -> Ranks {
    Arc::new(identities.iter().map(|(_, identity)| (identity.principal.clone(), identity.rank)).collect())
}

impl FileKeys {
    pub fn open(folders: &Folders, token: Option<Secret>) -> Result<Self, ConfigError> {
        let path = KeyFile::path(folders);
        let contents = private_file::read(&path)?;
        let stamp = contents.stamp;
        let file = KeyFile::of(path.clone(), contents)?;
        let reported = Reported::default();
        reported.warn(&file.reports());
        let identities = file.identities(token.as_ref());
        let known = Mutex::new(Known { stamp, token, ranks: ranks(&identities) });
        let shares = file.shares().collect();
        Ok(Self { path, is_watched: AtomicBool::new(false), table: KeyTable::new(identities), shares, known, reported })
    }

    /// What the fair queues must know of those who are treated otherwise, now and later.
    pub fn shares(&self) -> Shares {
        self.shares.clone()
    }

    /// Whether somebody calls [`FileKeys::refresh`] after each change of the file.
    pub(super) fn set_watched(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Release);
    }

    /// Reads the file again if it is not the one that is known. One that cannot be read changes nothing.
    pub fn refresh(&self) {
        let mut known = self.known();
        let stamp = Stamp::of(&self.path);
        if stamp != known.stamp {
            self.read(&mut known, stamp);
        }
    }

    /// Reads the file after a change of our own, whether it looks changed or not.
    pub fn reread(&self) {
        let mut known = self.known();
        self.read(&mut known, Stamp::of(&self.path));
    }

    /// Takes another token, and reads the file whether it changed or not.
    pub fn reload(&self, token: Option<Secret>) {
        let mut known = self.known();
        known.token = token;
        self.read(&mut known, Stamp::of(&self.path));
    }

    /// Whether this owner of sessions is the operator: by an admin key, or on the command line.
    pub fn is_operator(&self, principal: &Principal) -> bool {
        principal.as_str() == OPERATOR || self.known().ranks.get(principal) == Some(&Rank::Admin)
    }

    /// Who has a good key now.
    pub fn ranks(&self) -> Ranks {
        Arc::clone(&self.known().ranks)
    }

    /// Whether anybody but the operator has a key.
    pub fn has_users(&self) -> bool {
        self.known().ranks.values().any(|rank| *rank == Rank::User)
    }

    /// `stamp` is how the file looked before.
    fn read(&self, known: &mut Known, stamp: Stamp) {
        // One that cannot be read is not tried again until it looks different.
        known.stamp = stamp;
        let read = private_file::read(&self.path).and_then(|contents| {
            known.stamp = contents.stamp;
            KeyFile::of(self.path.clone(), contents)
        });
        match read {
            // We never leave it so: somebody else is about to write it. What they wrote is seen as another change.
            Ok(file) if file.0.is_empty_file() && known.stamp != Stamp::Missing => {
                tracing::warn!("the file of the keys is empty; the keys stay as they were");
            }
            Ok(file) => {
                tracing::info!(keys = file.entries().len(), "the keys were read again");
                self.reported.warn(&file.reports());
                let identities = file.identities(known.token.as_ref());
                known.ranks = ranks(&identities);
                // Before the keys: one that is new is never used without its limits.
                self.shares.replace(file.shares().collect());
                self.table.replace(identities);
            }
            Err(error) => tracing::error!(%error, "the keys stay as they were"),
        }
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyRing for FileKeys {
    fn find(&self, digest: &Digest) -> Option<Identity> {
        if !self.is_watched.load(Ordering::Acquire) {
            self.refresh();
        }
        self.table.find(digest)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.table.changes()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{KeyLimits, StoredRank, create, revoke};
    use super::*;

    fn folders(root: &std::path::Path) -> Folders {
        Folders { config: root.join("config"), state: root.join("state"), cache: root.join("cache") }
    }

    #[test]
    fn s6_a_revoked_key_fails_at_the_next_look_and_a_new_one_works() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let ann = create(&folders, "ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = FileKeys::open(&folders, None).unwrap();
        let before = *ring.changes().borrow();
        assert!(ring.find(&ann.digest()).is_some());
        revoke(&folders, "ann").unwrap();
        assert!(ring.find(&ann.digest()).is_none());
        assert_ne!(*ring.changes().borrow(), before, "open streams are told");
        let bob = create(&folders, "bob", StoredRank::User, KeyLimits::default()).unwrap();
        assert!(ring.find(&bob.digest()).is_some());
    }

    /// Waits, by looking, until it is so.
    fn becomes(is_so: impl Fn() -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_so() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
    }

    #[test]
    fn s6_a_key_that_is_revoked_in_a_watched_file_fails_without_a_look_of_a_request() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let ann = create(&folders, "ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = Arc::new(FileKeys::open(&folders, None).unwrap());
        super::super::watcher::start(&ring).unwrap();
        assert!(ring.find(&ann.digest()).is_some());
        revoke(&folders, "ann").unwrap();
        becomes(|| ring.find(&ann.digest()).is_none());
        let bob = create(&folders, "bob", StoredRank::User, KeyLimits::default()).unwrap();
        becomes(|| ring.find(&bob.digest()).is_some());
        // The folder itself goes, and comes again.
        fs::rename(&folders.config, root.path().join("old")).unwrap();
        becomes(|| ring.find(&bob.digest()).is_none());
        fs::rename(root.path().join("old"), &folders.config).unwrap();
        becomes(|| ring.find(&bob.digest()).is_some());
    }

    #[test]
    fn a_file_that_breaks_keeps_the_keys_and_one_that_is_gone_revokes_them() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let ann = create(&folders, "ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = FileKeys::open(&folders, None).unwrap();
        for broken in ["[[keys", ""] {
            fs::write(KeyFile::path(&folders), broken).unwrap();
            assert!(ring.find(&ann.digest()).is_some(), "{broken}");
        }
        fs::remove_file(KeyFile::path(&folders)).unwrap();
        assert!(ring.find(&ann.digest()).is_none());
    }
}
