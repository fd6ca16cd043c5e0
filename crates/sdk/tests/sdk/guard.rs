//! A program that is its own guard, and is killed.

use std::process::Command;

use crate::fixture::{Fake, helper};

#[tokio::test]
async fn nothing_of_an_agent_outlives_a_program_that_is_killed() {
    let fake = Fake::new();
    let record = fake.path("record").display().to_string();
    let mut program = start(&fake, &["--mode", "fork-setsid", "--record", &record, "--tag", &fake.tag()]);
    fake.receives("session/prompt").await;
    assert!(!gembridge_testkit::processes_with_tag(&fake.tag()).is_empty());
    program.kill().unwrap();
    program.wait().unwrap();
    fake.is_deserted().await;
}

/// The program that uses the library, on the fake agent.
#[expect(clippy::disallowed_methods, reason = "a test starts the program that it kills")]
fn start(fake: &Fake, args: &[&str]) -> std::process::Child {
    let mut command = Command::new(helper());
    command.arg(gembridge_testkit::fake_agent_path()).args(args).env("TMPDIR", fake.folder.path());
    command.spawn().unwrap()
}
