//! Clients that keep their own history, as nearly all clients of this API do: a new conversation for each request, and a
//! conversation that is sent again with every message. Beside acp2api, which serves the same agent from Node.js.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::args::Args;
use crate::frames::{Script, content};
use crate::gateway::Gateway;
use crate::http::{Connection, Reply, Target};
use crate::measure::{load_average, quantile};
use crate::raw_agent::Alone;
use crate::report::{Bar, Report, Series};
use crate::rivals::{Acp2Api, Rival};

pub const NAME: &str = "stateless";
pub const ABOUT: &str = "a new conversation and a resent history, time added and CPU: the gateway : acp2api";

const SCRIPT: Script = Script::Chunks { count: 1, size: 60 };

/// Clients at once, each with the next request as soon as it has its answer, and conversations of each a round.
const CROWDS: [Crowd; 3] = [
    Crowd { clients: 1, conversations: 12 },
    Crowd { clients: 64, conversations: 2 },
    Crowd { clients: 1_000, conversations: 1 },
];

/// Messages of the user in a conversation. The first begins it, the others send all of it again.
const MESSAGES: u32 = 10;

#[derive(Clone, Copy)]
struct Crowd {
    clients: usize,
    conversations: u32,
}

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    for crowd in CROWDS.into_iter().filter(|crowd| args.is_wanted(crowd.clients)) {
        let runtime = super::client_runtime()?;
        let found = runtime.block_on(async {
            let mut table = Table::start(crowd, &mut report).await?;
            for round in 0..=args.rounds {
                let is_kept = round > 0;
                table.round(is_kept).await.map_err(|error| error.context(table.gateway.last_words()))?;
            }
            anyhow::Ok(table.found)
        })?;
        found.tell(crowd, &mut report);
    }
    report.note(format!(
        "a conversation has {MESSAGES} messages of the user; added = time to the end of the answer, less the medians of the \
         bare agent and of bare HTTP (with one client only: a crowd waits for itself); CPU is that of the server alone"
    ));
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// Everybody that takes turns in one crowd.
struct Table {
    crowd: Crowd,
    gateway: Gateway,
    acp2api: Option<Acp2Api>,
    bare: Rival,
    agent: Alone,
    found: Found,
}

/// What one contender took in a round.
#[derive(Default)]
struct Times {
    new: Vec<f64>,
    resent: Vec<f64>,
    new_cpu: Duration,
    resent_cpu: Duration,
}

impl Table {
    async fn start(crowd: Crowd, report: &mut Report) -> anyhow::Result<Self> {
        let acp2api = match Acp2Api::start() {
            Ok(acp2api) => Some(acp2api),
            Err(error) => {
                report.note(format!("acp2api is left out: {error:#}"));
                None
            }
        };
        Ok(Self {
            crowd,
            gateway: Gateway::start()?,
            acp2api,
            bare: Rival::start("bare-server")?,
            agent: Alone::start().await?,
            found: Found::new(crowd.clients),
        })
    }

    async fn round(&mut self, is_kept: bool) -> anyhow::Result<()> {
        let mut floor = 0.0;
        if self.crowd.clients == 1 {
            let mut agent = Vec::new();
            for _ in 0..MESSAGES * self.crowd.conversations {
                agent.push(self.agent.turn(&SCRIPT.prompt()).await?.as_secs_f64() * 1e6);
            }
            let mut bare = conversations(&self.bare.target, self.crowd, || Ok(Duration::ZERO)).await?;
            floor = quantile(&mut agent, 0.5) + quantile(&mut bare.resent, 0.5);
        }
        let gateway = &self.gateway;
        let ours = conversations(&gateway.target, self.crowd, || gateway.cpu()).await?;
        let theirs = match &self.acp2api {
            Some(acp2api) => Some(conversations(&acp2api.target, self.crowd, || acp2api.cpu()).await?),
            None => None,
        };
        if is_kept {
            self.found.ours.keep(ours, floor);
            if let Some(theirs) = theirs {
                self.found.acp2api.keep(theirs, floor);
            }
        }
        Ok(())
    }
}

/// Conversations of all clients. The first message of each is sent by all clients before any sends the second, so that the
/// CPU of new conversations can be told from that of the rest.
async fn conversations(
    target: &Target,
    crowd: Crowd,
    cpu: impl Fn() -> anyhow::Result<Duration>,
) -> anyhow::Result<Times> {
    let mut times = Times::default();
    let mut clients = Vec::new();
    for _ in 0..crowd.clients {
        clients.push(Client { connection: target.connect().await?, history: Vec::new() });
    }
    for _ in 0..crowd.conversations {
        for client in &mut clients {
            client.history.clear();
        }
        let before = cpu()?;
        times.new.extend(send(target, &mut clients, 1).await?);
        let between = cpu()?;
        times.resent.extend(send(target, &mut clients, MESSAGES - 1).await?);
        times.new_cpu += between.saturating_sub(before);
        times.resent_cpu += cpu()?.saturating_sub(between);
    }
    Ok(times)
}

struct Client {
    connection: Connection,
    history: Vec<Value>,
}

/// So many messages of each client, each with all that was said before. The time of each.
async fn send(target: &Target, clients: &mut Vec<Client>, count: u32) -> anyhow::Result<Vec<f64>> {
    let mut tasks = JoinSet::new();
    for mut client in clients.drain(..) {
        let target = target.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..count {
                times.push(client.say(&target).await?);
            }
            anyhow::Ok((client, times))
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (client, of_client) = done??;
        clients.push(client);
        times.extend(of_client);
    }
    Ok(times)
}

impl Client {
    /// The next message; how long its answer took, in microseconds.
    async fn say(&mut self, target: &Target) -> anyhow::Result<f64> {
        self.history.push(json!({"role": "user", "content": SCRIPT.prompt()}));
        let request = target.conversation(&Value::from(self.history.clone()).to_string(), Reply::Whole, None);
        let since = Instant::now();
        let head = self.connection.ask(&request).await?;
        let body = self.connection.text(&head).await?;
        let took = since.elapsed().as_secs_f64() * 1e6;
        anyhow::ensure!(head.status == 200, "status {}: {}", head.status, String::from_utf8_lossy(&body));
        let mut expected = Vec::new();
        SCRIPT.write(1, &mut expected);
        anyhow::ensure!(content(&body) == Some(&expected[..]), "an answer is `{}`", String::from_utf8_lossy(&body));
        self.history.push(json!({"role": "assistant", "content": String::from_utf8(expected)?}));
        Ok(took)
    }
}

/// The rounds of one crowd.
struct Found {
    ours: FoundSet,
    acp2api: FoundSet,
}

struct FoundSet {
    new: Row,
    resent: Row,
}

/// One kind of request at one contender.
struct Row {
    p50: Series,
    added: Series,
    cpu: Series,
}

impl Found {
    fn new(clients: usize) -> Self {
        let row = |who: &str, kind: &str| {
            let series = |what: &str| Series::new(format!("{clients} clients, {kind}: {who}{what}"), "µs");
            Row { p50: series(", p50"), added: series(" added, p50"), cpu: series(", CPU a request") }
        };
        let set = |who: &str| FoundSet { new: row(who, "new conversation"), resent: row(who, "resent history") };
        Self { ours: set("gateway"), acp2api: set("acp2api") }
    }

    fn tell(&self, crowd: Crowd, report: &mut Report) {
        let rows = [("new conversation", &self.ours.new, &self.acp2api.new)];
        let rows = rows.into_iter().chain([("resent history", &self.ours.resent, &self.acp2api.resent)]);
        for (kind, ours, theirs) in rows {
            let clients = crowd.clients;
            for row in [ours, theirs] {
                report.show_all([&row.p50, &row.added, &row.cpu]);
            }
            if theirs.cpu.is_empty() {
                continue;
            }
            let cpu = Some(Bar::gate_at_most(0.25));
            report.ratio(format!("{clients} clients, {kind}: CPU, gateway : acp2api"), &ours.cpu, &theirs.cpu, cpu);
            if clients == 1 {
                let title = format!("{clients} clients, {kind}: added p50, gateway : acp2api");
                report.ratio(title, &ours.added, &theirs.added, Some(Bar::gate_at_most(1.0 / 3.0)));
            } else {
                report.ratio(
                    format!("{clients} clients, {kind}: p50, gateway : acp2api"),
                    &ours.p50,
                    &theirs.p50,
                    None,
                );
            }
        }
        let cpu = (&self.ours.new.cpu, &self.ours.resent.cpu);
        report.ratio(format!("{} clients: CPU, new conversation : resent history", crowd.clients), cpu.0, cpu.1, None);
    }
}

impl FoundSet {
    fn keep(&mut self, mut times: Times, floor: f64) {
        self.new.keep(&mut times.new, times.new_cpu, floor);
        self.resent.keep(&mut times.resent, times.resent_cpu, floor);
    }
}

impl Row {
    fn keep(&mut self, times: &mut [f64], cpu: Duration, floor: f64) {
        let p50 = quantile(times, 0.5);
        self.p50.push(p50);
        if floor > 0.0 {
            self.added.push(p50 - floor);
        }
        let requests = u32::try_from(times.len().max(1)).unwrap_or(u32::MAX);
        self.cpu.push(cpu.as_secs_f64() * 1e6 / f64::from(requests));
    }
}
