//! What can be run. Each scenario goes round ours, the peers and the limit in one loop.

mod cold_ready;
mod density;
mod firehose;
mod kill_under_load;
mod spawn_vs_pool;

use crate::args::Args;
use crate::report::Report;

pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Args) -> anyhow::Result<Report>,
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: spawn_vs_pool::NAME, about: spawn_vs_pool::ABOUT, run: spawn_vs_pool::run },
    Scenario { name: cold_ready::NAME, about: cold_ready::ABOUT, run: cold_ready::run },
    Scenario { name: kill_under_load::NAME, about: kill_under_load::ABOUT, run: kill_under_load::run },
    Scenario { name: firehose::NAME, about: firehose::ABOUT, run: firehose::run },
    Scenario { name: density::NAME, about: density::ABOUT, run: density::run },
];

/// The runtime of the gateway.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
