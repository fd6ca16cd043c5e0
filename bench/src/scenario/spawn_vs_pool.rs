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
const FRESH: usize = 4;
/// One request of one contender every so often.
const SLOT: Duration = Duration::from_millis(60);
/// Clients at once for the throughput.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// Requests of each client of ours; a spawning client makes one.
const PER_CLIENT: usize = 10;
/// A session that was just opened lets another be made ready behind it; that work is not the next request's.
const SETTLE: Duration = Duration::from_millis(400);

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut lab = Lab::open().await?;
        let mut tables = Tables::new();
        lab.round().await?;
        for _ in 0..args.rounds {
            tables.add(lab.round().await?);
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
    cpu: Vec<f64>,
}

impl Sample {
    fn add(&mut self, turned: &Turned, cpu: Duration) {
        self.first.push(millis(turned.first));
        self.total.push(millis(turned.total));
        self.cpu.push(millis(cpu));
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
    raw_session: String,
    client: Client,
    plain: PlainCli,
    script: Script,
    _api: Api,
}

impl Lab {
    async fn open() -> anyhow::Result<Self> {
        let api = Api::start()?;
        let house = api.house()?;
        let mut raw = RawChat::start(&api)?;
        let raw_session = raw.session();
        house.warm().await?;
        let client = Client::attach(house.create().await?).await?;
        client.wake().await?;
        house.warm().await?;
        let plain = PlainCli::new(&api)?;
        Ok(Self { house, raw, raw_session, client, plain, script: Script::new(), _api: api })
    }

    async fn round(&mut self) -> anyhow::Result<[Sample; 7]> {
        let mut samples: [Sample; 7] = std::array::from_fn(|_| Sample::default());
        let mut slots = Slots::begin();
        for request in 0..REQUESTS {
            self.ours(slots.next().await, &mut samples[0]).await?;
            let session = self.raw_session.clone();
            self.bare(&session, slots.next().await, &mut samples[3])?;
            if request < FRESH {
                self.ours_fresh(&mut samples[1]).await?;
                self.ours_from_creation(&mut samples[2]).await?;
                let session = self.raw.session();
                tokio::time::sleep(SETTLE).await;
                self.bare(&session, Instant::now(), &mut samples[4])?;
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

    async fn ours(&mut self, since: Instant, sample: &mut Sample) -> anyhow::Result<()> {
        let agent = self.agents();
        let before = own_cpu() + living_cpu(&agent);
        let turned = self.client.turn(&self.script.prompt, since).await?;
        sample.add(&turned, (own_cpu() + living_cpu(&agent)).saturating_sub(before));
        turned.check(&self.script.pieces)
    }

    /// A session that was made ready earlier.
    async fn ours_fresh(&mut self, sample: &mut Sample) -> anyhow::Result<()> {
        let mut client = Client::attach(self.house.create().await?).await?;
        client.wake().await?;
        tokio::time::sleep(SETTLE).await;
        let agent = self.agents();
        let before = own_cpu() + living_cpu(&agent);
        let turned = client.turn(&self.script.prompt, Instant::now()).await?;
        sample.add(&turned, (own_cpu() + living_cpu(&agent)).saturating_sub(before));
        turned.check(&self.script.pieces)
    }

    /// All that a client without a session waits for: its record on disk, the session, the prompt.
    async fn ours_from_creation(&mut self, sample: &mut Sample) -> anyhow::Result<()> {
        tokio::time::sleep(SETTLE).await;
        let agent = self.agents();
        let before = own_cpu() + living_cpu(&agent);
        let since = Instant::now();
        let mut client = Client::attach(self.house.create().await?).await?;
        let turned = client.turn(&self.script.prompt, since).await?;
        sample.add(&turned, (own_cpu() + living_cpu(&agent)).saturating_sub(before));
        tokio::time::sleep(SETTLE).await;
        turned.check(&self.script.pieces)
    }

    fn bare(&mut self, session: &str, since: Instant, sample: &mut Sample) -> anyhow::Result<()> {
        let agent = [self.raw.pid()];
        let before = own_cpu() + living_cpu(&agent);
        let turned = self.raw.turn(session, &self.script, since)?;
        sample.add(&turned, (own_cpu() + living_cpu(&agent)).saturating_sub(before));
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

    async fn next(&mut self) -> Instant {
        self.due += SLOT;
        if self.due > Instant::now() {
            sleep_until(self.due.into()).await;
            // The timer's own lateness is nobody's.
            return Instant::now();
        }
        self.due
    }
}

/// Rounds by contender.
struct Tables {
    first: [Series; 7],
    total: [Series; 7],
    cpu: [Series; 7],
}

impl Tables {
    fn new() -> Self {
        let of = |what: &str| NAMES.map(|name| Series::new(format!("{name}: {what}"), "ms"));
        Self { first: of("first token"), total: of("total"), cpu: of("CPU") }
    }

    fn add(&mut self, samples: [Sample; 7]) {
        for (place, sample) in samples.iter().enumerate() {
            self.first[place].push(median(&sample.first));
            self.total[place].push(median(&sample.total));
            self.cpu[place].push(median(&sample.cpu));
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::new(NAME, ABOUT);
        for series in self.first.iter().chain(&self.total).chain(&self.cpu) {
            report.show(series);
        }
        let [same, fresh, created, raw_same, raw_fresh, spawn, no_relaunch] = &self.first;
        report.ratio("first token, same session, ours : bare", same, raw_same, Some(Bar::gate_at_most(1.3)));
        report.ratio("first token, fresh session, ours : bare", fresh, raw_fresh, Some(Bar::gate_at_most(1.3)));
        report.ratio("first token, fresh from its creation, ours : bare", created, raw_fresh, None);
        report.ratio("first token, spawn : ours, same session", spawn, same, Some(Bar::gate_at_least(300.0)));
        report.ratio("first token, spawn : ours, fresh session", spawn, fresh, None);
        report.ratio("first token, spawn without relaunch : ours, same session", no_relaunch, same, None);
        report.ratio("first token, spawn : bare, same session", spawn, raw_same, None);
        let [same, fresh, _, raw_same, raw_fresh, spawn, no_relaunch] = &self.total;
        report.ratio("total, same session, ours : bare", same, raw_same, None);
        report.ratio("total, fresh session, ours : bare", fresh, raw_fresh, None);
        report.ratio("total, spawn : ours, same session", spawn, same, Some(Bar::goal_at_least(180.0)));
        report.ratio("total, spawn without relaunch : ours, same session", no_relaunch, same, None);
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
        let client = Client::attach(lab.house.create().await?).await?;
        client.wake().await?;
        sessions.push(client);
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
