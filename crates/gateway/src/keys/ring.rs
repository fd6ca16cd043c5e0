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

use super::watch::{FolderWatch, Watched};
use super::{KeyFile, OPERATOR};
use crate::config::entries::Reported;
use crate::config::private_file::{self, Stamp};
use crate::config::value::Secret;
use crate::config::{ConfigError, Folders};

/// A key that was revoked must fail on the very next request, whoever wrote the file: so every request asks whether anything
/// changed in the folder, or, where that is not watched, whether the file is still the one that was read.
pub struct FileKeys {
    path: PathBuf,
    watch: Option<FolderWatch>,
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
        // Before the file is read: what changes from then on is told.
        let watch = FolderWatch::of(&path);
        let contents = private_file::read(&path)?;
        let stamp = contents.stamp;
        let file = KeyFile::of(path.clone(), contents)?;
        let reported = Reported::default();
        reported.warn(&file.reports());
        let identities = file.identities(token.as_ref());
        let known = Mutex::new(Known { stamp, token, ranks: ranks(&identities) });
        let shares = file.shares().collect();
        let is_watched = AtomicBool::new(watch.is_some());
        Ok(Self { path, watch, is_watched, table: KeyTable::new(identities), shares, known, reported })
    }

    /// What the fair queues must know of those who are treated otherwise, now and later.
    pub fn shares(&self) -> Shares {
        self.shares.clone()
    }

    /// Reads the file again if it may have changed.
    fn follow(&self) {
        let watch = self.watch.as_ref().filter(|_| self.is_watched.load(Ordering::Acquire));
        let Some(watch) = watch else { return self.refresh() };
        if !watch.has_events() {
            return;
        }
        let mut known = self.known();
        self.refresh_known(&mut known);
        // Only now, so that whoever asks meanwhile waits for the keys as they are; and once more for what came in between.
        if watch.take() == Watched::NoMore {
            tracing::warn!("the folder of the keys went away; every request looks at the file from now on");
            self.is_watched.store(false, Ordering::Release);
        }
        self.refresh_known(&mut known);
    }

    /// Reads the file again if it is not the one that is known. One that cannot be read changes nothing.
    pub fn refresh(&self) {
        self.refresh_known(&mut self.known());
    }

    fn refresh_known(&self, known: &mut Known) {
        let stamp = Stamp::of(&self.path);
        if stamp != known.stamp {
            self.read(known, stamp);
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
        self.follow();
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

    #[test]
    fn s6_a_key_is_revoked_at_once_while_the_folder_moves_and_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let ann = create(&folders, "ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = FileKeys::open(&folders, None).unwrap();
        assert!(ring.watch.is_some(), "there is a folder to watch");
        assert!(ring.find(&ann.digest()).is_some());
        fs::rename(&folders.config, root.path().join("old")).unwrap();
        assert!(ring.find(&ann.digest()).is_none());
        fs::rename(root.path().join("old"), &folders.config).unwrap();
        assert!(ring.find(&ann.digest()).is_some());
        revoke(&folders, "ann").unwrap();
        assert!(ring.find(&ann.digest()).is_none());
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
