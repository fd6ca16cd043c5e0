//! An ACP agent that does what a test tells it; `--help` says how.

use std::process::ExitCode;

fn main() -> ExitCode {
    gembridge_testkit::fake_agent::run(std::env::args().skip(1))
}
