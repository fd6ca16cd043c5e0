//! A warm session through us, the same process bare, and a process for each request.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::runtime;
use crate::args::Args;
use crate::client::{Client, Turned};
use crate::gemini::{Api, PlainCli, RawChat, Relaunch, Script};
use crate::house::House;
use crate::measure::{living_cpu, median, millis, own_cpu};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "spawn-vs-pool";
pub const ABOUT: &str = "one request of 20 chunks on the real Gemini CLI, API without delay: \
     warm session through us : a process per request : bare warm ACP";

/// Requests of each warm contender in a round, sent at a fixed rate.
const REQUESTS: usize = 10;
/// Fresh sessions of each contender in a round: a process takes a hundred in its life.
const FRESH: usize = 5;
/// One request of one contender every so often.
const SLOT: Duration = Duration::from_millis(60);
/// Clients at once for the throughput.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// Requests of each client of ours; a spawning client makes one.
const PER_CLIENT: usize = 10;
/// A session that was just opened lets another be made ready behind it; that work is not the next request's.
const SETTLE: Duration = Duration::from_millis(250);

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut lab = Lab::open().await?;
        let mut tables = Tables::new();
        lab.round().await?;
        for _ in 0..args.rounds {
            tables.add(&lab.round().await?);
        }
        let mut report = tables.report();
        for clients in CLIENTS {
            throughput(&lab, clients, args.rounds, &mut report).await?;
        }
        lab.house.close().await;
        Ok(report)
    })
}

/// First token, total and CPU of one contender in one round, in milliseconds.
#[derive(Default)]
struct Sample {
    first: Vec<f64>,
    total: Vec<f64>,
    /// Agent and client together.
    cpu: Vec<f64>,
    /// The client's part of it: for ours, all of our code.
    own: Vec<f64>,
}

impl Sample {
    fn add(&mut self, turned: &Turned, spent: Spent) {
        self.first.push(millis(turned.first));
        self.total.push(millis(turned.total));
        self.cpu.push(millis(spent.own + spent.agent));
        self.own.push(millis(spent.own));
    }
}

/// CPU time of this process and of the agents, so far or between two looks.
#[derive(Clone, Copy)]
struct Spent {
    own: Duration,
    agent: Duration,
}

impl Spent {
    fn so_far(agents: &[u32]) -> Self {
        Self { own: own_cpu(), agent: living_cpu(agents) }
    }

    fn since(self, agents: &[u32]) -> Self {
        let now = Self::so_far(agents);
        Self { own: now.own.saturating_sub(self.own), agent: now.agent.saturating_sub(self.agent) }
    }
}

/// The contenders, in the order of their rows.
const NAMES: [&str; 7] = [
    "ours, same session",
    "ours, fresh session",
    "ours, fresh session, from its creation",
    "bare ACP, same session",
    "bare ACP, fresh session",
    "spawn, default",
    "spawn, no relaunch",
];

struct Lab {
    house: House,
    raw: RawChat,
    plain: PlainCli,
    script: Script,
    _api: Api,
}

impl Lab {
    async fn open() -> anyhow::Result<Self> {
        let api = Api::start()?;
        let house = api.house()?;
        let raw = RawChat::start(&api)?;
        house.warm().await?;
        let plain = PlainCli::new(&api)?;
        Ok(Self { house, raw, plain, script: Script::new(), _api: api })
    }

    async fn round(&mut self) -> anyhow::Result<[Sample; 7]> {
        // An agent takes longer the more was said before: both begin anew each round.
        let mut client = self.awake().await?;
        let raw_session = self.raw.session();
        tokio::time::sleep(SETTLE).await;
        let mut samples: [Sample; 7] = std::array::from_fn(|_| Sample::default());
        let mut slots = Slots::begin();
        for request in 0..REQUESTS {
            client = self.ours(client, slots.next().await, &mut samples[0]).await?;
            self.bare(&raw_session, slots.next().await, &mut samples[3])?;
            if request < FRESH {
                self.ours_fresh(&mut samples[1]).await?;
                self.ours_from_creation(&mut samples[2]).await?;
                let session = self.raw.session();
                tokio::time::sleep(SETTLE).await;
                self.bare(&session, None, &mut samples[4])?;
                slots = Slots::begin();
            }
        }
        for (place, relaunch) in [(5, Relaunch::Default), (6, Relaunch::Off)] {
            let (spawned, cpu) = self.plain.costed(&self.script, relaunch)?;
            samples[place].first.push(millis(spawned.first));
            samples[place].total.push(millis(spawned.total));
            samples[place].cpu.push(millis(cpu));
        }
        Ok(samples)
    }

    /// A session with its agent.
    async fn awake(&self) -> anyhow::Result<Client> {
        let client = Client::attach(self.house.create().await?).await?;
        client.wake().await?;
        Ok(client)
    }

    async fn ours(&self, client: Client, due: Option<Instant>, sample: &mut Sample) -> anyhow::Result<Client> {
        let agents = self.agents();
        let before = Spent::so_far(&agents);
        let (client, turned) = client.turn_as_task(&self.script.prompt, due).await?;
        sample.add(&turned, before.since(&agents));
        turned.check(&self.script.pieces)?;
        Ok(client)
    }

    /// A session that was made ready earlier.
    async fn ours_fresh(&self, sample: &mut Sample) -> anyhow::Result<()> {
        let client = self.awake().await?;
        tokio::time::sleep(SETTLE).await;
        self.ours(client, None, sample).await.map(drop)
    }

    /// All that a client without a session waits for: its record on disk, the session, the prompt.
    async fn ours_from_creation(&self, sample: &mut Sample) -> anyhow::Result<()> {
        tokio::time::sleep(SETTLE).await;
        let agents = self.agents();
        let before = Spent::so_far(&agents);
        let since = Instant::now();
        let client = Client::attach(self.house.create().await?).await?;
        let (_, turned) = client.turn_as_task(&self.script.prompt, Some(since)).await?;
        sample.add(&turned, before.since(&agents));
        tokio::time::sleep(SETTLE).await;
        turned.check(&self.script.pieces)
    }

    fn bare(&mut self, session: &str, due: Option<Instant>, sample: &mut Sample) -> anyhow::Result<()> {
        let agent = [self.raw.pid()];
        let before = Spent::so_far(&agent);
        let turned = self.raw.turn(session, &self.script, due.unwrap_or_else(Instant::now))?;
        sample.add(&turned, before.since(&agent));
        Ok(())
    }

    fn agents(&self) -> Vec<u32> {
        self.house.driver.processes().iter().filter_map(|process| process.pid).collect()
    }
}

/// A fixed rate. A request that comes late because the one before took too long counts from when it was due.
struct Slots {
    due: Instant,
}

impl Slots {
    fn begin() -> Self {
        Self { due: Instant::now() }
    }

    /// Waits for the next slot. Gives the time it was due if that has passed; the timer's own lateness is nobody's.
    async fn next(&mut self) -> Option<Instant> {
        self.due += SLOT;
        if self.due > Instant::now() {
            sleep_until(self.due.into()).await;
            return None;
        }
        Some(self.due)
    }
}

/// Rounds by contender.
struct Tables {
    first: [Series; 7],
    total: [Series; 7],
    cpu: [Series; 7],
    own: [Series; 7],
}

impl Tables {
    fn new() -> Self {
        let of = |what: &str| NAMES.map(|name| Series::new(format!("{name}: {what}"), "ms"));
        Self { first: of("first token"), total: of("total"), cpu: of("CPU"), own: of("CPU of the client alone") }
    }

    fn add(&mut self, samples: &[Sample; 7]) {
        for (place, sample) in samples.iter().enumerate() {
            self.first[place].push(median(&sample.first));
            self.total[place].push(median(&sample.total));
            self.cpu[place].push(median(&sample.cpu));
            self.own[place].push(median(&sample.own));
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::new(NAME, ABOUT);
        // A process per request has no client of its own.
        for series in self.first.iter().chain(&self.total).chain(&self.cpu).chain(&self.own[..5]) {
            report.show(series);
        }
        let [same, fresh, created, raw_same, raw_fresh, spawn, no_relaunch] = &self.first;
        report.ratio("first token, same session, ours : bare", same, raw_same, Some(Bar::gate_at_most(1.3)));
        report.ratio("first token, fresh session, ours : bare", fresh, raw_fresh, Some(Bar::gate_at_most(1.3)));
        report.ratio("first token, fresh from its creation, ours : bare", created, raw_fresh, None);
        // A process per request knows nothing of the one before: its like is a fresh session.
        report.ratio("first token, spawn : ours, fresh session", spawn, fresh, Some(Bar::gate_at_least(300.0)));
        report.ratio("first token, spawn : ours, same session", spawn, same, None);
        report.ratio("first token, spawn without relaunch : ours, fresh session", no_relaunch, fresh, None);
        report.ratio("first token, spawn : bare, fresh session", spawn, raw_fresh, None);
        let [same, fresh, _, raw_same, raw_fresh, spawn, no_relaunch] = &self.total;
        report.ratio("total, same session, ours : bare", same, raw_same, None);
        report.ratio("total, fresh session, ours : bare", fresh, raw_fresh, None);
        report.ratio("total, spawn : ours, fresh session", spawn, fresh, Some(Bar::goal_at_least(180.0)));
        report.ratio("total, spawn without relaunch : ours, fresh session", no_relaunch, fresh, None);
        report.ratio("total, spawn : bare, fresh session", spawn, raw_fresh, None);
        let [same, _, _, raw_same, _, spawn, no_relaunch] = &self.cpu;
        report.ratio("CPU, same session, ours : bare", same, raw_same, None);
        report.ratio("CPU, spawn : ours, same session", spawn, same, None);
        report.ratio("CPU, spawn without relaunch : ours, same session", no_relaunch, same, None);
        report
    }
}

async fn throughput(lab: &Lab, clients: usize, rounds: u32, report: &mut Report) -> anyhow::Result<()> {
    let mut ours = Series::new(format!("ours, {clients} clients"), "req/s");
    let mut spawn = Series::new(format!("spawn, default, {clients} clients"), "req/s");
    let mut sessions = Vec::new();
    for _ in 0..clients {
        sessions.push(lab.awake().await?);
    }
    tokio::time::sleep(SETTLE).await;
    for _ in 0..rounds {
        let (rate, back) = our_rate(sessions, &lab.script).await?;
        sessions = back;
        ours.push(rate);
        spawn.push(spawn_rate(&lab.plain, &lab.script, clients)?);
    }
    report.show(&ours);
    report.show(&spawn);
    let bar = (clients == 4).then_some(Bar::goal_at_least(120.0));
    report.ratio(format!("requests/s, {clients} clients, ours : spawn"), &ours, &spawn, bar);
    Ok(())
}

/// Every client prompts as soon as its turn has ended.
async fn our_rate(sessions: Vec<Client>, script: &Script) -> anyhow::Result<(f64, Vec<Client>)> {
    let started = Instant::now();
    let requests = sessions.len() * PER_CLIENT;
    let mut running = JoinSet::new();
    for mut client in sessions {
        let (prompt, pieces) = (script.prompt.clone(), script.pieces.clone());
        running.spawn(async move {
            for _ in 0..PER_CLIENT {
                client.turn(&prompt, Instant::now()).await?.check(&pieces)?;
            }
            anyhow::Ok(client)
        });
    }
    let mut back = Vec::new();
    while let Some(done) = running.join_next().await {
        back.push(done??);
    }
    Ok((rate(requests, started.elapsed()), back))
}

fn spawn_rate(plain: &PlainCli, script: &Script, clients: usize) -> anyhow::Result<f64> {
    let started = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> =
            (0..clients).map(|_| scope.spawn(|| plain.request(script, Relaunch::Default).map(drop))).collect();
        running.into_iter().try_for_each(|request| request.join().ok().context("a client panicked")?)
    })?;
    Ok(rate(clients, started.elapsed()))
}

fn rate(requests: usize, time: Duration) -> f64 {
    u32::try_from(requests).map_or(0.0, f64::from) / time.as_secs_f64()
}
