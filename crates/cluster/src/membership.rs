//! One gateway among several: its lease, renewed once a second, and the others that live.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gembridge_core::directory::NodeId;
use redis::Script;
use uuid::Uuid;

use crate::error::ClusterError;
use crate::keyed_hash::{ClusterSecret, Purpose};
use crate::lease::{LEASE, NodeLease, RENEWAL};
use crate::link::Link;
use crate::node::{Load, Node, NodeInfo};
use crate::shared_list::hex;

/// How every key of ours in Redis begins.
const PREFIX: &str = "gembridge:";
const NODES: &str = "gembridge:nodes";

/// Clocks that differ by more than this are worth a word: requests between gateways carry the time.
const SKEW: Duration = Duration::from_secs(5);

/// What one gateway is in its cluster.
pub struct ClusterConfig {
    pub node: NodeId,
    /// Where the others reach it: `host:port`.
    pub address: String,
    pub version: String,
    pub secret: ClusterSecret,
    /// How long the directory knows of a session that nobody uses; as long as it stays on disk. `None`: for ever.
    pub keep: Option<Duration>,
}

/// This gateway in its cluster.
pub struct Cluster {
    pub(crate) link: Link,
    pub(crate) node: NodeId,
    pub(crate) keep: Option<Duration>,
    /// Names histories in Redis.
    pub(crate) histories: [u8; 32],
    secret: ClusterSecret,
    info: NodeInfo,
    /// Tells two processes with one id apart.
    process: String,
    state: Mutex<State>,
}

struct State {
    lease: NodeLease,
    /// The gateways that lived at the last renewal, this one among them.
    nodes: BTreeMap<NodeId, NodeInfo>,
    /// How often a shared list had changed then.
    lists: u64,
}

/// What a renewal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease had not ended.
    GoesOn,
    /// There was none: this gateway has just come, its lease had ended, or Redis lost what it held.
    Begun,
}

impl Cluster {
    pub fn new(link: Link, config: ClusterConfig) -> Self {
        let ClusterConfig { node, address, version, secret, keep } = config;
        Self {
            link,
            node,
            keep,
            histories: secret.derive(Purpose::Histories),
            secret,
            info: NodeInfo { address, version, started: now(), load: Load::default() },
            process: Uuid::now_v7().to_string(),
            state: Mutex::new(State { lease: NodeLease::None, nodes: BTreeMap::new(), lists: 0 }),
        }
    }

    pub fn node(&self) -> NodeId {
        self.node
    }

    pub fn secret(&self) -> &ClusterSecret {
        &self.secret
    }

    /// Becomes one of the gateways.
    pub async fn join(&self, load: Load) -> Result<(), ClusterError> {
        self.link.connect().await?;
        self.renew("join", load).await.map(drop)
    }

    /// Renews the lease for ever, and connects again where the connection is gone. `renewed` is told of each renewal.
    pub async fn keep(&self, load: impl Fn() -> Load, renewed: impl AsyncFn(Renewed)) {
        let mut tick = tokio::time::interval(RENEWAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut told: Option<ClusterError> = None;
        loop {
            tick.tick().await;
            let outcome = match self.link.connect().await {
                Ok(()) => self.renew("renew", load()).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(how) => {
                    if told.take().is_some() {
                        tracing::info!("Redis answers again");
                    }
                    renewed(how).await;
                }
                // Each reason once: it may stay for hours.
                Err(error) if told.as_ref() == Some(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "this gateway is not part of its cluster now; its own sessions go on");
                    told = Some(error);
                }
            }
        }
    }

    /// Tells the others that this gateway takes nothing more.
    pub async fn drain(&self, load: Load) {
        if let Err(error) = self.renew("renew", Load { draining: true, ..load }).await {
            tracing::warn!(%error, "the other gateways were not told of the drain");
        }
    }

    /// Ends the lease at once, so that nobody waits for its end.
    pub async fn leave(&self) {
        let script = Script::new(include_str!("scripts/leave.lua"));
        let mut call = script.key(self.own_key());
        call.key(NODES).arg(self.node.to_string()).arg(&self.process);
        if let Err(error) = self.link.run::<i64>(&call).await {
            tracing::warn!(%error, "the other gateways were not told of the end of this one");
        }
    }

    /// Moves whenever an entry of a shared list came or went, as of the last renewal.
    pub fn lists_version(&self) -> u64 {
        self.lock().lists
    }

    /// Whether others can know of what this gateway makes now.
    pub(crate) fn check_lease(&self) -> Result<(), ClusterError> {
        match self.lock().lease {
            lease if lease.runs(Instant::now()) => Ok(()),
            NodeLease::Replaced => Err(ClusterError::Replaced),
            NodeLease::None | NodeLease::Until(_) => {
                Err(ClusterError::Unreachable("the lease of this gateway has ended".to_owned()))
            }
        }
    }

    /// Where a gateway that lives is reached. Of one that came within the last second only Redis knows.
    pub async fn address(&self, node: NodeId) -> Option<String> {
        let known = self.lock().nodes.get(&node).map(|info| info.address.clone());
        if known.is_some() {
            return known;
        }
        let get = redis::Cmd::hget(node_key(&node.to_string()), "info");
        let asked = self.link.ask(|mut redis| async move { get.query_async::<Option<String>>(&mut redis).await });
        Node::read(&node.to_string(), &asked.await.ok()??).map(|node| node.info.address)
    }

    /// The gateways that live, as others see them: for programs that only look.
    pub async fn list(link: &Link) -> Result<(Vec<Node>, Duration), ClusterError> {
        link.connect().await?;
        let script = Script::new(include_str!("scripts/nodes.lua"));
        let mut call = script.key(NODES);
        call.key(list_key("version")).arg(node_key(""));
        let answer: Vec<redis::Value> = link.run(&call).await?;
        let Answer { time, nodes, .. } = Answer::read(&answer).ok_or_else(strange)?;
        Ok((nodes, skew(time)))
    }

    async fn renew(&self, how: &'static str, load: Load) -> Result<Renewed, ClusterError> {
        if self.lock().lease == NodeLease::Replaced {
            return Err(ClusterError::Replaced);
        }
        let info = NodeInfo { load, ..self.info.clone() };
        // Plain data with string keys always serialises.
        let info = serde_json::to_string(&info).unwrap_or_default();
        let script = Script::new(include_str!("scripts/renew.lua"));
        let mut call = script.key(self.own_key());
        let lease = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        call.key(NODES).key(list_key("version"));
        call.arg(self.node.to_string()).arg(&self.process).arg(lease).arg(info).arg(how).arg(node_key(""));
        // Before it goes out: Redis counts from later.
        let sent = Instant::now();
        let answer: Vec<redis::Value> = self.link.run(&call).await?;
        let Some(answer) = Answer::read(&answer) else {
            self.lock().lease = NodeLease::Replaced;
            return Err(ClusterError::Replaced);
        };
        let skew = skew(answer.time);
        if skew > SKEW {
            tracing::warn!(seconds = skew.as_secs(), "the clock of this machine and that of Redis differ");
        }
        let mut state = self.lock();
        state.lease = state.lease.renewed(sent);
        state.lists = answer.lists;
        state.nodes = answer.nodes.into_iter().map(|node| (node.id, node.info)).collect();
        Ok(answer.renewed)
    }

    fn own_key(&self) -> String {
        node_key(&self.node.to_string())
    }

    /// Never held across an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn node_key(id: &str) -> String {
    format!("{PREFIX}node:{id}")
}

/// What the scripts answer: a word, the time, how often a shared list changed, and then ids and what each gateway says of itself.
struct Answer {
    renewed: Renewed,
    time: u64,
    lists: u64,
    nodes: Vec<Node>,
}

impl Answer {
    /// `None`: another process has the name.
    fn read(values: &[redis::Value]) -> Option<Self> {
        let text = |value: &redis::Value| redis::from_redis_value::<String>(value.clone()).ok();
        let [word, time, lists, nodes @ ..] = values else { return None };
        let renewed = if text(word)? == "renewed" { Renewed::GoesOn } else { Renewed::Begun };
        let number = |value: &redis::Value| redis::from_redis_value::<u64>(value.clone()).ok();
        let (time, lists) = (number(time)?, number(lists)?);
        let nodes = nodes.chunks_exact(2).filter_map(|pair| Node::read(&text(&pair[0])?, &text(&pair[1])?));
        Some(Self { renewed, time, lists, nodes: nodes.collect() })
    }
}

fn strange() -> ClusterError {
    ClusterError::Refused("the list of gateways in Redis was written by something else".to_owned())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn skew(time: u64) -> Duration {
    Duration::from_millis(now().abs_diff(time))
}

/// One Redis serves one cluster, unless the clusters use databases of their own (`redis://host/1`).
pub(crate) fn session_key(session: gembridge_core::model::SessionId) -> String {
    format!("{PREFIX}session:{session}")
}

pub(crate) fn history_key(digest: &[u8]) -> String {
    format!("{PREFIX}history:{}", hex(&digest[..16]))
}

pub(crate) fn ticket_key(digest: &[u8]) -> String {
    format!("{PREFIX}ticket:{}", hex(&digest[..16]))
}

pub(crate) fn list_key(list: &str) -> String {
    format!("{PREFIX}list:{list}")
}
