//! Agents that talk as fast as they can, read by clients over HTTP: CPU of the gateway for each event.

use std::time::Duration;

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::http::Target;
use crate::measure::{load_average, process_cpu};
use crate::report::{Bar, Report, Series};
use crate::rivals::{LiteLlm, Nginx, Rival};
use crate::streams::{Begin, Gaps, Lane, Plan, lanes, run as run_streams};

pub const NAME: &str = "firehose-http";
pub const ABOUT: &str = "CPU per 60-byte event of unpaced streams: gateway : nginx, LiteLLM as proxies : bare hyper";

/// Bytes of a piece.
const SIZE: usize = 60;

/// How many streams at once, of how many pieces, how often one after another.
struct Case {
    streams: usize,
    chunks: u32,
    times: u32,
}

const CASES: [Case; 8] = [
    Case { streams: 1, chunks: 100, times: 100 },
    Case { streams: 10, chunks: 100, times: 20 },
    Case { streams: 100, chunks: 100, times: 5 },
    Case { streams: 1_000, chunks: 100, times: 1 },
    Case { streams: 1, chunks: 10_000, times: 5 },
    Case { streams: 10, chunks: 10_000, times: 1 },
    Case { streams: 100, chunks: 1_000, times: 3 },
    Case { streams: 1_000, chunks: 1_000, times: 1 },
];

/// The two whose pace is compared: streams of one length.
const HUNDRED: usize = 6;
const THOUSAND: usize = 7;

/// What a process of Python can be asked for in a benchmark that ends.
const MOST_FOR_LITELLM: u32 = 20_000;

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    let mut paces = Vec::new();
    let mut absence = None;
    for case in CASES.iter().filter(|case| args.is_wanted(case.streams)) {
        let name = format!("{} × {}", case.streams, case.chunks);
        let series = |who: &str, unit| Series::new(format!("{name}: {who}"), unit);
        let mut cpu = ["gateway", "nginx", "LiteLLM", "bare hyper"].map(|who| series(who, "µs/event"));
        let mut pace = ["gateway", "nginx", "LiteLLM", "bare hyper"].map(|who| series(who, "events/ms"));
        super::client_runtime()?.block_on(async {
            let mut table = Table::start(case).await?;
            for round in 0..=args.rounds {
                for (place, cost) in table.round(case).await?.into_iter().enumerate() {
                    // The first round warms everything up.
                    if let Some(cost) = cost.filter(|_| round > 0) {
                        cpu[place].push(cost.cpu);
                        pace[place].push(cost.pace);
                    }
                }
            }
            absence = table.absence;
            anyhow::Ok(())
        })?;
        report.show_all(&cpu);
        report.show(&pace[0]);
        let [ours, nginx, litellm, bare] = &cpu;
        report.typical(format!("{name}: CPU per event"), ours, Some(Bar::goal_at_most(0.6)));
        report.ratio(format!("{name}: CPU, gateway : nginx"), ours, nginx, None);
        report.ratio(format!("{name}: CPU, gateway : bare hyper"), ours, bare, None);
        if case.is_for_litellm() {
            report.ratio(format!("{name}: CPU, LiteLLM : gateway"), litellm, ours, None);
        }
        let [ours, ..] = pace;
        paces.push(ours);
    }
    let slower = Some(Bar::goal_at_least(0.9));
    if let (Some(hundred), Some(thousand)) = (paces.get(HUNDRED), paces.get(THOUSAND)) {
        report.ratio("events/s, 1000 streams : 100 streams", thousand, hundred, slower);
    }
    report.note("CPU of the gateway alone: guards, agents and clients are left out; every piece is compared");
    if let Some(absence) = absence {
        report.note(format!("LiteLLM has no row: {absence}"));
    }
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

impl Case {
    fn script(&self) -> Script {
        Script::Chunks { count: self.chunks, size: SIZE }
    }

    fn events(&self) -> u32 {
        u32::try_from(self.streams).unwrap_or(u32::MAX) * self.chunks * self.times
    }

    /// Whether the sessions of all streams may be there before.
    fn is_kept(&self) -> bool {
        self.streams <= 100
    }

    fn is_for_litellm(&self) -> bool {
        self.events() <= MOST_FOR_LITELLM
    }
}

/// What one event cost, in microseconds of CPU; how many came in a millisecond.
struct Cost {
    cpu: f64,
    pace: f64,
}

struct Table {
    gateway: Gateway,
    bare: Rival,
    nginx: Nginx,
    litellm: Option<LiteLlm>,
    absence: Option<String>,
    lanes: [Vec<Lane>; 4],
}

impl Table {
    async fn start(case: &Case) -> anyhow::Result<Self> {
        let gateway = Gateway::start()?;
        let bare = Rival::start("bare-server")?;
        let nginx = Nginx::before(bare.target.address)?;
        let (mut litellm, mut absence) = (None, None);
        if case.is_for_litellm() {
            match LiteLlm::before(bare.target.address) {
                Ok(found) => litellm = Some(found),
                Err(error) => absence = Some(format!("{error:#}")),
            }
        }
        let lanes = [
            if case.is_kept() {
                gateway.seats(case.streams).await?.into_iter().map(Lane::from).collect()
            } else {
                lanes(&gateway.target, case.streams).await?
            },
            lanes(&nginx.target, case.streams).await?,
            match &litellm {
                Some(litellm) => lanes(&litellm.target, case.streams).await?,
                None => Vec::new(),
            },
            lanes(&bare.target, case.streams).await?,
        ];
        Ok(Self { gateway, bare, nginx, litellm, absence, lanes })
    }

    async fn round(&mut self, case: &Case) -> anyhow::Result<[Option<Cost>; 4]> {
        let Self { gateway, bare, nginx, litellm, lanes: [ours, proxied, slow, plain], .. } = self;
        let cost = if case.is_kept() {
            costed(case, &gateway.target, ours, || gateway.cpu()).await
        } else {
            held(case, gateway, ours).await
        };
        let ours = cost.map_err(|error| error.context(gateway.last_words()))?;
        let nginx = costed(case, &nginx.target, proxied, || nginx.cpu()).await?;
        let litellm = match litellm {
            Some(litellm) => Some(costed(case, &litellm.target, slow, || litellm.cpu()).await?),
            None => None,
        };
        let bare = costed(case, &bare.target, plain, || process_cpu(bare.pid())).await?;
        Ok([Some(ours), Some(nginx), litellm, Some(bare)])
    }
}

async fn costed(
    case: &Case,
    target: &Target,
    lanes: &mut Vec<Lane>,
    cpu: impl Fn() -> anyhow::Result<Duration>,
) -> anyhow::Result<Cost> {
    let before = cpu()?;
    let plan = Plan { script: case.script(), times: case.times, begin: Begin::AtOnce, gaps: Gaps::Longest };
    let run = run_streams(target, lanes, plan, || ()).await?;
    let spent = cpu()?.saturating_sub(before);
    let events = f64::from(case.events());
    Ok(Cost { cpu: spent.as_secs_f64() * 1e6 / events, pace: events / run.wall.as_secs_f64() / 1e3 })
}

/// More streams than a gateway keeps sessions waiting for: each begins one, says a word, and goes on when all have.
async fn held(case: &Case, gateway: &Gateway, lanes: &mut Vec<Lane>) -> anyhow::Result<Cost> {
    let script = Script::Held { count: case.chunks, size: SIZE, pause: 6_000 };
    let plan = Plan { script, times: 1, begin: Begin::AtOnce, gaps: Gaps::Longest };
    let run = run_streams(&gateway.target, lanes, plan, || gateway.cpu()).await?;
    let spent = gateway.cpu()?.saturating_sub(run.at_start?);
    let events = f64::from(case.events());
    // Each rested for as long after its first word.
    let last = run.seen.iter().map(|seen| seen.first).max().unwrap_or_default();
    let first = run.seen.iter().map(|seen| seen.first).min().unwrap_or_default();
    let wall = run.wall.saturating_sub(first + Duration::from_secs(6)).max(Duration::from_millis(1));
    anyhow::ensure!(last < first + Duration::from_secs(6), "clients came too slowly to be held");
    Ok(Cost { cpu: spent.as_secs_f64() * 1e6 / events, pace: events / wall.as_secs_f64() / 1e3 })
}
