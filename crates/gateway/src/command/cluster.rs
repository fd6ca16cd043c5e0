//! `gembridge cluster`: the gateways that serve as one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gembridge_cluster::{Cluster, ClusterError, Link, Node, Reached};

use crate::cli::args::ClusterArgs;
use crate::cluster;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::terminal::{self, escape};

use super::{Context, pretty};

/// What is to be seen from here.
pub struct Seen {
    pub server: Reached,
    /// In the order of their addresses.
    pub nodes: Vec<Node>,
    /// By how much the clock of Redis and ours differ.
    pub skew: Duration,
}

pub fn run(args: &ClusterArgs, context: &Context) -> CommandResult {
    let settled = cluster::settle(&context.config.settings.cluster)?.ok_or_else(|| {
        CommandError::usage("this gateway stands alone; `[cluster]` in `gembridge.toml` makes it one of several")
    })?;
    let Seen { server, nodes, .. } = look(&settled.link).map_err(|error| cluster::unusable(&error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    terminal::print(&if args.json {
        let described: Vec<_> = nodes.iter().map(|node| described(node, now)).collect();
        pretty(&serde_json::json!({ "redis": server.server, "nodes": described }))
    } else {
        table(&server, &nodes, now)
    })?;
    Ok(ExitCode::Success)
}

/// Asks Redis, from outside any event loop.
pub fn look(link: &Link) -> Result<Seen, ClusterError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let event_loop = built.map_err(|error| ClusterError::Unreachable(format!("no event loop: {error}")))?;
    event_loop.block_on(async {
        let server = link.server().await?;
        let (mut nodes, skew) = Cluster::list(link).await?;
        nodes.sort_by(|one, other| one.info.address.cmp(&other.info.address));
        Ok(Seen { server, nodes, skew })
    })
}

fn age(node: &Node, now: Duration) -> Duration {
    now.saturating_sub(Duration::from_millis(node.info.started))
}

fn described(node: &Node, now: Duration) -> serde_json::Value {
    let load = node.info.load;
    serde_json::json!({
        "id": node.id.to_string(),
        "address": node.info.address,
        "version": node.info.version,
        "sessions": load.sessions,
        "running": load.running,
        "waiting": load.waiting,
        "draining": load.draining,
        "age_seconds": age(node, now).as_secs(),
    })
}

fn table(server: &Reached, nodes: &[Node], now: Duration) -> String {
    if nodes.is_empty() {
        return format!("no gateway runs in this cluster; {} answers\n", server.server);
    }
    let heading = ["ADDRESS", "VERSION", "SESSIONS", "RUNNING", "WAITING", "AGE", "STATE"].map(str::to_owned);
    let row = |node: &Node| {
        let load = node.info.load;
        let state = if load.draining { "draining" } else { "serving" };
        [
            escape::line(&node.info.address).into_owned(),
            escape::line(&node.info.version).into_owned(),
            load.sessions.to_string(),
            load.running.to_string(),
            load.waiting.to_string(),
            shown(age(node, now)),
            state.to_owned(),
        ]
    };
    let rows: Vec<_> = std::iter::once(heading).chain(nodes.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..7).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// In the two largest units.
fn shown(age: Duration) -> String {
    let seconds = age.as_secs();
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m {}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_its_two_largest_units() {
        for (seconds, expected) in [(5, "5s"), (65, "1m 5s"), (3_700, "1h 1m"), (90_000, "1d 1h")] {
            assert_eq!(shown(Duration::from_secs(seconds)), expected);
        }
    }
}
