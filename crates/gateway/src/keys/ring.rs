//! The keys of a running gateway: those of the file as it is now, and the operator's token.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, KeyRing, KeyTable};
use gembridge_core::fair::Shares;
use gembridge_core::model::Principal;
use tokio::sync::watch;

use super::{KeyFile, OPERATOR};
use crate::config::private_file::Stamp;
use crate::config::value::Secret;
use crate::config::{ConfigError, Folders};

/// A key that was revoked must fail on the very next request, whoever wrote the file: so every request looks whether
/// the file is still the one that was read. That is one system call.
pub struct FileKeys {
    path: PathBuf,
    table: KeyTable,
    shares: Shares,
    known: Mutex<Known>,
}

struct Known {
    stamp: Stamp,
    token: Option<Secret>,
    admins: Vec<Principal>,
    has_users: bool,
}

impl Known {
    fn take(&mut self, identities: &[(Digest, Identity)]) {
        let (admins, users): (Vec<_>, Vec<_>) =
            identities.iter().map(|(_, identity)| identity).partition(|identity| identity.rank == Rank::Admin);
        self.admins = admins.into_iter().map(|identity| identity.principal.clone()).collect();
        self.has_users = !users.is_empty();
    }
}

impl FileKeys {
    pub fn open(folders: &Folders, token: Option<Secret>) -> Result<Self, ConfigError> {
        let path = KeyFile::path(folders);
        // The stamp first: a change between the two is then seen as one, and read again.
        let stamp = Stamp::of(&path);
        let file = KeyFile::read(path.clone())?;
        let identities = file.identities(token.as_ref());
        let mut known = Known { stamp, token, admins: Vec::new(), has_users: false };
        known.take(&identities);
        let shares = file.shares().collect();
        Ok(Self { path, table: KeyTable::new(identities), shares, known: Mutex::new(known) })
    }

    /// What the fair queues must know of those who are treated otherwise, now and later.
    pub fn shares(&self) -> Shares {
        self.shares.clone()
    }

    /// Reads the file again if it is not the one that is known. One that cannot be read changes nothing.
    pub fn refresh(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.path);
        if stamp != known.stamp {
            known.stamp = stamp;
            self.read(&mut known);
        }
    }

    /// Takes another token, and reads the file whether it changed or not.
    pub fn reload(&self, token: Option<Secret>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.stamp = Stamp::of(&self.path);
        known.token = token;
        self.read(&mut known);
    }

    /// Whether this owner of sessions is the operator: by an admin key, or on the command line.
    pub fn is_operator(&self, principal: &Principal) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        principal.as_str() == OPERATOR || known.admins.contains(principal)
    }

    /// Whether anybody but the operator has a key.
    pub fn has_users(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).has_users
    }

    fn read(&self, known: &mut Known) {
        match KeyFile::read(self.path.clone()) {
            // It changed while it was read: the next look sees that and reads it again.
            Ok(_) if Stamp::of(&self.path) != known.stamp => {}
            // We never leave it so: somebody else is about to write it. What they wrote is seen as another change.
            Ok(_) if std::fs::metadata(&self.path).is_ok_and(|file| file.len() == 0) => {
                tracing::warn!("the file of the keys is empty; the keys stay as they were");
            }
            Ok(file) => {
                tracing::info!(keys = file.entries().len(), "the keys were read again");
                let identities = file.identities(known.token.as_ref());
                known.take(&identities);
                // Before the keys: one that is new is never used without its limits.
                self.shares.replace(file.shares().collect());
                self.table.replace(identities);
            }
            Err(error) => tracing::error!(%error, "the keys stay as they were"),
        }
    }
}

impl KeyRing for FileKeys {
    fn find(&self, digest: &Digest) -> Option<Identity> {
        self.refresh();
        self.table.find(digest)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.table.changes()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{KeyLimits, StoredRank};
    use super::*;

    fn folders(root: &std::path::Path) -> Folders {
        Folders { config: root.join("config"), state: root.join("state"), cache: root.join("cache") }
    }

    #[test]
    fn s6_a_revoked_key_fails_at_the_next_look_and_a_new_one_works() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let mut file = KeyFile::load(&folders).unwrap();
        let ann = file.create("ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = FileKeys::open(&folders, None).unwrap();
        let before = *ring.changes().borrow();
        assert!(ring.find(&ann.digest()).is_some());
        file.revoke("ann").unwrap();
        assert!(ring.find(&ann.digest()).is_none());
        assert_ne!(*ring.changes().borrow(), before, "open streams are told");
        let bob = file.create("bob", StoredRank::User, KeyLimits::default()).unwrap();
        assert!(ring.find(&bob.digest()).is_some());
    }

    #[test]
    fn a_file_that_breaks_keeps_the_keys_and_one_that_is_gone_revokes_them() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let ann = KeyFile::load(&folders).unwrap().create("ann", StoredRank::User, KeyLimits::default()).unwrap();
        let ring = FileKeys::open(&folders, None).unwrap();
        for broken in ["[[keys", ""] {
            fs::write(KeyFile::path(&folders), broken).unwrap();
            assert!(ring.find(&ann.digest()).is_some(), "{broken}");
        }
        fs::remove_file(KeyFile::path(&folders)).unwrap();
        assert!(ring.find(&ann.digest()).is_none());
    }
}
