//! The guard for the tests of this crate, whose own executables have no `guard` command.

fn main() -> std::process::ExitCode {
    gembridge_process::guard::main(std::env::args_os().skip(2))
}
