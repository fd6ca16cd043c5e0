//! The built-in demo agent: a deterministic ACP agent on stdio that is no model and says so.
//!
//! It must not know the gateway: it is an agent like any other, started as a process and spoken to in
//! JSON-RPC lines. What it does is driven by the words at the start of the prompt's lines; everything else
//! gets a plain answer that echoes the prompt. One thread serves all sessions of a process.
//!
#![doc = include_str!("words.md")]

mod connection;
mod flags;
mod mcp;
mod methods;
mod outbox;
mod sample;
mod script;
mod session;
mod stdio;
mod turn;
mod wire;
mod words;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use flags::{Command, Flags};

/// Runs the demo agent until its input closes. `args` are the words after the command's name.
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    match flags::parse(args) {
        Ok(Command::Serve(flags)) => serve(flags),
        Ok(Command::Help) => match std::io::stdout().write_all(words::usage().as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(message) => {
            complain(&message);
            ExitCode::from(2)
        }
    }
}

fn serve(flags: Flags) -> ExitCode {
    if std::io::stdin().is_terminal() {
        complain("speaks ACP as JSON-RPC lines on stdin; to talk to it, run `gembridge chat --agent demo`");
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("no event loop: {error}; check the limit of open files (`ulimit -n`)"));
            return ExitCode::FAILURE;
        }
    };
    let code = tokio::task::LocalSet::new().block_on(&runtime, connection::serve(flags));
    // A read of a terminal cannot be interrupted: leave its thread behind instead of waiting for a line.
    runtime.shutdown_background();
    code
}

/// Says one line on stderr. A stderr that nobody reads is no reason to end.
fn complain(message: &str) {
    drop(writeln!(std::io::stderr(), "gembridge demo-agent: {message}"));
}
