//! Help, version and completions.

use crate::support::home::Home;

#[test]
fn help_teaches_by_examples_and_lists_the_exit_codes() {
    let home = Home::new();
    for args in [&["--help"][..], &["run", "--help"], &["chat", "--help"], &["doctor", "--help"], &["config", "--help"]]
    {
        let help = home.run(args).succeeds().stdout;
        assert!(help.contains("Examples:") && help.contains("Exit codes:") && help.contains("130"), "{help}");
    }
    let help = home.run(&["--help"]).succeeds().stdout;
    assert!(!help.contains("guard"), "the guard is nobody's command");
}

#[test]
fn the_version_is_printed() {
    let ran = Home::new().run(&["--version"]).succeeds();
    // The commit follows where the build names it.
    let version = ran.stdout.trim().strip_prefix("gembridge ").unwrap();
    assert_eq!(version.split(' ').next(), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_exist_for_the_usual_shells() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).succeeds().stdout;
        assert!(script.contains("gembridge") && script.contains("doctor"), "{shell}: {script}");
    }
    home.run(&["completions", "tsh"]).refused(2, "`tsh`");
}

#[test]
fn the_demo_agent_and_the_guard_are_dispatched_before_everything_else() {
    let home = Home::new().with_config("gembridge.toml", "[server\n");
    let ran = home.run(&["demo-agent", "--help"]).succeeds();
    assert!(!ran.stdout.is_empty());
    let ran = home.run(&["guard"]);
    assert_ne!(ran.code, Some(0));
    assert!(!ran.stderr.contains("gembridge.toml"), "{}", ran.stderr);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::Stdio;
    let home = Home::new();
    let mut child = home.command(&["config", "schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
