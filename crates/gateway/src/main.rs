//! The `gembridge` binary: reads what the operator decided, joins the parts, and nothing else.

mod agents;
mod app;
mod cli;
mod cluster;
mod command;
mod config;
mod connect;
mod exit;
mod hardening;
mod keys;
mod stale_cleanup;
mod local_address;
mod local_secret;
mod logging;
mod origins;
mod render;
mod serve;
mod shim;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use config::Environment;
use terminal::Terminal;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    // These are processes of their own that must stay small: they run before anything of ours is set up.
    match first.as_ref().and_then(|word| word.to_str()) {
        Some("guard") => gembridge_process::guard::main(words),
        Some("demo-agent") => gembridge_demo::main(words.map(|word| word.to_string_lossy().into_owned())),
        Some("mcp-shim") => shim::main(&Environment::of_this_process()),
        _ => run(first.into_iter().chain(words)),
    }
}

fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let umask = hardening::apply();
    let environment = Environment::of_this_process();
    let words: Vec<_> = words.collect();
    let terminal = Terminal::detect(&environment);
    // Help and complaints about the command line itself obey it too.
    let terminal = if words.iter().any(|word| word == "--no-color") { terminal.plain() } else { terminal };
    match command::dispatch(words.into_iter(), environment, terminal, umask) {
        Ok(code) => code.into(),
        Err(failed) => {
            terminal.complain(&failed.error);
            failed.code.into()
        }
    }
}
