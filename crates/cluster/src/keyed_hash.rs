//! What the gateways of a cluster derive from their common secret: nobody who reads Redis learns a history from it, and
//! nobody without the secret passes for a gateway.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A shorter secret can be guessed.
pub const SHORTEST_SECRET: usize = 32;

/// The secret of the cluster. It cannot be printed.
#[derive(Clone)]
pub struct ClusterSecret(Vec<u8>);

/// What a derived key is for: none of them tells anything of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Requests that one gateway hands to another.
    Forwarding,
    /// Names of histories in Redis.
    Histories,
    /// Tickets, each good for one WebSocket.
    Tickets,
    /// Entries of the lists that all gateways have.
    Lists,
    /// How histories are hashed in memory, the same on every gateway.
    Fingerprints,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Forwarding => b"gembridge forwarding",
            Self::Histories => b"gembridge histories",
            Self::Tickets => b"gembridge tickets",
            Self::Lists => b"gembridge lists",
            Self::Fingerprints => b"gembridge fingerprints",
        }
    }
}

impl ClusterSecret {
    /// `None` where it is too short.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        (secret.len() >= SHORTEST_SECRET).then(|| Self(secret.as_bytes().to_vec()))
    }

    /// A key of its own for each purpose.
    pub fn derive(&self, purpose: Purpose) -> [u8; 32] {
        hash(&self.0, &[purpose.label()])
    }

    /// As many bytes as are asked for.
    pub fn expand<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        let key = self.derive(purpose);
        let mut bytes = [0; N];
        for (number, block) in (0_u64..).zip(bytes.chunks_mut(32)) {
            block.copy_from_slice(&hash(&key, &[&number.to_le_bytes()])[..block.len()]);
        }
        bytes
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(…)")
    }
}

/// The parts one after another, each with its length, so that no two lists of parts are the same bytes.
pub(crate) fn hash(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_a_short_secret_is_refused_and_none_is_printed() {
        assert!(ClusterSecret::new(&"x".repeat(31)).is_none());
        let secret = ClusterSecret::new(&"canary".repeat(8)).unwrap();
        assert_eq!(format!("{secret:?}"), "ClusterSecret(…)");
    }

    #[test]
    fn each_purpose_and_each_list_of_parts_has_bytes_of_its_own() {
        let secret = ClusterSecret::new(&"x".repeat(32)).unwrap();
        let of = |purpose| secret.derive(purpose);
        assert_ne!(of(Purpose::Forwarding), of(Purpose::Histories));
        assert_ne!(hash(b"key", &[b"ab", b"c"]), hash(b"key", &[b"a", b"bc"]));
        let long: [u8; 448] = secret.expand(Purpose::Fingerprints);
        assert_ne!(long[..32], long[32..64]);
        assert_eq!(long, ClusterSecret::new(&format!(" {}\n", "x".repeat(32))).unwrap().expand(Purpose::Fingerprints));
    }
}
