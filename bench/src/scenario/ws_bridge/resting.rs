//! Sockets that are open and say nothing: what the gateway holds for each.

use std::time::Duration;

use serde_json::json;

use super::on_client_runtime;
use crate::args::Args;
use crate::gateway::Gateway;
use crate::http::Target;
use crate::measure::memory_kb;
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::websocket::WebSocket;

/// Between these two counts a socket's share is taken; what the first ones cost is the process's own.
const FEW: usize = 1_000;
const MANY: usize = 10_000;

/// Buffers that are given back after a while are given back by then.
const SETTLE: Duration = Duration::from_secs(3);

pub fn measure(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let names = ["gateway", "gateway, watching a session", "tungstenite"];
    let mut memory = names.map(|who| Series::new(format!("socket that waits: {who}"), "kB"));
    on_client_runtime(async {
        for _ in 0..args.rounds {
            let gateway = Gateway::start()?;
            memory[0].push(each(&gateway.target, gateway.pid(), &Kind::Greeted).await?);
            drop(gateway);
            let gateway = Gateway::start()?;
            let mut first = WebSocket::client(&gateway.target).await?;
            let kind = Kind::Watching(first.begin().await?);
            memory[1].push(each(&gateway.target, gateway.pid(), &kind).await?);
            drop(gateway);
            let rival = Rival::start("ws-echo")?;
            memory[2].push(each(&rival.target, rival.pid(), &Kind::Echoed).await?);
        }
        anyhow::Ok(())
    })?;
    report.show_all(&memory);
    let [greeted, watching, rival] = &memory;
    report.typical("socket that waits", greeted, Some(Bar::goal_at_most(16.0)));
    report.typical("socket that waits, watching a session", watching, Some(Bar::goal_at_most(16.0)));
    report.ratio("socket that waits, gateway : tungstenite", greeted, rival, None);
    Ok(())
}

/// What a socket has done before it waits.
enum Kind {
    /// It said who it is.
    Greeted,
    /// It watches this session as well.
    Watching(String),
    Echoed,
}

async fn each(target: &Target, pid: u32, kind: &Kind) -> anyhow::Result<f64> {
    let mut open = Vec::new();
    hold(target, kind, &mut open, FEW).await?;
    tokio::time::sleep(SETTLE).await;
    let before = memory_kb(pid)?;
    hold(target, kind, &mut open, MANY).await?;
    tokio::time::sleep(SETTLE).await;
    Ok((memory_kb(pid)? - before) / f64::from(u32::try_from(MANY - FEW)?))
}

async fn hold(target: &Target, kind: &Kind, open: &mut Vec<WebSocket>, count: usize) -> anyhow::Result<()> {
    while open.len() < count {
        let mut socket = match kind {
            Kind::Greeted | Kind::Watching(_) => WebSocket::client(target).await?,
            Kind::Echoed => {
                let mut socket = WebSocket::open(target, "/").await?;
                socket.send("here").await?;
                socket.until("here").await?;
                socket
            }
        };
        if let Kind::Watching(session) = kind {
            socket.call("_gembridge/attach", &json!({"sessionId": session, "limit": 0})).await?;
            socket.until("_gembridge/replay_ended").await?;
        }
        socket.rest();
        open.push(socket);
    }
    Ok(())
}
