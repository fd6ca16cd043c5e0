//! What waits and does nothing: memory of the gateway for each connection kept open, and for each silent stream.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::args::Args;
use crate::gateway::Gateway;
use crate::http::{Connection, Reply, Target};
use crate::measure::{anonymous_memory_kb, load_average, memory_kb};
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;

pub const NAME: &str = "idle";
pub const ABOUT: &str = "memory per idle HTTP connection and per silent stream: gateway : axum by default : no buffer";

/// Between these two counts a connection's share is taken; what the first ones cost is the process's own.
const FEW: usize = 1_000;
const MANY: usize = 10_000;
const FEW_STREAMS: usize = 100;
const MANY_STREAMS: usize = 1_000;

/// Buffers that are given back after a while are given back by then.
const SETTLE: Duration = Duration::from_secs(3);

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let series = |name: &str, unit| Series::new(name, unit);
    let mut connection = ["gateway", "axum", "bufferless task"].map(|who| series(&format!("connection: {who}"), "kB"));
    let mut stream = ["gateway", "axum"].map(|who| series(&format!("silent stream: {who}"), "kB"));
    let mut process = series("gateway, nothing open", "MB");
    let mut heap = series("gateway, nothing open, without program and libraries", "MB");
    let mut busy = series("gateway, 1000 silent streams", "MB");
    for _ in 0..args.rounds {
        super::client_runtime()?.block_on(async {
            let gateway = Gateway::start()?;
            tokio::time::sleep(SETTLE).await;
            process.push(memory_kb(gateway.pid())? / 1024.0);
            heap.push(anonymous_memory_kb(gateway.pid())? / 1024.0);
            connection[0].push(each_connection(&gateway.target, gateway.pid()).await?);
            drop(gateway);
            for (place, word) in ["axum-server", "bufferless-server"].into_iter().enumerate() {
                let rival = Rival::start(word)?;
                connection[place + 1].push(each_connection(&rival.target, rival.pid()).await?);
            }
            let gateway = Gateway::start()?;
            let (each, all) = each_stream(&gateway.target, gateway.pid()).await?;
            stream[0].push(each);
            busy.push(all);
            drop(gateway);
            let rival = Rival::start("axum-server")?;
            stream[1].push(each_stream(&rival.target, rival.pid()).await?.0);
            anyhow::Ok(())
        })?;
    }
    let mut report = Report::new(NAME, ABOUT);
    report.show_all(connection.iter().chain(&stream).chain([&process, &heap, &busy]));
    report.typical("connection", &connection[0], Some(Bar::goal_at_most(8.0)));
    report.ratio("connection, gateway : axum", &connection[0], &connection[1], None);
    report.ratio("connection, gateway : bufferless task", &connection[0], &connection[2], None);
    report.ratio("silent stream, gateway : axum", &stream[0], &stream[1], None);
    report.typical("process, nothing open", &process, Some(Bar::goal_at_most(12.0)));
    report.typical("process, 1000 silent streams", &busy, Some(Bar::goal_at_most(32.0)));
    report.note(
        "a connection has had one answer and waits for the next request, from 1000 to 10 000 of them; a stream is a \
         turn that waits, with its session, log and place at an agent, from 100 to 1000; resident memory, 3 s later",
    );
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

async fn each_connection(target: &Target, pid: u32) -> anyhow::Result<f64> {
    let mut open = Vec::new();
    hold(target, &mut open, FEW, After::Answer).await?;
    tokio::time::sleep(SETTLE).await;
    let before = memory_kb(pid)?;
    hold(target, &mut open, MANY, After::Answer).await?;
    tokio::time::sleep(SETTLE).await;
    Ok((memory_kb(pid)? - before) / f64::from(u32::try_from(MANY - FEW)?))
}

/// The share of one stream in kB, and the memory of the process with all of them in MB.
async fn each_stream(target: &Target, pid: u32) -> anyhow::Result<(f64, f64)> {
    let mut open = Vec::new();
    hold(target, &mut open, FEW_STREAMS, After::FirstPiece).await?;
    tokio::time::sleep(SETTLE).await;
    let before = memory_kb(pid)?;
    hold(target, &mut open, MANY_STREAMS, After::FirstPiece).await?;
    tokio::time::sleep(SETTLE).await;
    let after = memory_kb(pid)?;
    Ok(((after - before) / f64::from(u32::try_from(MANY_STREAMS - FEW_STREAMS)?), after / 1024.0))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Answer,
    /// The stream says no more, and does not end.
    FirstPiece,
}

/// Opens connections until there are `count`, some at a time, and leaves each where it stands then.
async fn hold(target: &Target, open: &mut Vec<Connection>, count: usize, after: After) -> anyhow::Result<()> {
    while open.len() < count {
        let mut tasks = JoinSet::new();
        for _ in 0..50.min(count - open.len()) {
            let target = target.clone();
            tasks.spawn(async move { one(&target, after).await });
        }
        while let Some(connection) = tasks.join_next().await {
            open.push(connection??);
        }
    }
    Ok(())
}

async fn one(target: &Target, after: After) -> anyhow::Result<Connection> {
    let mut connection = target.connect().await?;
    let request = match after {
        After::Answer => target.get("/health"),
        // Says something first, so that the head of the answer comes at once.
        After::FirstPiece => target.chat("chunks 1 size 20\nwait", Reply::Stream, None),
    };
    let head = connection.ask(&request).await?;
    anyhow::ensure!(head.status == 200, "status {}", head.status);
    if after == After::Answer {
        connection.text(&head).await?;
        connection.rest();
    }
    Ok(connection)
}
