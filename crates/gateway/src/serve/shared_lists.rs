//! `keys.toml` and `origins.toml` of several gateways, which hold the same: what is added or removed in one of them is in all
//! of them a second later. A running gateway obeys its files, so that what was removed ends its streams.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gembridge_cluster::{Changes, Cluster, EntryId, Renewed};
use toml::Value;

use crate::cluster::{self, Settled};
use crate::config::entries::{self, Entries, Entry};
use crate::config::folders::ensure_private;
use crate::config::private_file::{self, Stamp};
use crate::config::{ConfigError, Folders};
use crate::exit::CommandError;
use crate::keys::{self, KeyFile};
use crate::origins::{Origin, OriginFile};

pub struct SharedLists {
    keys: SharedFile<keys::Entry>,
    origins: SharedFile<Origin>,
}

impl SharedLists {
    pub fn new(folders: &Folders) -> Self {
        Self {
            keys: SharedFile::new(KeyFile::path(folders), folders.state.join("cluster-keys")),
            origins: SharedFile::new(OriginFile::path(folders), folders.state.join("cluster-origins")),
        }
    }

    /// Called after each renewal of the lease. Redis is asked only when this gateway's file or any list has changed.
    pub async fn keep(&self, cluster: &Cluster, how: Renewed) {
        self.keys.keep(cluster, how).await;
        self.origins.keep(cluster, how).await;
    }
}

/// The keys that the others have, for a gateway without a list of its own.
pub async fn take_first(settled: &Settled, folders: &Folders) -> Result<(), CommandError> {
    let path = KeyFile::path(folders);
    if path.exists() {
        return Ok(());
    }
    let listed = Cluster::listed(&settled.link, &settled.secret, keys::Entry::LIST).await;
    let listed = listed.map_err(|error| cluster::unusable(&error))?;
    if listed.is_empty() {
        return Ok(());
    }
    ensure_private(&folders.config)?;
    let listed: Vec<_> = listed.into_iter().map(|text| (EntryId::new(), text)).collect();
    entries::change(&path, |entries: &mut Entries<keys::Entry>| {
        add(entries, &listed);
        Ok(())
    })?;
    Ok(())
}

/// One file.
struct SharedFile<T> {
    path: PathBuf,
    /// Where the ids of what all have in common are kept: what is missing in the file then was removed here.
    memory: PathBuf,
    known: Mutex<Option<Known>>,
    entries: PhantomData<fn() -> T>,
}

/// What was there when the others were asked last.
#[derive(Clone, PartialEq)]
struct Known {
    stamp: Stamp,
    version: u64,
}

impl<T: Entry> SharedFile<T> {
    fn new(path: PathBuf, memory: PathBuf) -> Self {
        Self { path, memory, known: Mutex::new(None), entries: PhantomData }
    }

    async fn keep(&self, cluster: &Cluster, how: Renewed) {
        let now = Known { stamp: Stamp::of(&self.path), version: cluster.lists_version() };
        let is_known = self.known.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&now);
        if is_known && how == Renewed::GoesOn {
            return;
        }
        match self.share(cluster).await {
            Ok(()) => *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(now),
            Err(error) => {
                tracing::warn!(list = T::LIST, error = %error.error, "the list is not shared with the other gateways");
            }
        }
    }

    async fn share(&self, cluster: &Cluster) -> Result<(), CommandError> {
        let own = Entries::<T>::load(self.path.clone())?;
        // A file that is not there was not emptied by anybody: what the others have is taken.
        let common = if self.path.exists() { self.remembered()? } else { BTreeSet::new() };
        let texts: Vec<String> = own.good.iter().filter_map(text).collect();
        let shared = cluster.share(T::LIST, &texts, &common).await;
        let Changes { add: others, remove: gone, common: mut now } =
            shared.map_err(|error| cluster::unusable(&error))?;
        if !others.is_empty() || !gone.is_empty() {
            let added = entries::change(&self.path, |entries: &mut Entries<T>| {
                entries.good.retain(|entry| text(entry).is_none_or(|text| !gone.contains(&text)));
                Ok(add(entries, &others))
            })?;
            tracing::info!(list = T::LIST, added = added.len(), removed = gone.len(), "taken over from other gateways");
            now.extend(added);
        }
        if now != common {
            let lines: Vec<_> = now.iter().map(String::as_str).collect();
            private_file::write(&self.memory, &lines.join("\n"))?;
        }
        Ok(())
    }

    fn remembered(&self) -> Result<BTreeSet<EntryId>, ConfigError> {
        remembered(&self.memory)
    }
}

fn remembered(path: &Path) -> Result<BTreeSet<EntryId>, ConfigError> {
    let text = private_file::read_text(path)?.unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

/// Adds what fits, and says which did. Two entries that share a name would both count for nothing, so the one that is here stays.
fn add<T: Entry>(entries: &mut Entries<T>, others: &[(EntryId, String)]) -> Vec<EntryId> {
    let mut added = Vec::new();
    for (id, other) in others {
        let Some(entry) = serde_json::from_str::<Value>(other).ok().and_then(|value| T::decode(&value).ok()) else {
            tracing::warn!(list = T::LIST, "an entry of a newer gateway is passed over");
            continue;
        };
        let marks = entry.marks();
        let is_taken = entries.good.iter().flat_map(Entry::marks).any(|mark| marks.contains(&mark));
        if is_taken {
            let name = marks.first().map_or("", String::as_str);
            tracing::error!(
                list = T::LIST,
                name,
                "another gateway has an entry that differs from the one here; remove one of the two"
            );
            continue;
        }
        entries.good.push(entry);
        added.push(id.clone());
    }
    added
}

/// The same for the same entry, on every gateway.
fn text<T: Entry>(entry: &T) -> Option<String> {
    serde_json::to_string(&Value::try_from(entry).ok()?).ok()
}
