//! What is wrong before anything runs is told in one sentence, and nothing was started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::home::Home;

/// No process of the agent ever lived: it would have written its record first.
#[track_caller]
fn nothing_was_started(home: &Home) {
    assert!(!home.record().path().exists());
    assert!(home.processes().is_empty());
    assert!(!home.state_folder().join("sessions").exists(), "no session was begun");
}

#[test]
fn a_mistake_in_the_agents_settings_starts_nothing() {
    let table = [
        ("comand = 'x'\n", "unknown key `agents.fake.comand`; did you mean `command`?"),
        ("mode = 'chta'\n", "`agents.fake.mode`"),
        ("mode = 'agent'\n", "needs a folder to work in"),
        ("mode = 'agent'\nworkspace = 'here'\n", "workspace"),
        ("approval_mode = 'yolo'\n", "has no approval mode `yolo`"),
        ("approval_mode = 'yes'\n", "`agents.fake.approval_mode`"),
        ("limits = { start_secnds = 1 }\n", "did you mean `start_seconds`?"),
        ("native_tools = ['shell']\n", "`shell`"),
        ("[agents.fake]\n", "gembridge.toml` line"),
        ("args = [\n", "gembridge.toml` line"),
    ];
    for (more, sentence) in table {
        let home = Home::configured("ok", more);
        let ran = home.run(&["run", "anything"]).refused(2, sentence);
        assert!(ran.stderr.contains("gembridge.toml") || ran.stderr.contains("agent `fake`"), "{}", ran.stderr);
        nothing_was_started(&home);
    }
}

#[test]
fn a_mistake_on_the_command_line_starts_nothing() {
    let home = Home::with_modes("ok");
    for (args, sentence) in [
        (&["run", "--timeout", "0", "x"][..], "expected a number of seconds from 1"),
        (&["run", "--permissions", "perhaps", "x"], "`perhaps`"),
        (&["run", "--agent", "fkae", "x"], "agent `fkae` is not known"),
        (&["run", "--cwd", "/nowhere", "x"], "cannot work in `/nowhere`"),
        (&["run", "--cwd", "workspace", "x"], "is not trusted"),
        (&["run", "--resume", "nonsense", "x"], "expected the id of a session"),
        (&["run", "--output-format", "yaml", "x"], "`yaml`"),
        (&["run", ""], "the prompt is empty"),
    ] {
        home.run(args).refused(2, sentence);
        nothing_was_started(&home);
    }
}

#[test]
fn a_program_that_is_not_there_or_cannot_run_is_an_agent_that_is_not_installed() {
    let home = Home::with_modes("ok");
    let plain = home.path("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o600)).unwrap();
    for program in ["/nowhere/agent", "agent-that-nobody-installed", plain.to_str().unwrap()] {
        home.configure(&format!("[default]\nagent = 'fake'\n[agents.fake]\ncommand = '{program}'\n"));
        let ran = home.run(&["run", "anything"]).fails(3, &format!("`{program}` was not found"));
        assert_eq!(ran.stdout, "");
        nothing_was_started(&home);
    }
}

#[test]
fn a_program_that_cannot_be_executed_after_all_is_told_in_one_sentence() {
    let home = Home::with_modes("ok");
    let broken = home.path("broken");
    gembridge_testkit::write_script(&broken, "#!/nowhere/interpreter\n").unwrap();
    home.configure(&format!("[default]\nagent = 'fake'\n[agents.fake]\ncommand = '{}'\n", broken.display()));
    let ran = home.run(&["run", "anything"]);
    assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.lines().last().unwrap().starts_with("gembridge: "), "{}", ran.stderr);
    assert!(home.private_folders().is_empty());
}
