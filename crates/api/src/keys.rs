//! Keys: made from OS randomness, shown once, kept and compared as digests.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::identity::Identity;

/// How every key of ours begins, so that a scanner for leaked secrets can find it.
pub(crate) const PREFIX: &str = "gb-";

/// A secret in plain text. It cannot be printed, logged or compared: take its digest, or `expose` it to its owner.
pub struct Key(String);

impl Key {
    /// 32 bytes from the operating system.
    pub fn generate() -> std::io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        Ok(Self(format!("{PREFIX}{}", hex(&secret))))
    }

    /// A key that someone else made: an operator's own, or the one that a request carries.
    pub fn given(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The plain text, for the one moment in which it is shown or written to its file.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// What is kept of a key. Compared in constant time, so there is no `PartialEq`.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn into_bytes(self) -> [u8; 32] {
        self.0
    }

    /// As it stands in the key file.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// Who owns which key. The guard asks on every request, and again for every open stream when `changes` moves.
pub trait KeyRing: Send + Sync {
    /// Looks at every key it has, whichever matches, so that the time tells nothing.
    fn find(&self, digest: &Digest) -> Option<Identity>;

    /// Moves whenever a key was added or revoked.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// The keys of a running gateway, in memory.
#[derive(Debug)]
pub struct KeyTable {
    keys: RwLock<Vec<(Digest, Identity)>>,
    changes: watch::Sender<u64>,
}

impl KeyTable {
    pub fn new(keys: Vec<(Digest, Identity)>) -> Self {
        Self { keys: RwLock::new(keys), changes: watch::Sender::new(0) }
    }

    /// What the key file holds now; whatever is missing is revoked.
    pub fn replace(&self, keys: Vec<(Digest, Identity)>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        self.changes.send_modify(|version| *version += 1);
    }

    pub fn add(&self, digest: Digest, identity: Identity) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).push((digest, identity));
        self.changes.send_modify(|version| *version += 1);
    }

    pub fn revoke(&self, digest: &Digest) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).retain(|(held, _)| !held.matches(digest));
        self.changes.send_modify(|version| *version += 1);
    }
}

impl KeyRing for KeyTable {
    fn find(&self, digest: &Digest) -> Option<Identity> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (held, identity) in keys.iter() {
            if held.matches(digest) {
                found = Some(identity);
            }
        }
        found.cloned()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// The key of one admitted request, for whatever outlives the request: its stream, its socket.
#[derive(Clone)]
pub struct KeyLease {
    digest: Digest,
    identity: Identity,
    ring: Arc<dyn KeyRing>,
    /// The state of the ring in which the key was good.
    good_at: u64,
}

impl KeyLease {
    /// A lease of this key and its owner, if it is good.
    pub fn take(digest: Digest, ring: &Arc<dyn KeyRing>) -> Option<(Self, Identity)> {
        // Before it is looked for, so that no change falls between.
        let good_at = *ring.changes().borrow();
        let identity = ring.find(&digest)?;
        Some((Self { digest, identity: identity.clone(), ring: Arc::clone(ring), good_at }, identity))
    }

    /// What is kept of the key.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Moves whenever any key was added or revoked.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.ring.changes()
    }

    /// Returns once the key is no longer good, or good for another owner or rank. Dropping it stops the watch.
    pub async fn revoked(self) {
        let mut changes = self.ring.changes();
        let mut is_good = *changes.borrow() == self.good_at || self.is_good();
        while is_good {
            if changes.changed().await.is_err() {
                // Nobody is left who could revoke it.
                std::future::pending::<()>().await;
            }
            is_good = self.is_good();
        }
    }

    /// What was allowed to the key was allowed to its owner, with the rank that it had.
    fn is_good(&self) -> bool {
        self.ring.find(&self.digest).as_ref() == Some(&self.identity)
    }
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::Principal;

    use super::*;
    use crate::identity::Rank;

    fn someone(name: &str) -> Identity {
        Identity { principal: Principal::new(name), rank: Rank::User }
    }

    #[test]
    fn s1_a_generated_key_is_32_random_bytes() {
        let (one, two) = (Key::generate().unwrap(), Key::generate().unwrap());
        assert_eq!(one.expose().len(), PREFIX.len() + 64);
        assert_ne!(one.expose(), two.expose());
    }

    #[test]
    fn s16_a_key_and_its_digest_print_nothing() {
        let key = Key::given("gb-canary");
        assert_eq!(format!("{key:?} {:?}", key.digest()), "Key(…) Digest(…)");
    }

    #[test]
    fn a_digest_survives_its_file_and_a_damaged_one_is_refused() {
        let digest = Key::given("gb-one").digest();
        assert!(Digest::from_hex(&digest.to_hex()).unwrap().matches(&digest));
        for damaged in ["", "00", &"g".repeat(64), &"é".repeat(32), &"+1".repeat(32)[..63]] {
            assert!(Digest::from_hex(damaged).is_none(), "{damaged}");
        }
    }

    #[test]
    fn s7_a_ring_finds_the_owner_of_each_key_and_of_no_other() {
        let (one, two) = (Key::given("one").digest(), Key::given("two").digest());
        let table = KeyTable::new(vec![(one, someone("ann")), (two, someone("bob"))]);
        assert_eq!(table.find(&one), Some(someone("ann")));
        assert_eq!(table.find(&two), Some(someone("bob")));
        assert_eq!(table.find(&Key::given("three").digest()), None);
        table.revoke(&one);
        assert_eq!(table.find(&one), None);
    }

    #[tokio::test]
    async fn s6_a_lease_ends_when_its_key_is_revoked_and_not_when_another_is() {
        let (one, two) = (Key::given("one").digest(), Key::given("two").digest());
        let table = Arc::new(KeyTable::new(vec![(one, someone("ann")), (two, someone("bob"))]));
        let ring: Arc<dyn KeyRing> = table.clone();
        assert!(KeyLease::take(Key::given("three").digest(), &ring).is_none());
        let (lease, owner) = KeyLease::take(one, &ring).unwrap();
        assert_eq!(owner, someone("ann"));
        let mut lease = Box::pin(lease.revoked());
        assert!(still_open(&mut lease).await);
        table.revoke(&two);
        assert!(still_open(&mut lease).await);
        table.revoke(&one);
        lease.await;
    }

    #[tokio::test]
    async fn f11_a_lease_ends_when_its_key_gets_another_rank_or_owner() {
        let one = Key::given("one").digest();
        for other in [Identity { rank: Rank::Admin, ..someone("ann") }, someone("bob")] {
            let table = Arc::new(KeyTable::new(vec![(one, someone("ann"))]));
            let ring: Arc<dyn KeyRing> = table.clone();
            let (lease, _) = KeyLease::take(one, &ring).unwrap();
            let mut lease = Box::pin(lease.revoked());
            table.replace(vec![(one, someone("ann"))]);
            assert!(still_open(&mut lease).await);
            table.replace(vec![(one, other)]);
            lease.await;
        }
    }

    #[tokio::test]
    async fn s6_a_lease_whose_key_was_revoked_before_anybody_waited_ends_at_once() {
        let one = Key::given("one").digest();
        let table = Arc::new(KeyTable::new(vec![(one, someone("ann"))]));
        let ring: Arc<dyn KeyRing> = table.clone();
        let (lease, _) = KeyLease::take(one, &ring).unwrap();
        table.revoke(&one);
        lease.revoked().await;
    }

    async fn still_open(lease: &mut std::pin::Pin<Box<impl Future<Output = ()>>>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(lease.as_mut().poll(cx).is_pending())).await
    }
}
