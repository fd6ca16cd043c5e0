//! How much memory a session takes that nobody uses at the moment.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use gembridge_testkit::process_table::children_of;
use gembridge_testkit::raw_acp::RawAcp;

use super::runtime;
use crate::args::Args;
use crate::client::Client;
use crate::gemini::{self, Api, PlainCli, RawChat, Relaunch, Script};
use crate::house::House;
use crate::measure::{pss_mb, tree};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "density";
pub const ABOUT: &str = "memory (PSS) of 100 idle Gemini sessions in one process : a process for each session";

const SESSIONS: u8 = 100;
/// Long enough for what opening leaves behind to be collected.
const IDLE: Duration = Duration::from_secs(3);

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let api = Api::start()?;
    let runtime = runtime()?;
    let mut shared = Series::new("ours: 100 sessions, agent and guard", "MB");
    let mut processes = Series::new("ours: processes that serve them", "");
    let mut spare = Series::new("ours: the spare, counted apart", "MB");
    let mut own = Series::new("ours: this program itself", "MB");
    let mut chat = Series::new("one process with one session, our launch", "MB");
    let mut plain = Series::new("one process with one session, plain `gemini --acp`", "MB");
    let mut many = Series::new("100 processes, extrapolated from one of ours", "MB");
    let mut many_plain = Series::new("100 processes, extrapolated from a plain one", "MB");
    for _ in 0..args.rounds {
        let ours = runtime.block_on(hundred(&api))?;
        shared.push(ours.serving);
        processes.push(ours.processes);
        spare.push(ours.spare);
        own.push(pss_mb(&[std::process::id()]));
        let (one, one_plain) = (one_of_ours(&api)?, one_plain(&api)?);
        chat.push(one);
        plain.push(one_plain);
        many.push(one * f64::from(SESSIONS));
        many_plain.push(one_plain * f64::from(SESSIONS));
    }
    let mut report = Report::new(NAME, ABOUT);
    for series in [&shared, &processes, &spare, &own, &chat, &plain, &many, &many_plain] {
        report.show(series);
    }
    report.typical("100 idle sessions", &shared, Some(Bar::gate_at_most(700.0)));
    report.worst("processes that serve them", &processes, Some(Bar::gate_at_most(1.0)));
    report.ratio("plain processes (extrapolated) : ours", &many_plain, &shared, Some(Bar::goal_at_least(35.0)));
    report.ratio("processes of our launch (extrapolated) : ours", &many, &shared, None);
    Ok(report)
}

struct Hundred {
    serving: f64,
    processes: f64,
    spare: f64,
}

async fn hundred(api: &Api) -> anyhow::Result<Hundred> {
    let before = children_of(std::process::id());
    let house = api.house()?;
    house.warm().await?;
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let client = Client::attach(house.create().await?).await?;
        client.wake().await?;
        clients.push(client);
    }
    house.warm().await?;
    tokio::time::sleep(IDLE).await;
    let found = weigh(&house, &before)?;
    // They are alive: the first, one between and the last one answer.
    let script = Script::new();
    for place in [0, clients.len() / 2, clients.len() - 1] {
        clients[place].turn(&script.prompt, Instant::now()).await?.check(&script.pieces)?;
    }
    house.close().await;
    Ok(found)
}

fn weigh(house: &House, before: &[u32]) -> anyhow::Result<Hundred> {
    let serving = house.driver.processes();
    let of_serving = |tree: &[u32]| serving.iter().any(|process| process.pid.is_some_and(|pid| tree.contains(&pid)));
    let guards = children_of(std::process::id()).into_iter().filter(|guard| !before.contains(guard));
    let (used, unused): (Vec<_>, Vec<_>) = guards.map(tree).partition(|tree| of_serving(tree));
    anyhow::ensure!(used.len() == serving.len(), "{} trees for {} processes", used.len(), serving.len());
    Ok(Hundred {
        serving: used.iter().map(|tree| pss_mb(tree)).sum(),
        processes: u32::try_from(serving.len()).map(f64::from).context("too many processes")?,
        spare: unused.iter().map(|tree| pss_mb(tree)).sum(),
    })
}

fn one_of_ours(api: &Api) -> anyhow::Result<f64> {
    let mut raw = RawChat::start(api)?;
    raw.session();
    std::thread::sleep(IDLE);
    Ok(pss_mb(&tree(raw.pid())))
}

fn one_plain(api: &Api) -> anyhow::Result<f64> {
    let plain = PlainCli::new(api)?;
    let mut cli = RawAcp::start(plain.command(Relaunch::Default).arg("--acp"))?;
    cli.initialize();
    cli.open_session(&plain.workspace().display().to_string());
    std::thread::sleep(IDLE);
    let weight = pss_mb(&tree(cli.pid()));
    gemini::end(cli);
    Ok(weight)
}
