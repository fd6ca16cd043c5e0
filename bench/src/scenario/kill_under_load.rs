//! The agent is killed while every session has a turn running. The spare takes over.

use std::time::{Duration, Instant};

use gembridge_core::model::{Outcome, TurnId};
use gembridge_drivers::profile::Environment;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;

use super::runtime;
use crate::args::Args;
use crate::client::Client;
use crate::gemini::{Api, Script};
use crate::house::{self, House};
use crate::measure::{largest, median, millis};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "kill-under-load";
pub const ABOUT: &str = "first token of the next prompt after `kill -9` of an agent that takes 2 s to start : \
     of an undisturbed prompt";

/// What a cold start costs at least.
const COLD: Duration = Duration::from_secs(2);
const SESSIONS: [usize; 3] = [1, 10, 100];

/// Two pieces, told apart by their number.
const ASKED: &str = "chunks 2 size 20";

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = runtime()?;
    let mut report = Report::new(NAME, ABOUT);
    let mut rows = SESSIONS.map(Rows::new);
    for _ in 0..args.rounds {
        for row in &mut rows {
            runtime.block_on(row.round())?;
        }
    }
    for row in &rows {
        row.add_to(&mut report);
    }
    real(args, &runtime, &mut report)?;
    report.note(
        "next: the first prompt after the kill, when its client has seen its turn end; others: the rest, one by one; \
         at once: after a second kill, all sessions together",
    );
    Ok(report)
}

struct Rows {
    sessions: usize,
    undisturbed: Series,
    next: Series,
    others: Series,
    at_once: Series,
    at_once_worst: Series,
    slowest: Series,
}

impl Rows {
    fn new(sessions: usize) -> Self {
        let row = |what: &str| Series::new(format!("{sessions} sessions: {what}"), "ms");
        Self {
            sessions,
            undisturbed: row("undisturbed, median"),
            next: row("next"),
            others: row("others, median"),
            at_once: row("at once, median"),
            at_once_worst: row("at once, worst"),
            slowest: row("slowest of all"),
        }
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        let delay = COLD.as_millis().to_string();
        let (mut profile, program) = house::demo(&["--start-delay-ms", &delay])?;
        profile.limits.sessions_per_process = 1_000;
        let house = House::open(profile, program, Environment::new())?;
        house.warm().await?;
        let mut clients = Vec::new();
        for _ in 0..self.sessions {
            let client = Client::attach(house.create().await?).await?;
            client.wake().await?;
            clients.push(client);
        }
        one_by_one(&mut clients).await?;
        house.warm().await?;
        let undisturbed = one_by_one(&mut clients).await?;

        kill_while_all_talk(&house, &mut clients).await?;
        let after = one_by_one(&mut clients).await?;
        house.warm().await?;
        kill_while_all_talk(&house, &mut clients).await?;
        let together = all_at_once(clients).await?;
        house.close().await;

        self.undisturbed.push(median(&undisturbed));
        self.next.push(after[0]);
        self.others.push(median(if after.len() > 1 { &after[1..] } else { &after }));
        self.at_once.push(median(&together));
        self.at_once_worst.push(largest(&together));
        self.slowest.push(largest(&after).max(largest(&together)));
        Ok(())
    }

    fn add_to(&self, report: &mut Report) {
        for series in [&self.undisturbed, &self.next, &self.others, &self.at_once, &self.at_once_worst, &self.slowest] {
            report.show(series);
        }
        let name = |what: &str| format!("{} sessions: {what}", self.sessions);
        report.typical(name("next first token"), &self.next, Some(Bar::gate_at_most(10.0)));
        report.ratio(name("next : undisturbed"), &self.next, &self.undisturbed, None);
        report.ratio(name("at once : undisturbed"), &self.at_once, &self.undisturbed, None);
        let cold = Bar::gate_at_most(millis(COLD) - 1.0);
        report.worst(name("slowest of all, never a cold start"), &self.slowest, Some(cold));
    }
}

/// The same with one session of the real Gemini CLI.
fn real(args: &Args, runtime: &tokio::runtime::Runtime, report: &mut Report) -> anyhow::Result<()> {
    let (api, script) = (Api::start()?, Script::new());
    let mut undisturbed = Series::new("Gemini CLI, 1 session: undisturbed", "ms");
    let mut next = Series::new("Gemini CLI, 1 session: next", "ms");
    for _ in 0..args.rounds {
        runtime.block_on(async {
            let house = api.house()?;
            house.warm().await?;
            let mut client = Client::attach(house.create().await?).await?;
            for _ in 0..5 {
                client.turn(&script.prompt, Instant::now()).await?.check(&script.pieces)?;
            }
            let turned = client.turn(&script.prompt, Instant::now()).await?;
            undisturbed.push(millis(turned.first));
            house.warm().await?;
            let turn = client.prompt(r#"SCRIPT:{"calls":[[{"text":"first"},{"stall":true}]]}:END"#).await?;
            client.spoke(turn).await?;
            kill_agent(&house)?;
            interrupted(&mut client, turn).await?;
            let turned = client.turn(&script.prompt, Instant::now()).await?;
            turned.check(&script.pieces)?;
            next.push(millis(turned.first));
            house.close().await;
            anyhow::Ok(())
        })?;
    }
    report.show(&undisturbed);
    report.show(&next);
    report.ratio("Gemini CLI, 1 session: next : undisturbed", &next, &undisturbed, None);
    Ok(())
}

/// The first token of a prompt on each session, one after another.
async fn one_by_one(clients: &mut [Client]) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    for client in clients {
        times.push(ask(client).await?);
    }
    Ok(times)
}

async fn all_at_once(clients: Vec<Client>) -> anyhow::Result<Vec<f64>> {
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move { ask(&mut client).await });
    }
    let mut times = Vec::new();
    while let Some(asked) = asking.join_next().await {
        times.push(asked??);
    }
    Ok(times)
}

async fn ask(client: &mut Client) -> anyhow::Result<f64> {
    let turned = client.turn(ASKED, Instant::now()).await?;
    turned.check(&["1.................. ".to_owned(), "2.................. ".to_owned()])?;
    Ok(millis(turned.first))
}

/// Ends the agent while every session has a turn running; each turn must end, interrupted.
async fn kill_while_all_talk(house: &House, clients: &mut [Client]) -> anyhow::Result<()> {
    let mut turns = Vec::new();
    for client in clients.iter_mut() {
        let turn = client.prompt("slow 100000 20").await?;
        client.spoke(turn).await?;
        turns.push(turn);
    }
    kill_agent(house)?;
    for (client, turn) in clients.iter_mut().zip(turns) {
        interrupted(client, turn).await?;
    }
    Ok(())
}

fn kill_agent(house: &House) -> anyhow::Result<()> {
    let number = house.agent_pid()?;
    let agent = i32::try_from(number).ok().and_then(Pid::from_raw);
    let agent = agent.ok_or_else(|| anyhow::anyhow!("`{number}` is no process"))?;
    Ok(kill_process(agent, Signal::KILL)?)
}

async fn interrupted(client: &mut Client, turn: TurnId) -> anyhow::Result<()> {
    let turned = client.finish(turn, Instant::now()).await?;
    anyhow::ensure!(matches!(turned.outcome, Outcome::Interrupted(_)), "the turn ended as {:?}", turned.outcome);
    Ok(())
}
