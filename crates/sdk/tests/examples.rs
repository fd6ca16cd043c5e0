//! Every example runs on the demo agent, as a program of its own that is its own guard.

#![expect(clippy::disallowed_methods, reason = "a test starts the programs that it is about")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `target/PROFILE`.
fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// `cargo test` builds examples, unless it is told which tests to build.
fn example(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let path = target().join("examples").join(name);
    if !path.exists() {
        BUILT.get_or_init(|| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "-p", "gembridge-sdk", "--examples", "--target-dir"]);
            cargo.arg(target().parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
            assert!(cargo.status().unwrap().success(), "run `cargo build -p gembridge-sdk --examples` and see why");
        });
    }
    path
}

/// What an example prints, in a home without any agent.
fn printed(name: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(example(name));
    command.env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin").env("TMPDIR", home.path());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

#[test]
fn there_is_a_test_for_every_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["environment", "side_by_side", "simple", "streaming", "structured", "tools"]);
}

#[test]
fn simple_prints_the_answer() {
    let printed = printed("simple");
    assert!(printed.contains("Tell me of the river.") && printed.contains("stopped: EndTurn"), "{printed}");
}

#[test]
fn tools_prints_a_result_and_a_failure() {
    let printed = printed("tools");
    assert!(printed.contains(r#"weather Completed: {"city":"Oslo","degrees":21}"#), "{printed}");
    assert!(printed.contains("weather Failed: there is no weather in Atlantis"), "{printed}");
}

#[test]
fn structured_prints_the_repaired_answer() {
    assert_eq!(printed("structured"), "main.rs:3: unused\n");
}

#[test]
fn streaming_prints_plan_question_and_story() {
    let printed = printed("streaming");
    for part in ["[plan of", "[may it? ", "[allowed: true]", "messages]"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn side_by_side_names_who_is_missing_and_shows_who_answers() {
    let printed = printed("side_by_side");
    assert!(printed.contains("agent `gemini`") && printed.contains("- demo_acp: "), "{printed}");
}

#[test]
fn environment_runs_without_the_agent_it_is_about() {
    let printed = printed("environment");
    assert!(printed.contains("`gemini` was not found") && printed.contains("hello"), "{printed}");
}
