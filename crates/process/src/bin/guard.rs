//! The guard as a program of its own, for embedders whose binary has no `guard` command.

fn main() -> std::process::ExitCode {
    gembridge_process::guard::main(std::env::args_os().skip(2))
}
