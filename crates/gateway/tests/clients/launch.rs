//! `gembridge launch`: real programs with the gateway in the place of their model, and what they would be told.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use gembridge_testkit::{real_codex_cli, real_opencode};

use crate::support::home::Home;

/// A home whose default agent is the demo agent, whatever else is on the search path.
fn home() -> Home {
    let home = Home::new();
    home.configure_serving("[default]\nagent = 'demo'");
    home
}

/// Launches a program that lies in this folder, and says something to it.
fn launch(home: &Home, folder: &std::path::Path, args: &[&str], prompt: &str) -> Output {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command: Command = home.command(&[&["launch"], args].concat());
    let command = command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn codex_is_launched_with_a_gateway_of_its_own_that_ends_with_it() {
    let home = home();
    fs::write(home.path("a.txt"), "the river is wide").unwrap();
    let settings = home.path(".codex/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "model = 'mine'\n").unwrap();
    let program = real_codex_cli();
    let flags = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"];
    let args = [&["codex", "--model", "demo", "--"], &flags[..]].concat();
    let output = launch(&home, program.parent().unwrap(), &args, r#"call exec_command {"cmd": "cat a.txt"}"#);
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("agent_message") && said.contains("the river is wide"), "{said}\n{complained}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "model = 'mine'\n", "its own settings are as they were");
    let address = fs::read_to_string(home.state("address")).unwrap();
    assert!(TcpStream::connect(address.trim()).is_err(), "the gateway ended with it");
}

#[test]
fn opencode_is_launched_at_the_gateway_that_runs() {
    let gateway = home().serve();
    let program = real_opencode();
    let args = ["opencode", "--model", "demo", "--", "run", "Tell me of the river."];
    let output = launch(&gateway.home, program.parent().unwrap(), &args, "");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("Tell me of the river."), "{said}\n{complained}\n{}", gateway.stderr());
    let left = fs::read_dir(gateway.home.path(".cache/gembridge/launch")).unwrap().count();
    assert_eq!(left, 0, "its settings are gone");

    // What is wrong is found before anything is started.
    let refused = |folder: &std::path::Path, args: &[&str]| {
        let output = launch(&gateway.home, folder, args, "");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, complained) = refused(program.parent().unwrap(), &["opencode", "--model", "no/such model"]);
    assert!(code == Some(2) && complained.contains("no model `no/such model`"), "{complained}");
    let mute = gateway.home.path("mute");
    fs::create_dir(&mute).unwrap();
    fs::write(mute.join("qwen"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(mute.join("qwen"), fs::Permissions::from_mode(0o755)).unwrap();
    let (code, complained) = refused(&mute, &["qwen"]);
    assert!(code == Some(3) && complained.contains("does not say which version it is"), "{complained}");
}

#[test]
fn what_would_be_set_is_shown_without_the_key() {
    let gateway = home().serve();
    for program in ["claude", "codex", "opencode", "qwen", "copilot", "aider"] {
        let shown =
            gateway.home.run(&["launch", program, "--print", "--model", "gemini", "--", "a b"]).succeeds().stdout;
        assert!(shown.contains(&gateway.address.to_string()) && shown.contains("gemini"), "{shown}");
        assert!(shown.contains("/key')\"") && !shown.contains(&gateway.key), "{shown}");
        assert!(shown.trim_end().ends_with("'a b'"), "{shown}");
    }
    gateway.home.run(&["launch", "emacs"]).refused(2, "`claude`, `codex`");
    gateway.home.run(&["launch", "codex"]).refused(3, "npm i -g @openai/codex");
}
