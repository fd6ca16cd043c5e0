//! An agent's messages on their way to WebSocket clients: what each costs the gateway, held against a relay that only
//! copies lines into frames; many clients on one session; joining long sessions; sockets that wait.

mod attach;
mod burst;
mod crowd;
mod resting;
mod round_trip;
mod single;

use crate::args::Args;
use crate::measure::load_average;
use crate::report::Report;

pub const NAME: &str = "ws-bridge";
pub const ABOUT: &str = "CPU per message from an agent to WebSocket clients: gateway : raw relay; joining; waiting";

/// Bytes of a piece of text.
const SIZE: usize = 60;

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    if args.is_wanted(1) {
        single::measure(args, &mut report)?;
    }
    for clients in [100, 1_000] {
        if args.is_wanted(clients) {
            crowd::measure(args, clients, &mut report)?;
        }
    }
    if args.clients.is_none() {
        round_trip::measure(args, &mut report)?;
        attach::measure(args, &mut report)?;
        resting::measure(args, &mut report)?;
    }
    report.note(
        "the relay sends each line of its agent as it comes; the one that gathers sends those that are there together. Neither \
         reads, numbers or keeps anything: the gateway writes each message to disk before anybody sees it",
    );
    report.note(
        "CPU of the gateway and of the relay alone: agents, guards and clients are left out. Every message is compared \
         with what the agent sent, our marks taken out, and their numbers leave no gap",
    );
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// A runtime for one part of the scenario.
fn on_client_runtime<T>(part: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    super::client_runtime()?.block_on(part)
}
