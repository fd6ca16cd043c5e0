//! The benchmark suite: ours, peers and the limit side by side in one run.
//!
//! Some scenarios link our crates and join them as the gateway does: this binary is then also the guard and the demo
//! agent, exactly as `gembridge` is. Those over HTTP start the release binary itself.

#![expect(clippy::disallowed_methods, reason = "a benchmark starts the peers it compares with, in its own environment")]

mod args;
mod client;
mod frames;
mod gateway;
mod gemini;
mod house;
mod http;
mod measure;
mod pipe;
mod raw_agent;
mod report;
mod rivals;
mod scenario;
mod streams;
mod websocket;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::report::Verdict;
use crate::scenario::{SCENARIOS, Scenario};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Both are processes of their own, started by what is measured.
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some("guard") => gembridge_process::guard::main(words),
        Some("demo-agent") => gembridge_demo::main(words.map(|word| word.to_string_lossy().into_owned())),
        Some(word) => rivals::server::main(word).unwrap_or_else(measure_all),
        None => measure_all(),
    }
}

fn measure_all() -> ExitCode {
    match run(&Args::parse()) {
        Ok(Verdict::Passed) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> anyhow::Result<Verdict> {
    if args.list {
        for scenario in SCENARIOS {
            println!("{:<17} {}", scenario.name, scenario.about);
        }
        return Ok(Verdict::Passed);
    }
    let mut verdict = Verdict::Passed;
    let mut reports = Vec::new();
    for scenario in chosen(&args.scenarios)? {
        eprintln!("{}: {} rounds …", scenario.name, args.rounds);
        match (scenario.run)(args) {
            Ok(report) => {
                report.print();
                verdict = verdict.and(report.verdict());
                reports.push(report);
            }
            // A run that lost or changed a frame has no score.
            Err(error) => {
                println!("\n## {}\n\nno score: {error:#}", scenario.name);
                verdict = Verdict::Failed;
            }
        }
    }
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_vec_pretty(&reports)?)?;
    }
    Ok(verdict)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| anyhow::anyhow!("there is no scenario `{name}`; `--list` names all"))
    };
    names.iter().map(find).collect()
}
