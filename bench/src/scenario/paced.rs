//! Streams at the pace of a model: all pieces in order, and what it takes to carry them.

use std::time::Duration;

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::measure::{load_average, process_cpu, quantile};
use crate::report::{Bar, Report, Series};
use crate::rivals::Rival;
use crate::streams::{Begin, Gaps, Lane, lanes, run as run_streams};

pub const NAME: &str = "paced";
pub const ABOUT: &str =
    "streams of 50 pieces a second for 5 s: cores of the gateway : bare hyper that writes by its clock";

const EVERY_MS: u32 = 20;
const SECONDS: u32 = 5;
const SCRIPT: Script = Script::Paced { count: SECONDS * 1000 / EVERY_MS, every: EVERY_MS };

/// Clients come one by one; their streams overlap for the rest.
const BEGIN: Begin = Begin::Spread(Duration::from_secs(1));

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
            let mut ours: Vec<Lane> = gateway.seats(streams).await?.into_iter().map(Lane::from).collect();
            let mut plain = lanes(&bare.target, streams).await?;
            for _ in 0..args.rounds {
                let before = gateway.cpu()?;
                let run = run_streams(&gateway.target, &mut ours, SCRIPT, 1, BEGIN, Gaps::All).await;
                let run = run.map_err(|error| error.context(gateway.last_words()))?;
                cores.push(gateway.cpu()?.saturating_sub(before).as_secs_f64() / f64::from(SECONDS));
                let ours_p99 = p99(run.seen.iter().flat_map(|seen| &seen.gaps));
                gap.push(ours_p99);
                let before = process_cpu(bare.pid())?;
                let run = run_streams(&bare.target, &mut plain, SCRIPT, 1, BEGIN, Gaps::All).await?;
                bare_cores.push(process_cpu(bare.pid())?.saturating_sub(before).as_secs_f64() / f64::from(SECONDS));
                let bare_p99 = p99(run.seen.iter().flat_map(|seen| &seen.gaps));
                bare_gap.push(bare_p99);
                added.push(ours_p99 - bare_p99);
            }
            anyhow::Ok(())
        })?;
        report.show_all([&cores, &bare_cores, &gap, &bare_gap, &added]);
        report.typical(format!("{streams} streams: cores"), &cores, bars.map(|[cores, _]| cores));
        report.ratio(format!("{streams} streams: CPU, gateway : bare write"), &cores, &bare_cores, None);
        report.typical(format!("{streams} streams: added gap p99"), &added, bars.map(|[_, gap]| gap));
    }
    report.note("CPU of the gateway alone, by 5 s of its streams; every piece checked; sessions were there before");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

fn p99<'a>(gaps: impl Iterator<Item = &'a f32>) -> f64 {
    quantile(&mut gaps.map(|gap| f64::from(*gap)).collect::<Vec<_>>(), 0.99)
}
