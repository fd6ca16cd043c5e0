//! Session files of agents: counting their tokens, exporting one, and finding words in all of them.

mod generate;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::args::Args;
use crate::gateway::built;
use crate::house::search_path;
use crate::measure::{load_average, millis, peak_memory_kb};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "transcript";
pub const ABOUT: &str =
    "session files of Claude Code and Gemini CLI: stats : ccusage, export, search, memory as they grow";

/// Words that stand in most passages, in some, in few, and together.
const QUERIES: [&str; 5] = ["the", "and that", "deadlock", "flaky index", "segm*"];

/// Where `scripts/setup bench` puts ccusage.
const CCUSAGE: &str = ".cache/ccusage/node_modules/.bin/ccusage";

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    let ours = built("gembridge")?;
    let ccusage = Some(PathBuf::from(CCUSAGE)).filter(|path| path.exists());
    if ccusage.is_none() {
        report.note("ccusage is not installed, so its rows are missing; run `scripts/setup bench`");
    }
    let mut sizes = vec![1, 16, args.megabytes];
    sizes.sort_unstable();
    sizes.dedup();
    for megabytes in sizes {
        let home = Home::new(megabytes)?;
        let largest = megabytes == args.megabytes;
        counted(args, &mut report, &home, &ours, ccusage.as_deref(), largest)?;
        exported(args, &mut report, &home, &ours, largest)?;
        if largest {
            searched(args, &mut report, &home, &ours)?;
        }
    }
    report.note("half of the bytes are sessions of Claude Code, half of Gemini CLI; a session has 8 MB at most, but for the one that is exported");
    report.note("cold: the files' pages were dropped from the cache before each run; ccusage reads the same files in the same round");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// A home with sessions.
struct Home {
    folder: tempfile::TempDir,
    megabytes: u32,
    /// What both of them read.
    bytes: u64,
}

impl Home {
    fn new(megabytes: u32) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let bytes = generate::sessions(folder.path(), u64::from(megabytes) * 1_000_000)?;
        Ok(Self { folder, megabytes, bytes })
    }

    fn command(&self, program: &Path, args: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        command.args(args).env_clear().env("HOME", self.folder.path()).env("PATH", search_path()?).env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    /// Drops what the system keeps of the files, so that they are read from the disk again.
    fn forget(&self) -> anyhow::Result<()> {
        for path in generate::files(self.folder.path())? {
            let file = File::open(&path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(())
    }
}

/// One run of a program.
struct Run {
    took: Duration,
    peak_mb: f64,
}

fn timed(mut command: Command) -> anyhow::Result<Run> {
    let began = Instant::now();
    let mut child = command.spawn().context("a program did not start")?;
    let mut peak_kb: f64 = 0.0;
    let status = loop {
        // Asked often enough to see nearly all that it ever held.
        if let Ok(kilobytes) = peak_memory_kb(child.id()) {
            peak_kb = peak_kb.max(kilobytes);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_micros(500));
    };
    let took = began.elapsed();
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(Run { took, peak_mb: peak_kb / 1024.0 })
}

fn counted(
    args: &Args,
    report: &mut Report,
    home: &Home,
    ours: &Path,
    ccusage: Option<&Path>,
    largest: bool,
) -> anyhow::Result<()> {
    let name = |who: &str, what: &str| format!("{} MB: {who}, {what}", home.megabytes);
    for (state, is_cold) in [("warm", false), ("cold", true)] {
        let mut mine = Series::new(name("stats", state), "ms");
        let mut theirs = Series::new(name("ccusage", state), "ms");
        let mut memory = Series::new(name("stats", &format!("{state}, memory")), "MB");
        for _ in 0..args.rounds {
            if is_cold {
                home.forget()?;
            }
            let run = timed(home.command(ours, &["sessions", "stats", "--json"])?)?;
            mine.push(millis(run.took));
            memory.push(run.peak_mb);
            if let Some(ccusage) = ccusage {
                if is_cold {
                    home.forget()?;
                }
                let run = timed(home.command(ccusage, &["daily", "--json", "--offline"])?)?;
                theirs.push(millis(run.took));
            }
        }
        report.show(&mine);
        report.show(&memory);
        report.show_unless_empty(&theirs);
        if ccusage.is_some() {
            let bar = largest.then_some(Bar::goal_at_least(3.0));
            report.ratio(format!("{} MB: ccusage : stats, {state}", home.megabytes), &theirs, &mine, bar);
        }
        report.worst(
            format!("{} MB: memory of stats, {state}", home.megabytes),
            &memory,
            Some(Bar::gate_at_most(64.0)),
        );
    }
    Ok(())
}

/// One session with half of all bytes, in each format.
fn exported(args: &Args, report: &mut Report, home: &Home, ours: &Path, largest: bool) -> anyhow::Result<()> {
    let large = tempfile::tempdir()?;
    let bytes = generate::one_session(large.path(), home.bytes / 2)?;
    let home = Home { folder: large, megabytes: home.megabytes, bytes };
    for format in ["jsonl", "markdown"] {
        let mut speed = Series::new(format!("{} MB: export as {format}", home.megabytes), "MB/s");
        let mut memory = Series::new(format!("{} MB: export as {format}, memory", home.megabytes), "MB");
        for _ in 0..args.rounds {
            let run = timed(home.command(ours, &["sessions", "export", generate::LARGE, "--format", format])?)?;
            #[expect(clippy::cast_precision_loss, reason = "a speed needs no more than 52 bits of a count")]
            speed.push(home.bytes as f64 / 1e6 / run.took.as_secs_f64());
            memory.push(run.peak_mb);
        }
        report.show(&speed);
        report.show(&memory);
        let bar = (largest && format == "jsonl").then_some(Bar::goal_at_least(500.0));
        report.typical(format!("{} MB: export as {format}", home.megabytes), &speed, bar);
        report.worst(
            format!("{} MB: memory of export as {format}", home.megabytes),
            &memory,
            Some(Bar::gate_at_most(64.0)),
        );
    }
    Ok(())
}

fn searched(args: &Args, report: &mut Report, home: &Home, ours: &Path) -> anyhow::Result<()> {
    let mut indexing = Series::new(format!("{} MB: the first search, which indexes", home.megabytes), "ms");
    let first = timed(home.command(ours, &["sessions", "search", "nothing-of-it", "--json"])?)?;
    indexing.push(millis(first.took));
    report.show(&indexing);
    for query in QUERIES {
        let mut answers = Series::new(format!("{} MB: search `{query}`", home.megabytes), "ms");
        for _ in 0..args.rounds {
            let run = timed(home.command(ours, &["sessions", "search", query, "--json"])?)?;
            answers.push(millis(run.took));
        }
        report.show(&answers);
        report.typical(format!("{} MB: search `{query}`", home.megabytes), &answers, Some(Bar::goal_at_most(50.0)));
    }
    Ok(())
}
