//! What is known of a gateway of the cluster.

use gembridge_core::directory::NodeId;
use serde::{Deserialize, Serialize};

/// What a gateway says of itself, once a second. Fields that a newer version adds are passed over by an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    /// Where the others reach it: `host:port`.
    pub address: String,
    pub version: String,
    /// Milliseconds since 1970.
    pub started: u64,
    #[serde(flatten)]
    pub load: Load,
}

/// How much it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Sessions in memory.
    pub sessions: u64,
    /// Turns that run.
    pub running: u64,
    /// Turns that wait.
    pub waiting: u64,
    /// It ends what it has and takes nothing new.
    pub draining: bool,
}

/// A gateway whose lease runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub info: NodeInfo,
}

impl Node {
    /// Of two texts out of Redis; `None` where they are none of ours.
    pub(crate) fn read(id: &str, info: &str) -> Option<Self> {
        Some(Self { id: id.parse().ok()?, info: serde_json::from_str(info).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_versions_are_passed_over_or_empty() {
        let id = NodeId::fresh();
        let newer = r#"{"address":"a:1","version":"9","started":5,"sessions":2,"colour":"red"}"#;
        let node = Node::read(&id.to_string(), newer).unwrap();
        assert_eq!((node.id, node.info.address.as_str(), node.info.load.sessions), (id, "a:1", 2));
        assert_eq!((node.info.load.running, node.info.load.draining), (0, false));
        assert_eq!(Node::read("x", newer), None);
        assert_eq!(Node::read(&id.to_string(), "x"), None);
    }
}
