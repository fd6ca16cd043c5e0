//! Two guests and an operator on one gateway, one of the guests hostile: what the other two wait, beside a quiet run.

mod attack;

use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use self::attack::Attack;
use crate::args::Args;
use crate::gateway::Gateway;
use crate::http::{Reply, Target};
use crate::measure::{load_average, memory_kb, millis, peak_memory_kb, quantile};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "hostile-guest";
pub const ABOUT: &str =
    "a guest and the operator, 10 new conversations a second each, beside a guest that floods: p50, p99, memory";

/// Requests of each of the two a second.
const RATE: u32 = 10;

/// Every so many requests have a body of 100 kB.
const LARGE_EVERY: usize = 10;

/// What bodies and messages may take of the memory; see docs/deployment.md.
const BUDGET_MB: f64 = 48.0;

/// What one client waited, in ms, and what it did not get.
#[derive(Default)]
struct Waited {
    times: Vec<f64>,
    errors: Vec<String>,
}

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let names = ["guest, quiet", "guest, hostile", "operator, quiet", "operator, hostile"];
    let mut p50 = names.map(|name| Series::new(format!("{name}, p50"), "ms"));
    let mut p99 = names.map(|name| Series::new(format!("{name}, p99"), "ms"));
    let mut errors = names.map(|name| Series::new(format!("{name}, errors"), ""));
    let [mut before, mut peak, mut grown] = [("memory, quiet", "MB"), ("memory, most", "MB"), ("memory, grown", "MB")]
        .map(|(name, unit)| Series::new(name, unit));
    let mut seen = Vec::new();
    let mut attacks = String::new();
    for _ in 0..args.rounds {
        super::runtime()?.block_on(async {
            let gateway = Gateway::start_with(args.agent.as_deref(), args.config.as_deref())?;
            let operator = gateway.target.clone();
            let [guest, eve] = [gateway.guest("bob")?, gateway.guest("eve")?];
            // The first request of each starts an agent.
            for target in [&guest, &eve, &operator] {
                asked(target, args, "warm up").await.map_err(|error| error.context(gateway.last_words()))?;
            }
            let quiet = both(&guest, &operator, args).await?;
            let resident = memory_kb(gateway.pid())? / 1024.0;
            let attack = Attack::begin(&eve, &operator);
            let hostile = both(&guest, &operator, args).await?;
            attacks = attack.end().await;
            let most = peak_memory_kb(gateway.pid())? / 1024.0;
            before.push(resident);
            peak.push(most);
            grown.push(most - resident);
            let [of_guest, of_operator] = quiet;
            let [of_guest_hostile, of_operator_hostile] = hostile;
            for (at, mut waited) in
                [of_guest, of_guest_hostile, of_operator, of_operator_hostile].into_iter().enumerate()
            {
                p50[at].push(quantile(&mut waited.times, 0.5));
                p99[at].push(quantile(&mut waited.times, 0.99));
                errors[at].push(f64::from(u32::try_from(waited.errors.len())?));
                seen.append(&mut waited.errors);
            }
            anyhow::Ok(())
        })?;
    }
    let mut report = Report::new(NAME, ABOUT);
    report.show_all(p50.iter().chain(&p99).chain(&errors).chain([&before, &peak, &grown]));
    let [guest, guest_hostile, operator, operator_hostile] = &p99;
    report.ratio("guest, p99: hostile : quiet", guest_hostile, guest, Some(Bar::gate_at_most(2.0)));
    report.ratio("operator, p99: hostile : quiet", operator_hostile, operator, Some(Bar::gate_at_most(2.0)));
    for failed in &errors {
        report.worst("errors", failed, Some(Bar::gate_at_most(0.0)));
    }
    report.worst("memory, grown", &grown, Some(Bar::gate_at_most(BUDGET_MB + 32.0)));
    report.note(format!("the hostile guest, last round: {attacks}"));
    seen.truncate(3);
    for error in &seen {
        report.note(format!("an error: {error}"));
    }
    report.note("a word of another client in an answer is an error; on the demo agent also a small prompt that is not said back");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// Both clients for the time of one phase.
async fn both(guest: &Target, operator: &Target, args: &Args) -> anyhow::Result<[Waited; 2]> {
    let (of_guest, of_operator) = tokio::join!(client(guest, args, "guest"), client(operator, args, "operator"));
    Ok([of_guest?, of_operator?])
}

/// Asks at a fixed rate, whatever is still under way: a request counts from when it was due.
async fn client(target: &Target, args: &Args, name: &'static str) -> anyhow::Result<Waited> {
    let mut due = tokio::time::interval(Duration::from_secs(1) / RATE);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut asking = JoinSet::new();
    let requests = usize::try_from(args.seconds * u64::from(RATE))?;
    for number in 0..requests {
        let at = due.tick().await;
        let (target, args) = (target.clone(), args.clone());
        let mut prompt = format!("{name}-{number}");
        if number % LARGE_EVERY == 0 {
            prompt.extend([" ", &"x".repeat(100_000)]);
        }
        asking.spawn(async move { (asked(&target, &args, &prompt).await, Instant::now() - at) });
    }
    let mut waited = Waited::default();
    while let Some(asked) = asking.join_next().await {
        match asked.context("a client's task ended")? {
            (Ok(()), time) => waited.times.push(millis(time)),
            (Err(error), _) => waited.errors.push(format!("{name}: {error:#}")),
        }
    }
    Ok(waited)
}

/// One new conversation on a connection of its own. The demo agent says a small prompt back, so that its own word must be in
/// the answer; of large prompts, and of other agents, any answer is enough. No answer may have a word of another client.
async fn asked(target: &Target, args: &Args, prompt: &str) -> anyhow::Result<()> {
    let mut connection = target.connect().await?;
    let is_said_back = args.agent.is_none() && prompt.len() < 1_000;
    let sent =
        if args.agent.is_some() || is_said_back { prompt.to_owned() } else { format!("chunks 1 size 20\n{prompt}") };
    let head = connection.ask(&target.chat(&sent, Reply::Whole, None)).await?;
    let body = connection.text(&head).await?;
    let body = String::from_utf8_lossy(&body);
    anyhow::ensure!(head.status == 200, "status {}: {body}", head.status);
    anyhow::ensure!(!is_said_back || body.contains(prompt), "`{prompt}` was not said back: {body}");
    for other in ["guest-", "operator-", attack::WORD] {
        anyhow::ensure!(
            prompt.starts_with(other) || !body.contains(other),
            "`{prompt}` was answered with `{other}`: {body}"
        );
    }
    Ok(())
}
