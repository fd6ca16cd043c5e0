//! One client of one agent: bursts as fast as they go, and words that come one by one.

use std::time::{Duration, Instant};

use super::burst::{self, End};
use super::{SIZE, on_client_runtime};
use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::measure::process_cpu;
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::websocket::WebSocket;

/// Messages of a burst, and bursts of a round: a client that keeps up is never behind by as much as one burst.
const BURST: Script = Script::Chunks { count: 10_000, size: SIZE };
const BURSTS: u32 = 20;

/// Words that wait for each other: what it costs to be woken for each.
const WORDS: Script = Script::Paced { count: 500, every: 2 };

const RELAYS: [&str; 2] = ["ws-relay-line-by-line", "ws-relay"];

pub fn measure(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let names = ["gateway", "relay", "relay that gathers"];
    let mut cpu = names.map(|who| Series::new(format!("burst: {who}"), "µs/message"));
    let mut pace = names.map(|who| Series::new(format!("burst: {who}"), "messages/ms"));
    let mut words = names.map(|who| Series::new(format!("a word each 2 ms: {who}"), "µs/message"));
    let mut per_core = Series::new("gateway", "messages/s/core");
    on_client_runtime(async {
        let gateway = Gateway::start()?;
        let mut lanes = vec![Lane::to_gateway(&gateway).await?];
        let rivals = RELAYS.map(Rival::start);
        for rival in rivals.iter().flatten() {
            lanes.push(Lane::to_relay(rival).await?);
        }
        anyhow::ensure!(lanes.len() == names.len(), "a relay did not start");
        for round in 0..=args.rounds {
            for (place, lane) in lanes.iter_mut().enumerate() {
                let (bursts, alone) = (lane.cost(BURST, BURSTS).await, lane.cost(WORDS, 1).await);
                let told = |error: anyhow::Error| error.context(format!("{}; {}", names[place], gateway.last_words()));
                let (bursts, alone) = (bursts.map_err(told)?, alone.map_err(told)?);
                // The first round finds out how large buffers must be.
                if round > 0 {
                    cpu[place].push(bursts.cpu);
                    pace[place].push(bursts.pace);
                    words[place].push(alone.cpu);
                    if place == 0 {
                        per_core.push(1e6 / bursts.cpu);
                    }
                }
            }
        }
        anyhow::Ok(())
    })?;
    report.show_all(cpu.iter().chain([&per_core]).chain(&pace).chain(&words));
    report.ratio("burst: CPU, gateway : relay", &cpu[0], &cpu[1], Some(Bar::gate_at_most(1.5)));
    let dearer = Some(Bar::goal_at_most(1.5));
    report.ratio("burst: CPU, gateway : relay that gathers", &cpu[0], &cpu[2], dearer);
    report.typical("burst: messages/s per core", &per_core, Some(Bar::goal_at_least(1e6)));
    report.ratio("words one by one: CPU, gateway : relay", &words[0], &words[1], dearer);
    report.ratio("words one by one: CPU, gateway : relay that gathers", &words[0], &words[2], dearer);
    Ok(())
}

/// A client, and the process that serves it.
struct Lane {
    socket: WebSocket,
    session: String,
    pid: u32,
}

struct Cost {
    cpu: f64,
    pace: f64,
}

impl Lane {
    async fn to_gateway(gateway: &Gateway) -> anyhow::Result<Self> {
        let mut socket = WebSocket::client(&gateway.target).await?;
        let session = socket.begin().await?;
        Ok(Self { socket, session, pid: gateway.pid() })
    }

    async fn to_relay(relay: &Rival) -> anyhow::Result<Self> {
        let mut socket = WebSocket::open(&relay.target, "/").await?;
        socket.initialize().await?;
        let session = socket.begin().await?;
        Ok(Self { socket, session, pid: relay.pid() })
    }

    async fn cost(&mut self, script: Script, times: u32) -> anyhow::Result<Cost> {
        let (before, since) = (process_cpu(self.pid)?, Instant::now());
        for _ in 0..times {
            self.socket.prompt(&self.session, &script.prompt()).await?;
            burst::read(&mut self.socket, script, End::Answer).await?;
        }
        let (wall, spent) = (since.elapsed(), process_cpu(self.pid)?.saturating_sub(before));
        let messages = f64::from(script.count() * times);
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Ok(Cost { cpu: micros(spent) / messages, pace: messages / micros(wall) * 1e3 })
    }
}
