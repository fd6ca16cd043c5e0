//! Two guests and an operator on one gateway, one of the guests hostile: what the other two wait, beside a quiet run.

mod attack;
mod stage;

use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep};

use self::attack::{Attack, Pace};
use self::stage::{Stage, Talk};
use crate::args::{Args, BenchAgent};
use crate::house::PATIENCE;
use crate::http::Target;
use crate::measure::{load_average, memory_kb, millis, peak_memory_kb, pss_mb, quantile, tree, whole_cpu};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "hostile-guest";
pub const ABOUT: &str =
    "a guest and the operator, requests at a fixed rate, beside a guest that floods: p50, p99, memory";

/// Every so many requests have a body of 100 kB.
const LARGE_EVERY: usize = 10;

/// What bodies and messages may take of the memory; see docs/deployment.md.
const BUDGET_MB: f64 = 48.0;

/// Words that stand in the prompts of one client alone.
const GUEST: &str = "word-of-the-guest";
const OPERATOR: &str = "word-of-the-operator";

const ROWS: [&str; 4] = ["guest, quiet", "guest, hostile", "operator, quiet", "operator, hostile"];

/// What one client waited, in ms, and what it did not get.
#[derive(Default)]
struct Waited {
    times: Vec<f64>,
    errors: Vec<String>,
}

/// The numbers of all rounds.
struct Findings {
    p50: [Series; 4],
    p99: [Series; 4],
    most: [Series; 4],
    errors: [Series; 4],
    /// The requests of all rounds, by row: one round of a slow agent has too few for a p99.
    all: [Vec<f64>; 4],
    own_quiet: Series,
    own_most: Series,
    own_grown: Series,
    tree_quiet: Series,
    tree_hostile: Series,
    processes: Series,
    said: Vec<String>,
    failed: Vec<String>,
}

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut findings = Findings::new();
    for _ in 0..args.rounds {
        super::runtime()?.block_on(round(args, &mut findings))?;
    }
    Ok(findings.report(args))
}

async fn round(args: &Args, findings: &mut Findings) -> anyhow::Result<()> {
    let stage = Stage::start(args).await?;
    let gateway = &stage.gateway;
    let operator = gateway.target.clone();
    let [guest, eve] = [gateway.key("bob", &[])?, gateway.key("eve", &[])?];
    let churner = gateway.key("churner", &["--admin"])?;
    // The first request of each starts an agent.
    let mut sessions = Vec::new();
    for target in [&guest, &operator, &eve] {
        let answered = asked(target, args, "warm up", None).await;
        sessions.push(answered.map_err(|error| error.context(gateway.last_words()))?);
    }
    let [guest, operator] = [(guest, GUEST), (operator, OPERATOR)].map(|(target, word)| {
        let session = sessions.remove(0);
        Client { target, word, session: (args.agent.talk() == Talk::GoesOn).then_some(session) }
    });
    settled(gateway.pid()).await?;
    let quiet = both(&guest, &operator, args).await?;
    stage.forget_requests();
    let resident = memory_kb(gateway.pid())? / 1024.0;
    let of_tree = pss_mb(&tree(gateway.pid()));
    let pace = if args.agent == BenchAgent::Demo { Pace::Fast } else { Pace::WithinTheLimit };
    let attack = Attack::begin(&eve, &churner, pace);
    let hostile = both(&guest, &operator, args).await?;
    let processes = tree(gateway.pid());
    findings.tree_hostile.push(pss_mb(&processes));
    findings.processes.push(f64::from(u32::try_from(processes.len())?));
    let attacked = attack.end().await;
    let most = peak_memory_kb(gateway.pid())? / 1024.0;
    findings.own_quiet.push(resident);
    findings.own_most.push(most);
    findings.own_grown.push(most - resident);
    findings.tree_quiet.push(of_tree);
    findings.said.push(format!("{}; load average {}", attacked.said, load_average()));
    findings.failed.extend(attacked.crossed);
    let [of_guest, of_operator] = quiet;
    let [of_guest_hostile, of_operator_hostile] = hostile;
    for (row, waited) in [of_guest, of_guest_hostile, of_operator, of_operator_hostile].into_iter().enumerate() {
        findings.add(row, waited)?;
    }
    Ok(())
}

impl Findings {
    fn new() -> Self {
        let by_row = |what: &str, unit| ROWS.map(|name| Series::new(format!("{name}, {what}"), unit));
        let memory = |name| Series::new(name, "MB");
        Self {
            p50: by_row("p50", "ms"),
            p99: by_row("p99", "ms"),
            most: by_row("most", "ms"),
            errors: by_row("errors", ""),
            all: <[Vec<f64>; 4]>::default(),
            own_quiet: memory("memory of the gateway, quiet"),
            own_most: memory("memory of the gateway, most"),
            own_grown: memory("memory of the gateway, grown"),
            tree_quiet: memory("memory with all agents, quiet"),
            tree_hostile: memory("memory with all agents, hostile"),
            processes: Series::new("processes, hostile", ""),
            said: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn add(&mut self, row: usize, mut waited: Waited) -> anyhow::Result<()> {
        self.p50[row].push(quantile(&mut waited.times, 0.5));
        self.p99[row].push(quantile(&mut waited.times, 0.99));
        self.most[row].push(quantile(&mut waited.times, 1.0));
        self.errors[row].push(f64::from(u32::try_from(waited.errors.len())?));
        self.all[row].append(&mut waited.times);
        self.failed.append(&mut waited.errors);
        Ok(())
    }

    fn report(mut self, args: &Args) -> Report {
        let mut report = Report::new(NAME, ABOUT);
        let of_all = |share: f64, all: &mut [Vec<f64>; 4]| {
            let mut row = 0;
            all.each_mut().map(|times| {
                let mut series = Series::new(format!("{}, p{:.0} of all rounds", ROWS[row], share * 100.0), "ms");
                series.push(quantile(times, share));
                row += 1;
                series
            })
        };
        let p50 = of_all(0.5, &mut self.all);
        let p99 = of_all(0.99, &mut self.all);
        report.show_all(self.p50.iter().chain(&self.p99).chain(&self.most).chain(&p50).chain(&p99).chain(&self.errors));
        let memory = [&self.own_quiet, &self.own_most, &self.own_grown, &self.tree_quiet, &self.tree_hostile];
        report.show_all(memory.into_iter().chain([&self.processes]));
        for (who, quiet, hostile) in [("guest", 0, 1), ("operator", 2, 3)] {
            let gate = Some(Bar::gate_at_most(2.0));
            report.ratio(format!("{who}, p50: hostile : quiet"), &p50[hostile], &p50[quiet], None);
            report.ratio(format!("{who}, p99: hostile : quiet"), &p99[hostile], &p99[quiet], gate);
            report.ratio(format!("{who}, p99 of a round: hostile : quiet"), &self.p99[hostile], &self.p99[quiet], None);
        }
        let mut failed = Series::new("errors, and words of others", "");
        failed.push(f64::from(u32::try_from(self.failed.len()).unwrap_or(u32::MAX)));
        report.worst("errors, and words of others", &failed, Some(Bar::gate_at_most(0.0)));
        report.worst("memory of the gateway, grown", &self.own_grown, Some(Bar::gate_at_most(BUDGET_MB + 32.0)));
        let rate = args.agent.rate(args);
        let requests: usize = self.all.iter().map(Vec::len).sum();
        let talk = match args.agent.talk() {
            Talk::Anew => "each a new conversation",
            Talk::GoesOn => "each the next message of the client's one conversation",
        };
        report.note(format!("{rate} requests a second of each, {talk}, {requests} in all"));
        for (round, said) in self.said.iter().enumerate() {
            report.note(format!("the hostile guest, round {}: {said}", round + 1));
        }
        for error in self.failed.iter().take(3) {
            report.note(format!("an error: {error}"));
        }
        report.note(
            "a word of another client in an answer is an error, the hostile guest's answers included; so is a small prompt \
             that is not said back",
        );
        report
    }
}

/// An honest client.
struct Client {
    target: Target,
    /// A marker in all prompts of this client and of no other.
    word: &'static str,
    /// Its one conversation, where it has one.
    session: Option<String>,
}

/// Waits until the agents that were started have nothing to do any more: spares, and sessions that are made ahead.
async fn settled(gateway: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = whole_cpu(&tree(gateway));
    loop {
        sleep(Duration::from_secs(1)).await;
        let now = whole_cpu(&tree(gateway));
        if now.saturating_sub(before) < Duration::from_millis(50) {
            return Ok(());
        }
        before = now;
        anyhow::ensure!(Instant::now() < deadline, "the agents are busy for {PATIENCE:?} after their first answers");
    }
}

/// Both clients for the time of one phase.
async fn both(guest: &Client, operator: &Client, args: &Args) -> anyhow::Result<[Waited; 2]> {
    let (of_guest, of_operator) = tokio::join!(guest.ask(args), operator.ask(args));
    Ok([of_guest?, of_operator?])
}

impl Client {
    /// Asks at a fixed rate, whatever is still under way: a request counts from when it was due.
    async fn ask(&self, args: &Args) -> anyhow::Result<Waited> {
        let Self { target, word, session } = self;
        let every = Duration::from_secs_f64(1.0 / args.agent.rate(args));
        let mut due = tokio::time::interval(every);
        due.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut asking = JoinSet::new();
        let end = Instant::now() + Duration::from_secs(args.seconds);
        for number in 0.. {
            let at = due.tick().await;
            if at >= end {
                break;
            }
            let (target, args, session) = (target.clone(), args.clone(), session.clone());
            let mut prompt = format!("{word}-{number}");
            if number % LARGE_EVERY == 0 && session.is_none() {
                prompt.extend([" ", &"x".repeat(100_000)]);
            }
            asking.spawn(async move {
                let answered = asked(&target, &args, &prompt, session.as_deref()).await;
                (answered, Instant::now() - at)
            });
        }
        let mut waited = Waited::default();
        while let Some(asked) = asking.join_next().await {
            match asked.context("a client's task ended")? {
                (Ok(_), time) => waited.times.push(millis(time)),
                (Err(error), _) => waited.errors.push(format!("{word}: {error:#}")),
            }
        }
        Ok(waited)
    }
}

/// One request on a connection of its own, in this conversation or in a new one, whose session it returns. All agents say a small prompt back, so that its own word must be in the
/// answer; of large prompts any answer is enough. No answer may have a word of another client.
async fn asked(target: &Target, args: &Args, prompt: &str, session: Option<&str>) -> anyhow::Result<String> {
    let mut connection = target.connect().await?;
    let is_small = prompt.len() < 1_000;
    // The demo agent would say a large prompt back word by word.
    let is_told_what_to_say = args.agent == BenchAgent::Demo && !is_small;
    let sent = if is_told_what_to_say { format!("chunks 1 size 20\n{prompt}") } else { prompt.to_owned() };
    let head = connection.ask(&target.chat_with(args.agent.name(), &sent, session)).await?;
    let body = connection.text(&head).await?;
    let body = String::from_utf8_lossy(&body);
    let start = |text: &str| text.chars().take(300).collect::<String>();
    anyhow::ensure!(head.status == 200, "status {}: {}", head.status, start(&body));
    anyhow::ensure!(!is_small || body.contains(prompt), "`{prompt}` was not said back: {}", start(&body));
    for other in [GUEST, OPERATOR, attack::WORD] {
        let is_own = prompt.starts_with(other);
        anyhow::ensure!(
            is_own || !body.contains(other),
            "`{}` was answered with `{other}`: {}",
            start(prompt),
            start(&body)
        );
    }
    head.session.context("the answer names no session")
}
