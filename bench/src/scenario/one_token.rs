//! A prompt that is answered with one piece of text: what the gateway adds to the agent's own round trip and to HTTP
//! itself, beside what nginx adds to HTTP as a plain proxy.

mod load;

use std::time::Duration;

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::http::{Reply, Target};
use crate::measure::{load_average, quantile};
use crate::raw_agent::{Alone, Shared};
use crate::report::{Bar, Report, Series};
use crate::rivals::{Nginx, Rival};
use crate::streams::{Lane, lanes};

use self::load::{Rate, at_rate, at_rate_raw, one_after_another};

pub const NAME: &str = "one-token";
pub const ABOUT: &str =
    "added time of POST → one piece: the gateway over agent and HTTP : nginx over HTTP : bare hyper";

pub const SCRIPT: Script = Script::Chunks { count: 1, size: 60 };

/// Clients at once. One waits for each answer; more send at a fixed rate.
const CROWDS: [Crowd; 3] = [
    Crowd { clients: 1, rate: None },
    Crowd { clients: 64, rate: Some(Rate { a_second: 500, lasting: Duration::from_secs(2) }) },
    Crowd { clients: 1_000, rate: Some(Rate { a_second: 500, lasting: Duration::from_secs(2) }) },
];

/// Contenders take turns after so many requests of the one client, so many times a round.
const BLOCK: u32 = 50;
const BLOCKS: u32 = 8;

/// As many sessions as a gateway keeps waiting by default.
const KEPT: usize = 256;

/// Sessions of one agent process, as the gateway fills them.
const SESSIONS: usize = 64;

#[derive(Clone, Copy)]
struct Crowd {
    clients: usize,
    rate: Option<Rate>,
}

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    for crowd in CROWDS.into_iter().filter(|crowd| args.is_wanted(crowd.clients)) {
        // Each with a gateway that has seen nothing yet.
        let runtime = super::client_runtime()?;
        let found = runtime.block_on(async {
            let mut table = Table::start(crowd).await?;
            for round in 0..=args.rounds {
                let rows = table.round().await.map_err(|error| error.context(table.gateway.last_words()))?;
                // The first round warms everything up.
                if round > 0 {
                    table.keep(rows);
                }
            }
            anyhow::Ok(table.found)
        })?;
        found.tell(crowd, &mut report);
    }
    report.note(
        "added = time to the end of the answer, less the medians of the bare agent and of bare HTTP (nginx: of bare \
         HTTP); the sessions go on, by `x-session-id`; a new conversation for each request has rows of its own, at a gateway of its own",
    );
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// Everybody that takes turns in one crowd.
struct Table {
    crowd: Crowd,
    gateway: Gateway,
    /// Begins a session for each request, beside the other, which shall not pay for it.
    beginner: Gateway,
    bare: Rival,
    nginx: Nginx,
    alone: Option<Alone>,
    shared: Vec<std::sync::Arc<Shared>>,
    calls: u64,
    ours: Vec<Lane>,
    fresh: Vec<Lane>,
    plain: Vec<Lane>,
    proxied: Vec<Lane>,
    found: Found,
}

/// What one contender took, in microseconds.
#[derive(Default)]
struct Times {
    times: Vec<f64>,
    cpu: Duration,
}

struct Rows {
    agent: Times,
    of: [Set; 2],
}

/// The contenders of one kind of reply.
#[derive(Default)]
struct Set {
    ours: Times,
    fresh: Times,
    bare: Times,
    nginx: Times,
}

const REPLIES: [(Reply, &str); 2] = [(Reply::Whole, "JSON"), (Reply::Stream, "SSE")];

impl Table {
    async fn start(crowd: Crowd) -> anyhow::Result<Self> {
        let (gateway, beginner) = (Gateway::start()?, Gateway::start()?);
        let bare = Rival::start("bare-server")?;
        let nginx = Nginx::before(bare.target.address)?;
        let mut ours: Vec<Lane> = gateway.seats(crowd.clients.min(KEPT)).await?.into_iter().map(Lane::from).collect();
        // The others share these sessions, and wait for each other where they must.
        for place in ours.len()..crowd.clients {
            let session = ours[place % KEPT].session.clone();
            ours.push(Lane { connection: gateway.target.connect().await?, session });
        }
        let (mut alone, mut shared) = (None, Vec::new());
        if crowd.rate.is_none() {
            alone = Some(Alone::start().await?);
        } else {
            for _ in 0..crowd.clients.div_ceil(SESSIONS) {
                shared.push(Shared::start(SESSIONS).await?);
            }
        }
        Ok(Self {
            crowd,
            alone,
            shared,
            calls: 0,
            ours,
            fresh: lanes(&beginner.target, crowd.clients).await?,
            plain: lanes(&bare.target, crowd.clients).await?,
            proxied: lanes(&nginx.target, crowd.clients).await?,
            found: Found::new(crowd.clients),
            gateway,
            beginner,
            bare,
            nginx,
        })
    }

    async fn round(&mut self) -> anyhow::Result<Rows> {
        let mut rows = Rows { agent: Times::default(), of: [Set::default(), Set::default()] };
        let blocks = if self.crowd.rate.is_some() { 1 } else { BLOCKS };
        for _ in 0..blocks {
            self.agent(&mut rows.agent).await?;
            for ((reply, _), set) in REPLIES.into_iter().zip(&mut rows.of) {
                let before = self.gateway.cpu()?;
                let target = self.gateway.target.clone();
                set.ours.times.extend(ask(self.crowd, &target, &mut self.ours, reply).await?);
                set.ours.cpu += self.gateway.cpu()?.saturating_sub(before);
                let before = self.beginner.cpu()?;
                let target = self.beginner.target.clone();
                set.fresh.times.extend(ask(self.crowd, &target, &mut self.fresh, reply).await?);
                set.fresh.cpu += self.beginner.cpu()?.saturating_sub(before);
                set.bare.times.extend(ask(self.crowd, &self.bare.target, &mut self.plain, reply).await?);
                let before = self.nginx.cpu()?;
                set.nginx.times.extend(ask(self.crowd, &self.nginx.target, &mut self.proxied, reply).await?);
                set.nginx.cpu += self.nginx.cpu()?.saturating_sub(before);
            }
        }
        Ok(rows)
    }

    async fn agent(&mut self, times: &mut Times) -> anyhow::Result<()> {
        if let Some(alone) = &mut self.alone {
            for _ in 0..BLOCK {
                times.times.push(alone.turn(&SCRIPT.prompt()).await?.as_secs_f64() * 1e6);
            }
        } else if let Some(rate) = self.crowd.rate {
            times.times.extend(at_rate_raw(&self.shared, self.crowd.clients, rate, &mut self.calls).await?);
        }
        Ok(())
    }

    fn keep(&mut self, rows: Rows) {
        let Rows { mut agent, of } = rows;
        let agent_p50 = quantile(&mut agent.times, 0.5);
        self.found.agent.push(agent_p50);
        for (mut set, found) in of.into_iter().zip(&mut self.found.of) {
            let bare = quantile(&mut set.bare.times, 0.5);
            let ours = &mut set.ours.times;
            found.bare.push(bare);
            found.ours.push(quantile(ours, 0.5));
            found.ours_added.push(quantile(ours, 0.5) - agent_p50 - bare);
            found.ours_added_p99.push(quantile(ours, 0.99) - agent_p50 - bare);
            found.ours_cpu.push(each(set.ours.cpu, ours.len()));
            let nginx = &mut set.nginx.times;
            found.nginx_added.push(quantile(nginx, 0.5) - bare);
            found.nginx_added_p99.push(quantile(nginx, 0.99) - bare);
            found.nginx_cpu.push(each(set.nginx.cpu, nginx.len()));
            let fresh = &mut set.fresh.times;
            found.fresh.push(quantile(fresh, 0.5));
            found.fresh_cpu.push(each(set.fresh.cpu, fresh.len()));
        }
    }
}

fn each(cpu: Duration, requests: usize) -> f64 {
    cpu.as_secs_f64() * 1e6 / f64::from(u32::try_from(requests.max(1)).unwrap_or(u32::MAX))
}

async fn ask(crowd: Crowd, target: &Target, lanes: &mut Vec<Lane>, reply: Reply) -> anyhow::Result<Vec<f64>> {
    match crowd.rate {
        Some(rate) => at_rate(target, lanes, reply, rate).await,
        None => one_after_another(target, &mut lanes[0], reply, BLOCK).await,
    }
}

/// The rounds of one crowd.
struct Found {
    agent: Series,
    of: [FoundSet; 2],
}

struct FoundSet {
    bare: Series,
    ours: Series,
    fresh: Series,
    ours_added: Series,
    ours_added_p99: Series,
    nginx_added: Series,
    nginx_added_p99: Series,
    ours_cpu: Series,
    fresh_cpu: Series,
    nginx_cpu: Series,
}

impl Found {
    fn new(clients: usize) -> Self {
        let of = REPLIES.map(|(_, name)| {
            let series = |what: &str| Series::new(format!("{clients} clients, {name}: {what}"), "µs");
            FoundSet {
                bare: series("bare hyper, p50"),
                ours: series("gateway, p50"),
                fresh: series("gateway, a new conversation each, p50"),
                ours_added: series("gateway added, p50"),
                ours_added_p99: series("gateway added, p99"),
                nginx_added: series("nginx added, p50"),
                nginx_added_p99: series("nginx added, p99"),
                ours_cpu: series("gateway CPU a request"),
                fresh_cpu: series("gateway CPU a new conversation"),
                nginx_cpu: series("nginx CPU a request"),
            }
        });
        Self { agent: Series::new(format!("{clients} clients: bare agent, p50"), "µs"), of }
    }

    fn tell(&self, crowd: Crowd, report: &mut Report) {
        report.show(&self.agent);
        for ((_, name), set) in REPLIES.into_iter().zip(&self.of) {
            let clients = crowd.clients;
            report.show_all([&set.bare, &set.ours, &set.fresh, &set.ours_added, &set.nginx_added]);
            report.show_all([&set.ours_added_p99, &set.nginx_added_p99, &set.ours_cpu, &set.fresh_cpu]);
            report.show(&set.nginx_cpu);
            let most = |limit| (clients == 1).then_some(Bar::gate_at_most(limit));
            let title = format!("{clients} clients, {name}: p50, new conversation : session that goes on");
            report.ratio(title, &set.fresh, &set.ours, most(1.3));
            let title = format!("{clients} clients, {name}: CPU, new conversation : session that goes on");
            report.ratio(title, &set.fresh_cpu, &set.ours_cpu, most(1.5));
            // A thousand clients of one machine are mostly the machine.
            let gate = (clients < 1_000).then_some(Bar::gate_at_most(1.0));
            let title = format!("{clients} clients, {name}: added p50, gateway : nginx");
            report.ratio(title, &set.ours_added, &set.nginx_added, gate);
            if clients == 1 {
                let goal = |limit| Some(Bar::goal_at_most(limit));
                report.typical(format!("{clients} clients, {name}: added p50"), &set.ours_added, goal(15.0));
                report.typical(format!("{clients} clients, {name}: added p99"), &set.ours_added_p99, goal(40.0));
            }
            report.ratio(
                format!("{clients} clients, {name}: CPU, gateway : nginx"),
                &set.ours_cpu,
                &set.nginx_cpu,
                None,
            );
        }
    }
}
