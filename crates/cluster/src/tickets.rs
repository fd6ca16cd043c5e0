//! Tickets that any gateway takes, each once: a keyed hash of the ticket → the digest of the key that it stands for, signed, so
//! that whoever can write to Redis cannot make one.

use std::time::Duration;

use crate::error::ClusterError;
use crate::keyed_hash::{Purpose, hash};
use crate::membership::{Cluster, ticket_key};

/// A digest and its signature.
const KEPT: usize = 64;

impl Cluster {
    pub async fn put_ticket(&self, ticket: &[u8; 32], key: &[u8; 32], good_for: Duration) -> Result<(), ClusterError> {
        let secret = self.secret().derive(Purpose::Tickets);
        let kept = [*key, signature(&secret, ticket, key)].concat();
        let life = u64::try_from(good_for.as_millis()).unwrap_or(u64::MAX);
        let put = redis::Cmd::pset_ex(name(&secret, ticket), kept, life);
        self.link.ask(|mut redis| async move { put.query_async::<()>(&mut redis).await }).await
    }

    /// Nobody gets it a second time.
    pub async fn take_ticket(&self, ticket: &[u8; 32]) -> Result<Option<[u8; 32]>, ClusterError> {
        let secret = self.secret().derive(Purpose::Tickets);
        let take = redis::Cmd::get_del(name(&secret, ticket));
        let kept: Option<Vec<u8>> =
            self.link.ask(|mut redis| async move { take.query_async(&mut redis).await }).await?;
        let Some((key, signed)) = kept.filter(|kept| kept.len() == KEPT).and_then(|kept| {
            let (key, signed) = kept.split_at(32);
            Some((<[u8; 32]>::try_from(key).ok()?, signed.to_vec()))
        }) else {
            return Ok(None);
        };
        Ok((signature(&secret, ticket, &key)[..] == signed[..]).then_some(key))
    }
}

fn name(secret: &[u8], ticket: &[u8]) -> String {
    ticket_key(&hash(secret, &[b"name", ticket]))
}

fn signature(secret: &[u8], ticket: &[u8], key: &[u8]) -> [u8; 32] {
    hash(secret, &[b"key", ticket, key])
}
