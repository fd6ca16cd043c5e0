//! Many clients that watch one session: each message goes to all of them.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::burst::{self, End};
use super::{SIZE, on_client_runtime};
use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::measure::{peak_memory_kb, process_cpu};
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::websocket::WebSocket;

/// Messages that all clients together get in a round.
const MESSAGES: usize = 1_000_000;
const BURST: u32 = 1_000;

pub fn measure(args: &Args, clients: usize, report: &mut Report) -> anyhow::Result<()> {
    let script = Script::Chunks { count: BURST, size: SIZE };
    let times = MESSAGES / (clients * BURST as usize);
    let series = |what: &str, unit| Series::new(format!("{clients} clients: {what}"), unit);
    let mut cpu = ["gateway", "relay that gathers"].map(|who| series(who, "µs/message"));
    let mut pace = ["gateway", "relay that gathers"].map(|who| series(who, "messages/ms"));
    let mut memory = series("gateway, most memory", "MB");
    on_client_runtime(async {
        let gateway = Gateway::start()?;
        let relay = Rival::start("ws-fan-relay")?;
        let mut crowds = [Crowd::at_gateway(&gateway, clients).await?, Crowd::at_relay(&relay, clients).await?];
        for round in 0..=args.rounds {
            for (place, crowd) in crowds.iter_mut().enumerate() {
                let cost = crowd.cost(script, times).await.map_err(|error| error.context(gateway.last_words()))?;
                // The first round finds out how large buffers must be.
                if round > 0 {
                    cpu[place].push(cost.cpu);
                    pace[place].push(cost.pace);
                }
            }
            memory.push(peak_memory_kb(gateway.pid())? / 1024.0);
        }
        anyhow::Ok(())
    })?;
    report.show_all(cpu.iter().chain(&pace).chain([&memory]));
    let dearer = Some(Bar::gate_at_most(1.5));
    report.ratio(format!("{clients} clients: CPU, gateway : relay that gathers"), &cpu[0], &cpu[1], dearer);
    Ok(())
}

/// One that prompts, and those that watch.
struct Crowd {
    first: WebSocket,
    watching: Vec<WebSocket>,
    /// What tells those that a burst is over.
    end: End,
    session: String,
    pid: u32,
}

struct Cost {
    cpu: f64,
    pace: f64,
}

impl Crowd {
    async fn at_gateway(gateway: &Gateway, clients: usize) -> anyhow::Result<Self> {
        let mut first = WebSocket::client(&gateway.target).await?;
        let session = first.begin().await?;
        let mut watching = Vec::new();
        while watching.len() + 1 < clients {
            let mut socket = WebSocket::client(&gateway.target).await?;
            socket.call("_gembridge/attach", &json!({"sessionId": session, "limit": 0})).await?;
            socket.until("_gembridge/replay_ended").await?;
            watching.push(socket);
        }
        Ok(Self { first, watching, end: End::Turn, session, pid: gateway.pid() })
    }

    async fn at_relay(relay: &Rival, clients: usize) -> anyhow::Result<Self> {
        let mut watching = Vec::new();
        for _ in 1..clients {
            watching.push(WebSocket::open(&relay.target, "/").await?);
        }
        let mut first = WebSocket::open(&relay.target, "/").await?;
        first.initialize().await?;
        let session = first.begin().await?;
        for socket in &mut watching {
            socket.until("\"sessionId\"").await?;
        }
        Ok(Self { first, watching, end: End::Answer, session, pid: relay.pid() })
    }

    async fn cost(&mut self, script: Script, times: usize) -> anyhow::Result<Cost> {
        let (before, since) = (process_cpu(self.pid)?, Instant::now());
        for _ in 0..times {
            self.burst(script).await?;
        }
        let (wall, spent) = (since.elapsed(), process_cpu(self.pid)?.saturating_sub(before));
        let messages = f64::from(script.count()) * f64::from(u32::try_from(times * (self.watching.len() + 1))?);
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Ok(Cost { cpu: micros(spent) / messages, pace: messages / micros(wall) * 1e3 })
    }

    async fn burst(&mut self, script: Script) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        for mut socket in self.watching.drain(..) {
            let end = self.end;
            tasks.spawn(async move {
                burst::read(&mut socket, script, end).await?;
                anyhow::Ok(socket)
            });
        }
        self.first.prompt(&self.session, &script.prompt()).await?;
        burst::read(&mut self.first, script, End::Answer).await?;
        while let Some(socket) = tasks.join_next().await {
            self.watching.push(socket??);
        }
        Ok(())
    }
}
