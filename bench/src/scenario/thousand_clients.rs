//! A thousand clients that come at once, each with a stream of ten pieces a second.

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::Gateway;
use crate::measure::{largest, load_average, median, millis, peak_memory_kb};
use crate::report::{Bar, Report, Series};
use crate::streams::{Begin, Gaps, lanes, run as run_streams};

pub const NAME: &str = "thousand-clients";
pub const ABOUT: &str = "1000 new conversations at once, 10 pieces a second for 5 s: errors, memory, who waits longest";

const CLIENTS: usize = 1_000;
const SCRIPT: Script = Script::Paced { count: 50, every: 100 };

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let names = ["memory, most", "first piece, median client", "longest gap, median client", "longest gap, unluckiest"];
    let units = ["MB", "ms", "ms", "ms"];
    let [mut memory, mut first, mut typical, mut longest] =
        std::array::from_fn(|place| Series::new(names[place], units[place]));
    let mut cores = Series::new("CPU", "cores");
    for _ in 0..args.rounds {
        // A gateway that has not seen any of them before.
        super::client_runtime()?.block_on(async {
            let gateway = Gateway::start()?;
            let mut lanes = lanes(&gateway.target, CLIENTS).await?;
            let before = gateway.cpu()?;
            let streams = run_streams(&gateway.target, &mut lanes, SCRIPT, 1, Begin::AtOnce, Gaps::Longest);
            let run = streams.await.map_err(|error| error.context(gateway.last_words()))?;
            let after = gateway.cpu()?.saturating_sub(before);
            cores.push(after.as_secs_f64() / run.wall.as_secs_f64());
            memory.push(peak_memory_kb(gateway.pid())? / 1024.0);
            let gaps: Vec<f64> = run.seen.iter().map(|seen| millis(seen.longest_gap)).collect();
            first.push(median(&run.seen.iter().map(|seen| millis(seen.first)).collect::<Vec<_>>()));
            typical.push(median(&gaps));
            longest.push(largest(&gaps));
            anyhow::Ok(())
        })?;
    }
    let mut report = Report::new(NAME, ABOUT);
    report.show_all([&memory, &cores, &first, &typical, &longest]);
    report.worst("memory", &memory, Some(Bar::gate_at_most(200.0)));
    report.ratio("longest gap: unluckiest : median client", &longest, &typical, Some(Bar::gate_at_most(2.0)));
    report.note("every stream complete and in order, or no score; agents of 1000 sessions start meanwhile");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}
