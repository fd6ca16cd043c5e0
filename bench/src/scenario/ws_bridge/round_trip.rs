//! One small message and its answer, one after another.

use std::time::Instant;

use super::on_client_runtime;
use crate::args::Args;
use crate::gateway::Gateway;
use crate::measure::{process_cpu, quantile};
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::websocket::{Reading, WebSocket};

/// Fewer than the gateway lets a client send in ten seconds.
const TIMES: u32 = 2_000;

const PING: &str = r#"{"jsonrpc":"2.0","id":"a ping","method":"$/ping","params":{}}"#;

pub fn measure(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let names = ["gateway", "bare echo"];
    let mut middle = names.map(|who| Series::new(format!("round trip, p50: {who}"), "µs"));
    let mut late = names.map(|who| Series::new(format!("round trip, p99: {who}"), "µs"));
    let mut cpu = names.map(|who| Series::new(format!("round trip, CPU: {who}"), "µs"));
    on_client_runtime(async {
        let (gateway, echo) = (Gateway::start()?, Rival::start("ws-echo")?);
        for _ in 0..args.rounds {
            let contenders = [
                (WebSocket::client(&gateway.target).await?, gateway.pid()),
                (WebSocket::open(&echo.target, "/").await?, echo.pid()),
            ];
            for (place, (mut socket, pid)) in contenders.into_iter().enumerate() {
                let before = process_cpu(pid)?;
                let mut times = Vec::new();
                for _ in 0..TIMES {
                    times.push(once(&mut socket).await?);
                }
                let spent = process_cpu(pid)?.saturating_sub(before);
                middle[place].push(quantile(&mut times, 0.5));
                late[place].push(quantile(&mut times, 0.99));
                cpu[place].push(spent.as_secs_f64() * 1e6 / f64::from(TIMES));
            }
        }
        anyhow::Ok(())
    })?;
    report.show_all(middle.iter().chain(&late).chain(&cpu));
    report.ratio("round trip, p50, gateway : bare echo", &middle[0], &middle[1], Some(Bar::goal_at_most(1.2)));
    report.ratio("round trip, CPU, gateway : bare echo", &cpu[0], &cpu[1], None);
    Ok(())
}

async fn once(socket: &mut WebSocket) -> anyhow::Result<f64> {
    let since = Instant::now();
    socket.send(PING).await?;
    socket
        .take(|answer| {
            let is_answer = memchr::memmem::find(answer, br#""id":"a ping""#).is_some();
            Ok(if is_answer { Reading::IsOver } else { Reading::GoesOn })
        })
        .await?;
    Ok(since.elapsed().as_secs_f64() * 1e6)
}
