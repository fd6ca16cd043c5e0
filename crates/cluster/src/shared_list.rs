//! A list that every gateway has as a file of its own, and that is the same on all of them: keys, and allowed origins.
//!
//! An entry is known by a keyed hash of what it says, so that nobody without the cluster's secret can add one. One that was
//! removed stays in Redis as removed: a gateway that was away meanwhile learns of it. What a gateway had in common with the
//! others when it last asked tells a new entry from one that was removed elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use redis::Script;

use crate::error::ClusterError;
use crate::keyed_hash::{ClusterSecret, Purpose, hash};
use crate::link::Link;
use crate::membership::{Cluster, list_key};

/// What an entry is known by.
pub type EntryId = String;

/// An entry in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shared {
    Listed(String),
    Removed,
}

/// What a gateway must do to its own list to have what all have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Entries of others, each with what it is known by.
    pub add: Vec<(EntryId, String)>,
    /// Entries that others removed.
    pub remove: Vec<String>,
    /// What this gateway has in common with the others now. What it adds comes to it.
    pub common: BTreeSet<EntryId>,
}

/// What is to be told and what is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Merge {
    publish: Vec<EntryId>,
    retract: Vec<EntryId>,
    add: Vec<EntryId>,
    remove: Vec<EntryId>,
}

/// Pure: own entries, what was common before, and what Redis has.
fn merge(
    own: &BTreeSet<EntryId>,
    common: &BTreeSet<EntryId>,
    listed: &BTreeSet<EntryId>,
    removed: &BTreeSet<EntryId>,
) -> Merge {
    let mut merge = Merge::default();
    for id in own {
        if removed.contains(id) {
            merge.remove.push(id.clone());
        } else if !listed.contains(id) {
            merge.publish.push(id.clone());
        }
    }
    for id in common.difference(own).filter(|id| !removed.contains(*id)) {
        merge.retract.push(id.clone());
    }
    for id in listed.difference(own).filter(|id| !common.contains(*id)) {
        merge.add.push(id.clone());
    }
    merge
}

impl Cluster {
    /// Tells the others what is new and what is gone in this gateway's list, and says what is new and gone elsewhere.
    /// `common` is what the last call gave; the order of the entries does not matter.
    pub async fn share(
        &self,
        list: &'static str,
        entries: &[String],
        common: &BTreeSet<EntryId>,
    ) -> Result<Changes, ClusterError> {
        let key = self.secret().derive(Purpose::Lists);
        let own: BTreeMap<EntryId, &String> =
            entries.iter().map(|entry| (entry_id(&key, list, entry), entry)).collect();
        let shared = read(&self.link, &key, list).await?;
        let of = |is_wanted: fn(&Shared) -> bool| -> BTreeSet<EntryId> {
            shared.iter().filter(|(_, state)| is_wanted(state)).map(|(id, _)| id.clone()).collect()
        };
        let (listed, removed) = (of(|state| *state != Shared::Removed), of(|state| *state == Shared::Removed));
        let own_ids: BTreeSet<EntryId> = own.keys().cloned().collect();
        let Merge { publish, retract, add, remove } = merge(&own_ids, common, &listed, &removed);
        let script = Script::new(include_str!("scripts/share.lua"));
        let mut call = script.key(list_key(list));
        call.key(list_key("version"));
        for id in &publish {
            call.arg("list").arg(id).arg(own.get(id).map_or("", |entry| entry.as_str()));
        }
        for id in &retract {
            call.arg("remove").arg(id).arg(tombstone(&key, list, id));
        }
        if !publish.is_empty() || !retract.is_empty() {
            self.link.run::<i64>(&call).await?;
        }
        let listed_text = |id: EntryId| match shared.get(&id) {
            Some(Shared::Listed(text)) => Some((id, text.clone())),
            Some(Shared::Removed) | None => None,
        };
        Ok(Changes {
            add: add.into_iter().filter_map(listed_text).collect(),
            remove: remove.iter().filter_map(|id| own.get(id).map(|entry| (*entry).clone())).collect(),
            common: own_ids.into_iter().filter(|id| !removed.contains(id)).collect(),
        })
    }

    /// What all gateways have in this list, for one that has none yet.
    pub async fn listed(link: &Link, secret: &ClusterSecret, list: &'static str) -> Result<Vec<String>, ClusterError> {
        let text = |state| match state {
            Shared::Listed(text) => Some(text),
            Shared::Removed => None,
        };
        Ok(read(link, &secret.derive(Purpose::Lists), list).await?.into_values().filter_map(text).collect())
    }
}

/// Entries that are not signed with the cluster's secret count for nothing.
async fn read(link: &Link, key: &[u8], list: &'static str) -> Result<BTreeMap<EntryId, Shared>, ClusterError> {
    let get = redis::Cmd::hgetall(list_key(list));
    let fields: BTreeMap<EntryId, String> =
        link.ask(|mut redis| async move { get.query_async(&mut redis).await }).await?;
    let mut shared = BTreeMap::new();
    let mut foreign = 0;
    for (id, text) in fields {
        if text == tombstone(key, list, &id) {
            shared.insert(id, Shared::Removed);
        } else if id == entry_id(key, list, &text) {
            shared.insert(id, Shared::Listed(text));
        } else {
            foreign += 1;
        }
    }
    if foreign > 0 {
        tracing::error!(
            list,
            foreign,
            "entries in Redis are not signed with this cluster's secret; they count for nothing"
        );
    }
    Ok(shared)
}

fn entry_id(key: &[u8], list: &str, entry: &str) -> EntryId {
    hex(&hash(key, &[b"listed", list.as_bytes(), entry.as_bytes()]))
}

fn tombstone(key: &[u8], list: &str, id: &str) -> String {
    hex(&hash(key, &[b"removed", list.as_bytes(), id.as_bytes()]))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests;
