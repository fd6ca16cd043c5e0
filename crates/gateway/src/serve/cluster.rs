//! The gateway as one of several: joins, keeps its lease, tells what it does, and leaves.

use std::sync::Arc;
use std::time::Duration;

use gembridge_api::forward::{Forwarding, Peers};
use gembridge_api::guard::SharedTickets;
use gembridge_cluster::{Cluster, ClusterConfig, Histories, Load, Purpose, Renewed};
use gembridge_core::BoxFuture;
use gembridge_core::directory::{HistoryIndex, NodeId};
use gembridge_core::exchange::FINGERPRINT_KEY;
use gembridge_core::session::{Sessions, Viewer};

use super::shared_lists::{self, SharedLists};
use crate::cluster::{self, Settled};
use crate::config::settings::SessionSettings;
use crate::config::{Config, Folders};
use crate::exit::CommandError;

/// Sessions on disk that are told to an empty directory; the newest first.
const TOLD: usize = 100_000;

/// A day more than sessions stay on disk, since the directory counts from when they were made known.
const SPARE: Duration = Duration::from_hours(24);

/// This gateway in its cluster, before it has joined.
pub struct Member {
    cluster: Arc<Cluster>,
    forwarding: Arc<Forwarding>,
    lists: SharedLists,
}

/// Where Redis is asked for the first time: whatever is wrong with it is told before anything is started.
/// A gateway that has no keys yet takes those of the others, and makes none of its own.
pub async fn reach(config: &Config) -> Result<Option<Settled>, CommandError> {
    let Some(settled) = cluster::settle(&config.settings.cluster)? else { return Ok(None) };
    let reached = settled.link.server().await.map_err(|error| cluster::unusable(&error))?;
    tracing::info!(server = reached.server, "the gateways of the cluster share their state there");
    shared_lists::take_first(&settled, &config.folders).await?;
    Ok(Some(settled))
}

impl Member {
    /// Called once the state folder is held and the port is known.
    pub fn new(
        settled: Settled,
        folders: &Folders,
        port: u16,
        sessions: &SessionSettings,
    ) -> Result<Self, CommandError> {
        let Settled { link, secret, address } = settled;
        let node = cluster::node_id(folders)?;
        let days = sessions.keep_days.0;
        let keep = (days > 0).then(|| Duration::from_hours(24 * u64::from(days)) + SPARE);
        let config = ClusterConfig {
            node,
            address: cluster::with_port(&address, port),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            secret,
            keep,
        };
        let cluster = Arc::new(Cluster::new(link, config));
        let key = cluster.secret().derive(Purpose::Forwarding);
        let forwarding = Forwarding::new(node, key, Arc::new(Addresses(Arc::clone(&cluster))));
        Ok(Self { cluster, forwarding, lists: SharedLists::new(folders) })
    }

    pub fn forwarding(&self) -> Arc<Forwarding> {
        Arc::clone(&self.forwarding)
    }

    pub fn tickets(&self) -> Arc<dyn SharedTickets> {
        Arc::new(Tickets(Arc::clone(&self.cluster)))
    }

    pub fn directory(&self) -> Arc<Cluster> {
        Arc::clone(&self.cluster)
    }

    pub fn histories(&self) -> Arc<dyn HistoryIndex> {
        Arc::new(Histories(Arc::clone(&self.cluster)))
    }

    pub fn fingerprint_key(&self) -> [u8; FINGERPRINT_KEY] {
        self.cluster.secret().expand(Purpose::Fingerprints)
    }

    pub async fn join(&self, sessions: &Sessions) -> Result<(), CommandError> {
        self.cluster.join(load(sessions)).await.map_err(|error| cluster::unusable(&error))?;
        self.renewed(Renewed::Begun, sessions).await;
        tracing::info!(node = %self.cluster.node(), "joined the cluster");
        Ok(())
    }

    /// For ever.
    pub async fn keep(&self, sessions: &Sessions) {
        self.cluster.keep(|| load(sessions), async |how| self.renewed(how, sessions).await).await;
    }

    async fn renewed(&self, how: Renewed, sessions: &Sessions) {
        if how == Renewed::Begun {
            self.announce(sessions).await;
        }
        self.lists.keep(&self.cluster, how).await;
    }

    pub async fn drain(&self, sessions: &Sessions) {
        self.cluster.drain(load(sessions)).await;
    }

    pub async fn leave(&self) {
        self.forwarding.settle().await;
        self.cluster.leave().await;
    }

    /// Tells of the sessions on disk: the directory may have been emptied.
    async fn announce(&self, sessions: &Sessions) {
        let told = match sessions.list(&Viewer::Admin, TOLD).await {
            Ok(records) => self.cluster.announce(records.into_iter().map(|record| record.id)).await,
            Err(error) => {
                tracing::warn!(%error, "the sessions on disk could not be told to the other gateways");
                return;
            }
        };
        if let Err(error) = told {
            tracing::warn!(%error, "not all sessions on disk were told to the other gateways");
        }
    }
}

/// A ticket that cannot be kept in Redis is good at the gateway that made it.
struct Tickets(Arc<Cluster>);

impl SharedTickets for Tickets {
    fn put(&self, ticket: [u8; 32], key: [u8; 32], good_for: Duration) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.0.put_ticket(&ticket, &key, good_for).await.is_ok() })
    }

    fn take(&self, ticket: [u8; 32]) -> BoxFuture<'_, Option<[u8; 32]>> {
        Box::pin(async move { self.0.take_ticket(&ticket).await.ok().flatten() })
    }
}

struct Addresses(Arc<Cluster>);

impl Peers for Addresses {
    fn address(&self, node: NodeId) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.0.address(node))
    }
}

fn load(sessions: &Sessions) -> Load {
    let mut load = Load { sessions: sessions.statuses().len() as u64, ..Load::default() };
    for (_, queue) in sessions.queues() {
        load.running += queue.running as u64;
        load.waiting += queue.waiting as u64;
    }
    load
}
