//! The state of one endpoint: the list of tools, which edition of it was read, and the calls that wait for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::tool_host::{HostedCallId, Offer, ToolNews};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot, watch};

use crate::list::List;
use crate::name::Naming;

/// Counts what was offered at an endpoint, so that a reader of an older list is told from one of the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edition(pub u64);

pub struct PendingCalls {
    pub naming: Arc<Naming>,
    /// How often a caller that wants to know is told that its call still waits.
    pub progress: Duration,
    pub news: mpsc::Sender<ToolNews>,
    offered: Mutex<(Edition, Arc<List>)>,
    read: watch::Sender<Edition>,
    /// Who is connected and wants to know when the list changes.
    peers: Mutex<Vec<Peer<RoleServer>>>,
    calls: Mutex<Calls>,
}

/// A call as the agent names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    pub session: SessionId,
    pub request: RequestId,
}

/// The calls that wait, each with what ends its wait from here.
#[derive(Default)]
struct Calls {
    /// How many there were.
    counted: u64,
    open: HashMap<CallKey, (HostedCallId, oneshot::Sender<()>)>,
    closed: bool,
}

impl PendingCalls {
    pub fn new(naming: Arc<Naming>, progress: Duration, news: mpsc::Sender<ToolNews>) -> Self {
        Self {
            naming,
            progress,
            news,
            offered: Mutex::default(),
            read: watch::Sender::new(Edition::default()),
            peers: Mutex::default(),
            calls: Mutex::default(),
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
                // A closed endpoint has no callers.
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

    /// Counts a call in. The receiver resolves when the agent cancels the call, and with an error when the endpoint closes.
    pub fn open_call(&self, key: CallKey) -> (HostedCallId, oneshot::Receiver<()>) {
        let mut calls = lock(&self.calls);
        calls.counted += 1;
        let id = HostedCallId(calls.counted);
        let (sender, recall) = oneshot::channel();
        if !calls.closed {
            calls.open.insert(key, (id, sender));
        }
        (id, recall)
    }

    pub fn forget_call(&self, key: &CallKey, id: HostedCallId) {
        let mut calls = lock(&self.calls);
        if calls.open.get(key).is_some_and(|(open, _)| *open == id) {
            calls.open.remove(key);
        }
    }

    pub fn cancel_call(&self, session: &SessionId, request: &RequestId) {
        let key = CallKey { session: session.clone(), request: request.clone() };
        let cancelled = lock(&self.calls).open.remove(&key);
        recall(cancelled);
    }

    /// The agent left: nobody waits for its calls.
    pub fn cancel_session(&self, session: &SessionId) {
        let left: Vec<_> = lock(&self.calls).open.extract_if(|key, _| key.session == *session).collect();
        recall(left.into_iter().map(|(_, open)| open));
    }

    pub fn waits_in(&self, session: &SessionId) -> bool {
        lock(&self.calls).open.keys().any(|key| key.session == *session)
    }

    pub fn calls(&self) -> usize {
        lock(&self.calls).open.len()
    }

    /// Whoever waits is told that nobody will answer.
    pub fn close(&self) {
        let open = {
            let mut calls = lock(&self.calls);
            calls.closed = true;
            std::mem::take(&mut calls.open)
        };
        drop(open);
        lock(&self.peers).clear();
    }
}

fn recall(calls: impl IntoIterator<Item = (HostedCallId, oneshot::Sender<()>)>) {
    for (id, sender) in calls {
        if sender.send(()).is_err() {
            tracing::trace!(id = id.0, "a call was over when it was cancelled");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
