//! The cluster: whether Redis answers and is new enough, whether the clocks agree, and whether the gateways are reached.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::Check;
use crate::cluster;
use crate::command::Context;
use crate::command::cluster::{Seen, look};

/// Requests between gateways carry the time, and are refused when it is 30 s off.
const SKEW: Duration = Duration::from_secs(5);

/// How long a gateway of the cluster may take to be connected to.
const REACHING: Duration = Duration::from_secs(2);

/// Nothing where the gateway stands alone.
pub fn checks(context: &Context) -> Vec<Check> {
    let settled = match cluster::settle(&context.config.settings.cluster) {
        Ok(None) => return Vec::new(),
        Ok(Some(settled)) => settled,
        Err(error) => {
            return vec![Check::fail("cluster", error.error.to_string(), "correct `[cluster]` in the settings")];
        }
    };
    let Seen { server, nodes, skew } = match look(&settled.link) {
        Ok(seen) => seen,
        Err(error) => {
            let fix = "see that Redis 7 or Valkey runs at `cluster.redis`, and that this machine may reach it";
            return vec![Check::fail("redis", error.to_string(), fix)];
        }
    };
    let mut checks = vec![Check::ok("redis", format!("{} answers", server.server))];
    checks.push(if skew > SKEW {
        let detail = format!("the clocks of this machine and of Redis differ by {} s", skew.as_secs());
        Check::fail("clocks", detail, "let NTP set both; requests between gateways carry the time")
    } else {
        Check::ok("clocks", "this machine and Redis agree on the time")
    });
    if nodes.is_empty() {
        checks.push(Check::warn("gateways", "no gateway runs in this cluster", "start one with `gembridge serve`"));
    }
    for node in nodes {
        let address = node.info.address;
        checks.push(match reach(&address) {
            Ok(()) => Check::ok("gateways", format!("{address} is reached; version {}", node.info.version)),
            Err(why) => Check::fail(
                "gateways",
                format!("{address} is not reached from here: {why}"),
                "set its `cluster.address` to where the others reach it, and let `server.host` listen there",
            ),
        });
    }
    checks
}

fn reach(address: &str) -> Result<(), String> {
    let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut last = "the name has no address".to_owned();
    for address in found {
        match TcpStream::connect_timeout(&address, REACHING) {
            Ok(_) => return Ok(()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}
