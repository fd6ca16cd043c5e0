//! From nothing to an agent that has answered `initialize`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gembridge_testkit::raw_acp::RawAcp;
use gembridge_testkit::real_gemini;

use super::runtime;
use crate::args::Args;
use crate::gemini::{self, Api, PlainCli, Relaunch};
use crate::house::{House, profile};
use crate::measure::{ended_children_cpu, millis, pss_mb, tree, whole_cpu};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "cold-ready";
pub const ABOUT: &str = "start to `initialize` answered: our launch profile : plain `gemini --acp` : `node -e 0`";

/// What one start cost.
struct Start {
    ready: Duration,
    cpu: Duration,
    pss: f64,
}

struct Rows {
    ready: Series,
    cpu: Series,
    pss: Series,
}

impl Rows {
    fn new(name: &str) -> Self {
        let row = |what: &str, unit| Series::new(format!("{name}: {what}"), unit);
        Self { ready: row("ready", "ms"), cpu: row("CPU", "ms"), pss: row("PSS", "MB") }
    }

    fn add(&mut self, start: &Start) {
        self.ready.push(millis(start.ready));
        self.cpu.push(millis(start.cpu));
        self.pss.push(start.pss);
    }
}

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let api = Api::start()?;
    let plain = PlainCli::new(&api)?;
    // What Node keeps between starts lies here, as it does in the gateway's cache.
    let cache = tempfile::tempdir()?;
    let mut rows = ["ours", "ours, other node", "plain", "node -e 0"].map(Rows::new);
    for round in 0..=args.rounds {
        let ours = ours(&api, cache.path(), None)?;
        let other = args.node.as_deref().map(|node| self::ours(&api, cache.path(), Some(node))).transpose()?;
        let (plain, node) = (start_plain(&plain)?, node()?);
        // The first round fills caches, on disk and in the kernel.
        if round > 0 {
            for (row, start) in rows.iter_mut().zip([Some(&ours), other.as_ref(), Some(&plain), Some(&node)]) {
                if let Some(start) = start {
                    row.add(start);
                }
            }
        }
    }
    Ok(report(&rows, args))
}

fn report(rows: &[Rows; 4], args: &Args) -> Report {
    let [ours, other, plain, node] = rows;
    let mut report = Report::new(NAME, ABOUT);
    let contenders = if args.node.is_some() { vec![ours, other] } else { vec![ours] };
    for row in contenders.iter().chain(&[plain]) {
        for series in [&row.ready, &row.cpu, &row.pss] {
            report.show(series);
        }
    }
    report.show(&node.ready);
    report.show(&node.cpu);
    for (name, row) in ["ours", "ours, other node"].iter().zip(contenders) {
        report.ratio(format!("ready, plain : {name}"), &plain.ready, &row.ready, Some(Bar::goal_at_least(2.0)));
        report.ratio(format!("CPU, plain : {name}"), &plain.cpu, &row.cpu, Some(Bar::goal_at_least(1.9)));
        report.ratio(format!("PSS, plain : {name}"), &plain.pss, &row.pss, Some(Bar::goal_at_least(1.5)));
        report.ratio(format!("ready, {name} : node"), &row.ready, &node.ready, None);
    }
    if args.node.is_none() {
        report
            .note("Node before 22 keeps no compiled code between starts; `--node FOLDER` adds a row with another one");
    }
    report
}

/// A spare of the driver: guard, files of the profile and all.
fn ours(api: &Api, cache: &Path, node: Option<&Path>) -> anyhow::Result<Start> {
    let mut profile = profile("gemini")?;
    profile.limits.premade_sessions = 0;
    let kept = cache.join(if node.is_some() { "other" } else { "usual" }).display().to_string();
    profile.environment.set.insert("NODE_COMPILE_CACHE".to_owned(), kept);
    let environment = api.environment(node)?;
    let others = tree(std::process::id());
    runtime()?.block_on(async {
        let started = Instant::now();
        let house = House::open(profile, real_gemini(), environment)?;
        house.warm().await?;
        let ready = started.elapsed();
        let mut agent = tree(std::process::id());
        agent.retain(|pid| !others.contains(pid));
        let start = Start { ready, cpu: whole_cpu(&agent), pss: pss_mb(&agent) };
        house.close().await;
        Ok(start)
    })
}

fn start_plain(plain: &PlainCli) -> anyhow::Result<Start> {
    let started = Instant::now();
    let mut cli = RawAcp::start(plain.command(Relaunch::Default).arg("--acp"))?;
    let answer = cli.initialize();
    let ready = started.elapsed();
    anyhow::ensure!(answer["result"]["agentInfo"].is_object(), "the CLI refused `initialize`: {answer}");
    let agent = tree(cli.pid());
    let start = Start { ready, cpu: whole_cpu(&agent), pss: pss_mb(&agent) };
    gemini::end(cli);
    Ok(start)
}

/// What any program in Node costs. It ends too soon for its memory to be seen, which is not shown.
fn node() -> anyhow::Result<Start> {
    let (started, before) = (Instant::now(), ended_children_cpu()?);
    let mut command = Command::new("node");
    let status = command.args(["-e", "0"]).stdin(Stdio::null()).status().context("`node` is not on `PATH`")?;
    anyhow::ensure!(status.success(), "`node -e 0` ended with {status}");
    Ok(Start { ready: started.elapsed(), cpu: ended_children_cpu()?.saturating_sub(before), pss: 0.0 })
}
