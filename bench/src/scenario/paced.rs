//! Streams at the pace of a model: all pieces in order, and what it takes to carry them.

use std::time::Duration;

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::http::Target;
use crate::measure::{load_average, process_cpu, quantile};
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::streams::{Begin, Gaps, Plan, lanes, run as run_streams};

pub const NAME: &str = "paced";
pub const ABOUT: &str =
    "streams of 50 pieces a second for 12 s: cores of the gateway : bare hyper that writes by its clock";

/// Long enough that all overlap for five seconds and more, once the last one has begun.
const SCRIPT: Script = Script::Paced { count: 600, every: 20 };
const A_SECOND: f64 = 50.0;
const TOGETHER: Duration = Duration::from_secs(5);

/// Clients come one by one, as they do that know nothing of each other.
const PLAN: Plan = Plan { script: SCRIPT, times: 1, begin: Begin::Spread(Duration::from_secs(2)), gaps: Gaps::All };

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    for (streams, bars) in [
        (100, None),
        (1_000, Some([Bar::gate_at_most(0.5), Bar::goal_at_most(2.0)])),
        (2_000, Some([Bar::goal_at_most(1.0), Bar::goal_at_most(20.0)])),
    ] {
        if !args.is_wanted(streams) {
            continue;
        }
        let [mut cores, mut bare_cores] =
            ["gateway", "bare write"].map(|who| Series::new(format!("{streams} streams: {who}, CPU"), "cores"));
        let [mut gap, mut bare_gap] =
            ["gateway", "bare write"].map(|who| Series::new(format!("{streams} streams: {who}, gap p99"), "ms"));
        let mut added = Series::new(format!("{streams} streams: added gap p99"), "ms");
        super::client_runtime()?.block_on(async {
            let gateway = Gateway::start()?;
            let bare = Rival::start("bare-server")?;
            for _ in 0..args.rounds {
                let run = carried(&gateway.target, streams, || gateway.cpu()).await;
                let ours = run.map_err(|error| error.context(gateway.last_words()))?;
                let plain = carried(&bare.target, streams, || process_cpu(bare.pid())).await?;
                cores.push(ours.cores);
                gap.push(ours.gap);
                bare_cores.push(plain.cores);
                bare_gap.push(plain.gap);
                added.push(ours.gap - plain.gap);
            }
            anyhow::Ok(())
        })?;
        report.show_all([&cores, &bare_cores, &gap, &bare_gap, &added]);
        report.typical(format!("{streams} streams: cores"), &cores, bars.map(|[cores, _]| cores));
        report.ratio(format!("{streams} streams: CPU, gateway : bare write"), &cores, &bare_cores, None);
        report.typical(format!("{streams} streams: added gap p99"), &added, bars.map(|[_, gap]| gap));
    }
    report.note("CPU of the gateway alone, from when all streams have begun, by the pieces that it carried since; every piece checked");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// What it took to carry the streams, from when all had begun.
struct Carried {
    cores: f64,
    /// In milliseconds; 99 of 100 gaps were shorter.
    gap: f64,
}

async fn carried(
    target: &Target,
    streams: usize,
    cpu: impl Fn() -> anyhow::Result<Duration>,
) -> anyhow::Result<Carried> {
    let mut lanes = lanes(target, streams).await?;
    let run = run_streams(target, &mut lanes, PLAN, &cpu).await?;
    anyhow::ensure!(run.together >= TOGETHER, "the last stream began too late");
    let spent = cpu()?.saturating_sub(run.at_start?);
    let mut gaps: Vec<f64> = run.seen.iter().flat_map(|seen| &seen.gaps).map(|gap| f64::from(*gap)).collect();
    // By the pieces that came in that time: the streams that began first end first.
    let seconds = f64::from(u32::try_from(gaps.len())?) / f64::from(u32::try_from(streams)?) / A_SECOND;
    Ok(Carried { cores: spent.as_secs_f64() / seconds, gap: quantile(&mut gaps, 0.99) })
}
