//! Where a guest's agent keeps its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::server::{Agent, TestServer};
use crate::support::home::Home;

/// The variables that lead a program to a person's files, and where they lead by default.
const FOLDERS: [(&str, &str); 5] = [
    ("HOME", ""),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// The operator's own, which the gateway was started with.
fn operators(home: &Home) -> Vec<(&'static str, String)> {
    FOLDERS[1..].iter().map(|(name, below)| (*name, home.path(below).display().to_string())).collect()
}

/// The environment that a process was started with.
fn environment(pid: u32) -> BTreeMap<String, String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split('\0').filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// The processes of the agent of this name, without the guards around them.
fn agents(server: &TestServer, program: &str) -> Vec<u32> {
    let of_agent = |pid: &u32| {
        let line = command_line(*pid);
        line.contains(program) && !line.starts_with("gembridge-guard")
    };
    server.processes().into_iter().filter(of_agent).collect()
}

fn all_folders_are_private_with(agent: Agent, program: &str) {
    let server = TestServer::with_variables(agent, operators);
    let mut guest = server.guest();
    let session = guest.new_session();
    guest.turn(&session, "hello").1.unwrap();
    let processes = agents(&server, program);
    assert!(!processes.is_empty(), "{:?}", server.processes().into_iter().map(command_line).collect::<Vec<_>>());
    for pid in processes {
        let environment = environment(pid);
        for (name, below) in FOLDERS {
            let operators = server.gateway.home.path(below);
            let folder = environment.get(name).map(PathBuf::from);
            let Some(folder) = folder else { panic!("{name} is not set for `{}`", command_line(pid)) };
            assert_ne!(folder, operators, "{name} is the operator's");
            assert!(folder.starts_with(&environment["HOME"]), "{name} is {}", folder.display());
        }
    }
    assert_no_traces(&server, program);
}

/// Nothing was written for the guest into the operator's home.
fn assert_no_traces(server: &TestServer, program: &str) {
    for (_, below) in &FOLDERS[1..] {
        let folder = server.gateway.home.path(below).join(program);
        assert!(!folder.exists(), "{} was made for a guest", folder.display());
    }
}

#[test]
fn f14_a_guests_opencode_has_a_home_and_folders_of_its_own() {
    all_folders_are_private_with(Agent::OpenCode, "opencode");
}

#[test]
fn f14_a_guests_claude_code_has_a_home_and_folders_of_its_own() {
    all_folders_are_private_with(Agent::Claude, "claude");
}

#[test]
fn f14_a_guests_gemini_cli_has_a_home_and_folders_of_its_own() {
    all_folders_are_private_with(Agent::Gemini, "gemini");
}
