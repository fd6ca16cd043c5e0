//! A call of a client's tool, out to the client and back: what waiting for it adds to what the agent itself takes, and what
//! a call that waits costs in memory.

mod bare_server;
mod client;
mod waiting;

use serde_json::json;

use self::bare_server::BareServer;
use self::client::Client;
use crate::args::Args;
use crate::gateway::Gateway;
use crate::measure::{load_average, millis, quantile};
use crate::raw_agent::Alone;
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "tool-round";
pub const ABOUT: &str = "one round of a client's tool over the agent's own time, and the memory of a call that waits";

/// Rounds that are timed for each number.
const TIMED: u32 = 200;
/// Calls that wait while others are timed.
const CROWD: usize = 200;

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut own = Series::new("agent with a bare tool server: round", "ms");
    let series = |name: &str| Series::new(name, "ms");
    let mut alone = [series("added, 1 call waits: p50"), series("added, 1 call waits: p99")];
    let mut crowded = [series("added, 200 calls wait: p50"), series("added, 200 calls wait: p99")];
    let mut memory = waiting::Memory::default();
    for _ in 0..args.rounds {
        super::client_runtime()?.block_on(async {
            let agents = own_round().await?;
            own.push(agents);
            let gateway = Gateway::start()?;
            add(&mut alone, rounds_of_one(&gateway).await?, agents);
            add(&mut crowded, rounds_in_a_crowd(&gateway).await?, agents);
            drop(gateway);
            memory.measure().await
        })?;
    }
    let mut report = Report::new(NAME, ABOUT);
    report.show_all([&own].into_iter().chain(&alone).chain(&crowded).chain(memory.series()));
    report.typical("added by one round, p50", &alone[0], None);
    report.typical("added by one round, 200 waiting, p50", &crowded[0], None);
    report.typical("added by one round, 200 waiting, p99", &crowded[1], None);
    report.typical("a call that waits, beyond its connection", memory.beyond(), Some(Bar::gate_at_most(4.0)));
    report.note(
        "a round is from the result that the client sends to the next call that it is told; 25 ms of it are the time in \
         which further calls of the same round are waited for. With 200 waiting, each of their clients goes one round, one \
         after the other",
    );
    report.note(waiting::NOTE);
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// What one round takes where the tool answers at once, in ms.
async fn own_round() -> anyhow::Result<f64> {
    let server = BareServer::start().await?;
    let mut agent = Alone::with_tools(json!([server.entry()])).await?;
    agent.turn("rounds 10 pick {}").await?;
    let took = agent.turn(&format!("rounds {TIMED} pick {{}}")).await?;
    Ok(millis(took) / f64::from(TIMED))
}

async fn rounds_of_one(gateway: &Gateway) -> anyhow::Result<Vec<f64>> {
    let mut client = Client::begin(gateway, &format!("rounds {} pick {{}}", TIMED + 1)).await?;
    let mut times = Vec::new();
    for _ in 0..TIMED {
        times.push(millis(client.round().await?));
    }
    Ok(times)
}

async fn rounds_in_a_crowd(gateway: &Gateway) -> anyhow::Result<Vec<f64>> {
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(Client::begin(gateway, "rounds 3 pick {}").await?);
    }
    let mut times = Vec::new();
    for client in &mut crowd {
        times.push(millis(client.round().await?));
    }
    Ok(times)
}

/// The middle and the end of what was measured, less what the agent takes by itself.
fn add(series: &mut [Series; 2], mut times: Vec<f64>, own: f64) {
    for (series, share) in series.iter_mut().zip([0.5, 0.99]) {
        series.push(quantile(&mut times, share) - own);
    }
}
