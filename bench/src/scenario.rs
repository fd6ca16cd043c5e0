//! What can be run. Each scenario goes round ours, the peers and the limit in one loop.

mod cold_ready;
mod density;
mod dialects;
mod firehose;
mod firehose_http;
mod history;
mod hostile_guest;
mod idle;
mod kill_under_load;
mod one_token;
mod paced;
mod spawn_vs_pool;
mod state_folder;
mod stateless;
mod thousand_clients;
mod tool_round;
mod transcript;
mod ws_bridge;

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
    Scenario { name: one_token::NAME, about: one_token::ABOUT, run: one_token::run },
    Scenario { name: stateless::NAME, about: stateless::ABOUT, run: stateless::run },
    Scenario { name: paced::NAME, about: paced::ABOUT, run: paced::run },
    Scenario { name: firehose_http::NAME, about: firehose_http::ABOUT, run: firehose_http::run },
    Scenario { name: dialects::NAME, about: dialects::ABOUT, run: dialects::run },
    Scenario { name: thousand_clients::NAME, about: thousand_clients::ABOUT, run: thousand_clients::run },
    Scenario { name: idle::NAME, about: idle::ABOUT, run: idle::run },
    Scenario { name: history::NAME, about: history::ABOUT, run: history::run },
    Scenario { name: hostile_guest::NAME, about: hostile_guest::ABOUT, run: hostile_guest::run },
    Scenario { name: tool_round::NAME, about: tool_round::ABOUT, run: tool_round::run },
    Scenario { name: state_folder::NAME, about: state_folder::ABOUT, run: state_folder::run },
    Scenario { name: transcript::NAME, about: transcript::ABOUT, run: transcript::run },
    Scenario { name: ws_bridge::NAME, about: ws_bridge::ABOUT, run: ws_bridge::run },
];

/// The runtime of the gateway.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// The runtime of clients: one thread, so that the other is the server's.
fn client_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
