#![doc = include_str!("fake_agent/manual.md")]

use std::{
    io,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    thread,
};

mod agent;
mod client_calls;
mod escape;
mod faults;
mod firehose;
mod methods;
mod mode;
mod offspring;
mod options;
mod prompt;
mod recorder;
mod script;
mod sessions;
mod steps;
mod surroundings;
mod tck;
mod turn;
mod wire;

use agent::Agent;
use mode::Mode;
use options::{Options, Request};

/// The whole program `fake-agent`.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => {
            println!("{}", include_str!("fake_agent/manual.md"));
            return ExitCode::SUCCESS;
        }
        Ok(Request::Version) => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(sentence) => {
            eprintln!("fake-agent: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    match live(options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fake-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn live(options: Options) -> io::Result<ExitCode> {
    surroundings::note_descriptors();
    if options.has(&Mode::IgnoreSigterm) {
        ignore_polite_signals()?;
    }
    for mode in &options.modes {
        match mode {
            Mode::Offspring(kind) => {
                offspring::live(&options, *kind)?;
                return Ok(ExitCode::SUCCESS);
            }
            Mode::CrashStart => return Ok(crash_at_start()),
            Mode::CrashStartWhile(path) if path.exists() => return Ok(crash_at_start()),
            _ => {}
        }
    }
    thread::sleep(options.start_delay);
    offspring::start(&options)?;
    Arc::new(Agent::new(options)?).serve()?;
    Ok(ExitCode::SUCCESS)
}

fn crash_at_start() -> ExitCode {
    eprintln!("fake-agent: crashed at start as told");
    ExitCode::from(7)
}

/// A handler that does nothing but set a flag replaces the default, which would end the process.
fn ignore_polite_signals() -> io::Result<()> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, seen.clone())?;
    }
    Ok(())
}
