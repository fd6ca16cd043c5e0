//! What really starts programs: terminals and the question for a version, each under a real guard.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gembridge_drivers::detect::{VersionError, version_of};
use gembridge_drivers::profile::{AgentConfig, Environment, Profile, Version};
use gembridge_drivers::workspace::{
    Jail, JailLimits, TerminalCommand, TerminalError, TerminalExit, TerminalId, TerminalLimits, Terminals,
};
use gembridge_process::{Environment as ChildEnvironment, GuardProgram, Spawner};

const PATIENCE: Duration = Duration::from_mins(1);

struct Fixture {
    temp: tempfile::TempDir,
    spawner: Spawner,
    terminals: Terminals,
}

fn fixture(limits: TerminalLimits) -> Fixture {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("ws");
    fs::create_dir_all(root.join("sub")).unwrap();
    let spawner = Spawner::new(GuardProgram::at(env!("CARGO_BIN_EXE_drivers-test-guard"))).unwrap();
    let jail = Arc::new(Jail::open(&root, JailLimits::default()).unwrap());
    let environment =
        ChildEnvironment::from_empty::<&str>(&BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]), &[]);
    let terminals = Terminals::new(spawner.clone(), jail, environment, limits);
    Fixture { temp, spawner, terminals }
}

fn sh(script: &str) -> TerminalCommand {
    command("sh", &["-c", script])
}

fn command(command: &str, args: &[&str]) -> TerminalCommand {
    TerminalCommand {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..TerminalCommand::default()
    }
}

async fn exit_of(terminals: &Terminals, id: &TerminalId) -> TerminalExit {
    tokio::time::timeout(PATIENCE, terminals.wait_for_exit(id)).await.expect("the command ends").unwrap()
}

fn code(code: i32) -> TerminalExit {
    TerminalExit { code: Some(code), signal: None }
}

#[tokio::test]
async fn a_command_runs_without_a_shell_in_its_folder_and_with_a_built_environment() {
    let fixture = fixture(TerminalLimits::default());
    let hostile = command("printf", &["%s", "$(touch pwn); `touch pwn` && touch pwn"]);
    let id = fixture.terminals.create(hostile).await.unwrap();
    assert_eq!(exit_of(&fixture.terminals, &id).await, code(0));
    let output = fixture.terminals.output(&id).unwrap();
    assert_eq!((output.output.as_str(), output.truncated), ("$(touch pwn); `touch pwn` && touch pwn", false));
    assert!(!fixture.temp.path().join("ws/pwn").exists());

    let with_env = TerminalCommand {
        cwd: Some("sub".to_owned()),
        env: vec![("MINE".to_owned(), "yes".to_owned())],
        ..sh("pwd; env; echo oops >&2; exit 3")
    };
    let id = fixture.terminals.create(with_env).await.unwrap();
    assert_eq!(exit_of(&fixture.terminals, &id).await, code(3));
    let output = fixture.terminals.output(&id).unwrap();
    assert_eq!(output.exit, Some(code(3)));
    let lines: Vec<&str> = output.output.lines().collect();
    assert_eq!(lines[0], fixture.temp.path().canonicalize().unwrap().join("ws/sub").to_str().unwrap());
    assert!(lines.contains(&"MINE=yes") && lines.contains(&"oops"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("CARGO")), "nothing is inherited: {lines:?}");
}

#[tokio::test]
async fn output_keeps_its_end_within_the_limit_of_the_agent() {
    let fixture = fixture(TerminalLimits { output_bytes: 1000, ..TerminalLimits::default() });
    let counted = TerminalCommand {
        output_byte_limit: Some(10),
        ..sh("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done")
    };
    let id = fixture.terminals.create(counted).await.unwrap();
    exit_of(&fixture.terminals, &id).await;
    let output = fixture.terminals.output(&id).unwrap();
    assert_eq!((output.output.as_str(), output.truncated), ("line 4999\n", true));

    let greedy = TerminalCommand { output_byte_limit: Some(u64::MAX), ..sh("yes x | head -c 5000") };
    let id = fixture.terminals.create(greedy).await.unwrap();
    exit_of(&fixture.terminals, &id).await;
    assert_eq!(fixture.terminals.output(&id).unwrap().output.len(), 1000);
}

#[tokio::test]
async fn a_killed_command_keeps_its_output_until_it_is_released() {
    let fixture = fixture(TerminalLimits::default());
    let id = fixture.terminals.create(sh("echo begun; exec sleep 1000")).await.unwrap();
    until(|| fixture.terminals.output(&id).unwrap().output == "begun\n").await;
    assert_eq!(fixture.terminals.output(&id).unwrap().exit, None);
    fixture.terminals.kill(&id).unwrap();
    let exit = exit_of(&fixture.terminals, &id).await;
    assert_eq!(exit, TerminalExit { code: None, signal: Some("SIGTERM".to_owned()) });
    assert_eq!(fixture.terminals.output(&id).unwrap().output, "begun\n");
    fixture.terminals.release(&id).unwrap();
    assert!(matches!(fixture.terminals.output(&id), Err(TerminalError::Unknown(_))));
    assert!(matches!(fixture.terminals.kill(&id), Err(TerminalError::Unknown(_))));
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_a_reason() {
    let fixture = fixture(TerminalLimits { terminals: 1, ..TerminalLimits::default() });
    for (command, reason) in [
        (command("no-such-program-anywhere", &[]), "`no-such-program-anywhere` was not found"),
        (TerminalCommand { cwd: Some("../".to_owned()), ..sh("true") }, "is not inside the workspace"),
        (TerminalCommand { cwd: Some("/etc".to_owned()), ..sh("true") }, "is not inside the workspace"),
        (command("echo", &["a\0b"]), "leave out NUL"),
        (TerminalCommand { env: vec![("A=B".to_owned(), "x".to_owned())], ..sh("true") }, "leave out NUL"),
    ] {
        let error = fixture.terminals.create(command).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    fixture.terminals.create(sh("true")).await.unwrap();
    let error = fixture.terminals.create(sh("true")).await.unwrap_err().to_string();
    assert!(error.contains("1 terminals are open"), "{error}");
}

#[tokio::test]
async fn dropping_the_terminals_ends_every_command() {
    let Fixture { temp: _temp, spawner, terminals } = fixture(TerminalLimits::default());
    for _ in 0..3 {
        terminals.create(sh("setsid sleep 1000 & sleep 1000")).await.unwrap();
    }
    assert_eq!(spawner.living(), 3);
    drop(terminals);
    until(|| spawner.living() == 0).await;
}

async fn until(mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("what is waited for happens");
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("agent");
    gembridge_testkit::write_script(&path, text).unwrap();
    path
}

#[tokio::test]
async fn the_version_is_what_the_program_prints() {
    let fixture = fixture(TerminalLimits::default());
    let profile =
        Profile::custom("mine", &AgentConfig { command: Some("x".to_owned()), ..AgentConfig::default() }, &[]).unwrap();
    let environment = Environment::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let ask = async |text: &str| {
        let program = script(fixture.temp.path(), text);
        version_of(&profile, &program, &environment, &fixture.spawner).await
    };
    let version =
        ask("#!/bin/sh\n[ \"$1\" = --version ] || exit 1\necho 'warning: old terminal'\necho 'agent 0.61.0 (abc)'\n")
            .await;
    assert_eq!(version.unwrap(), Version::new(0, 61, 0));
    assert_eq!(ask("#!/bin/sh\nprintf 1.2.3\n").await.unwrap(), Version::new(1, 2, 3));
    assert!(matches!(ask("#!/bin/sh\necho none\n").await, Err(VersionError::None { .. })));
    assert!(matches!(ask("#!/bin/sh\nyes nothing\n").await, Err(VersionError::None { .. })), "a flood is cut off");
}
