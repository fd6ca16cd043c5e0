//! A thousand clients that come at once, each with a stream of ten pieces a second.

use std::time::Duration;

use crate::args::Args;
use crate::frames::{Script, Seen};
use crate::gateway::Gateway;
use crate::measure::{largest, load_average, median, millis, peak_memory_kb};
use crate::report::{Bar, Report, Series};
use crate::streams::{Begin, Gaps, Plan, lanes, run as run_streams};

pub const NAME: &str = "thousand-clients";
pub const ABOUT: &str =
    "1000 new conversations at once, 10 pieces a second for 10 s: errors, memory, who waits longest";

const CLIENTS: usize = 1_000;
const SCRIPT: Script = Script::Paced { count: 100, every: 100 };
const PLAN: Plan = Plan { script: SCRIPT, times: 1, begin: Begin::AtOnce, gaps: Gaps::Longest };

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let names = [
        ("memory, most", "MB"),
        ("CPU", "cores"),
        ("first piece, median client", "ms"),
        ("first piece, unluckiest", "ms"),
        ("longest gap while others come, unluckiest", "ms"),
        ("longest gap with all there, median client", "ms"),
        ("longest gap with all there, unluckiest", "ms"),
    ];
    let mut found = names.map(|(name, unit)| Series::new(name, unit));
    for _ in 0..args.rounds {
        // A gateway that has not seen any of them before.
        super::client_runtime()?.block_on(async {
            let gateway = Gateway::start()?;
            let mut lanes = lanes(&gateway.target, CLIENTS).await?;
            let run = run_streams(&gateway.target, &mut lanes, PLAN, || ()).await;
            let run = run.map_err(|error| error.context(gateway.last_words()))?;
            let of = |what: fn(&Seen) -> Duration| run.seen.iter().map(|seen| millis(what(seen))).collect::<Vec<_>>();
            let (first, gaps) = (of(|seen| seen.first), of(|seen| seen.longest_gap));
            let numbers = [
                peak_memory_kb(gateway.pid())? / 1024.0,
                gateway.cpu()?.as_secs_f64() / run.wall.as_secs_f64(),
                median(&first),
                largest(&first),
                largest(&of(|seen| seen.longest_early_gap)),
                median(&gaps),
                largest(&gaps),
            ];
            found.iter_mut().zip(numbers).for_each(|(series, number)| series.push(number));
            anyhow::Ok(())
        })?;
    }
    let mut report = Report::new(NAME, ABOUT);
    report.show_all(&found);
    let [memory, _, first, last, _, typical, longest] = &found;
    report.worst("memory", memory, Some(Bar::gate_at_most(150.0)));
    report.ratio("first piece: unluckiest : median client", last, first, Some(Bar::gate_at_most(2.0)));
    report.ratio("longest gap with all there: unluckiest : median", longest, typical, Some(Bar::gate_at_most(2.0)));
    report.note("every stream complete and in order, or no score; agents of 1000 sessions start meanwhile");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}
