//! The demo agent as a program of its own, for tests and benches.

fn main() -> std::process::ExitCode {
    gembridge_demo::main(std::env::args().skip(1))
}
