//! Several gateways as one: the state that they share, in Redis or Valkey.
//!
//! Knows the core and Redis, and nothing of HTTP, files or frontends. Without `[cluster]` in the settings nothing here runs.

mod directory;
mod error;
mod history;
mod keyed_hash;
mod lease;
mod link;
mod membership;
mod node;
mod shared_list;
mod tickets;

pub use error::ClusterError;
pub use history::Histories;
pub use keyed_hash::{ClusterSecret, Purpose, SHORTEST_SECRET};
pub use lease::{LEASE, MARGIN, NodeLease, RENEWAL};
pub use link::{Link, Reached};
pub use membership::{Cluster, ClusterConfig, Renewed};
pub use node::{Load, Node, NodeInfo};
pub use shared_list::{Changes, EntryId};
