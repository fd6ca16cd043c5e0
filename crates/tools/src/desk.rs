//! What lies at one place: the list of tools, who has read it, and what the agent does with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::tool_host::{HostedCallId, Offer, ToolNews};
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::list::List;
use crate::name::Naming;

/// Counts what was offered at a place, so that a reader of an older list is told from one of the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edition(pub u64);

pub struct Desk {
    pub naming: Arc<Naming>,
    /// How often a caller that wants to know is told that its call still waits.
    pub progress: Duration,
    pub news: mpsc::Sender<ToolNews>,
    /// The place is gone, and so is everybody who could answer.
    pub closed: CancellationToken,
    offered: Mutex<(Edition, Arc<List>)>,
    read: watch::Sender<Edition>,
    /// Who is connected and wants to know when the list changes.
    peers: Mutex<Vec<Peer<RoleServer>>>,
    calls: AtomicU64,
}

impl Desk {
    pub fn new(naming: Arc<Naming>, progress: Duration, news: mpsc::Sender<ToolNews>) -> Self {
        Self {
            naming,
            progress,
            news,
            closed: CancellationToken::new(),
            offered: Mutex::default(),
            read: watch::Sender::new(Edition::default()),
            peers: Mutex::default(),
            calls: AtomicU64::new(1),
        }
    }

    /// Lays out a new list. Gives what resolves when it was read, and who has to be told that it is there.
    pub fn offer(&self, offer: &Offer) -> (BoxFuture<'static, ()>, Vec<Peer<RoleServer>>) {
        let list = Arc::new(List::new(offer, &self.naming));
        let edition = {
            let mut offered = lock(&self.offered);
            offered.0 = Edition(offered.0.0 + 1);
            offered.1 = list;
            offered.0
        };
        let mut read = self.read.subscribe();
        let read = Box::pin(async move {
            if read.wait_for(|read| *read >= edition).await.is_err() {
                // Nobody comes to a place that is gone.
                std::future::pending::<()>().await;
            }
        });
        let mut peers = lock(&self.peers);
        peers.retain(|peer| !peer.is_transport_closed());
        (read, peers.clone())
    }

    pub fn list(&self) -> (Edition, Arc<List>) {
        lock(&self.offered).clone()
    }

    /// An agent has this list now.
    pub fn was_read(&self, edition: Edition) {
        self.read.send_if_modified(|read| {
            let newer = edition > *read;
            *read = (*read).max(edition);
            newer
        });
    }

    pub fn greet(&self, peer: Peer<RoleServer>) {
        let mut peers = lock(&self.peers);
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(peer);
    }

    pub fn next_call(&self) -> HostedCallId {
        HostedCallId(self.calls.fetch_add(1, Ordering::Relaxed))
    }

    pub fn close(&self) {
        self.closed.cancel();
        lock(&self.peers).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
