//! `gembridge agents` and `gembridge doctor` on a machine with and without an agent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::home::Home;

/// A program on PATH that tells a version and does nothing else.
fn install(home: &Home, name: &str, version: &str) {
    let program = home.path("empty").join(name);
    gembridge_testkit::write_script(&program, &format!("#!/bin/sh\necho {version}\n")).unwrap();
}

fn agent<'a>(agents: &'a Value, name: &str) -> &'a Value {
    agents.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn with_nothing_installed_the_built_in_agent_is_the_default() {
    let home = Home::new();
    let agents = home.run(&["agents", "--json"]).succeeds().json();
    let demo = agent(&agents, "demo");
    assert_eq!((&demo["installed"], &demo["default"]), (&true.into(), &true.into()));
    let gemini = agent(&agents, "gemini");
    assert_eq!(gemini["installed"], false);
    assert!(gemini["install"].as_str().unwrap().contains("npm i -g @google/gemini-cli"));
    let listing = home.run(&["agents"]).succeeds().stdout;
    assert!(listing.lines().any(|line| line.starts_with("✓ demo") && line.contains("(default)")), "{listing}");
}

#[test]
fn the_first_known_agent_that_is_installed_and_logged_in_is_the_default() {
    let home = Home::new();
    let default = |variables: &[(&str, &str)]| {
        let agents = home.run_with(&["agents", "--json"], variables).succeeds().json();
        let default = agents.as_array().unwrap().iter().find(|agent| agent["default"] == true).unwrap();
        default["name"].as_str().unwrap().to_owned()
    };
    for name in ["opencode", "claude-agent-acp", "qwen"] {
        install(&home, name, "1.0.0");
    }
    assert_eq!(default(&[]), "demo", "none of them has a login");
    assert_eq!(default(&[("DASHSCOPE_API_KEY", "x"), ("OPENROUTER_API_KEY", "x")]), "opencode");
    assert_eq!(default(&[("ANTHROPIC_API_KEY", "x")]), "claude", "of two that could serve the first counts");
    install(&home, "gemini", "0.61.0");
    assert_eq!(default(&[("ANTHROPIC_API_KEY", "x")]), "gemini", "it is preferred wherever it is installed");
}

#[test]
fn an_agent_without_a_login_is_named_with_the_way_to_log_in() {
    let home = Home::new();
    install(&home, "claude-agent-acp", "0.99.0");
    let ran = home.run(&["run", "hello"]).succeeds();
    for said in ["agent `claude` is installed, but not logged in", "set `ANTHROPIC_API_KEY`"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let report = home.run(&["doctor", "--json"]).json();
    assert!(check(&report, "agent")["detail"].as_str().unwrap().contains("not logged in"), "{report}");
}

#[test]
fn an_installed_agent_is_shown_with_its_path_version_and_login() {
    let home = Home::new();
    install(&home, "gemini", "0.61.0");
    let agents = home.run_with(&["agents", "--json"], &[("GEMINI_API_KEY", "canary")]).succeeds();
    assert!(!agents.stdout.contains("canary") && !agents.stderr.contains("canary"));
    let agents = agents.json();
    let gemini = agent(&agents, "gemini");
    assert_eq!((&gemini["version"], &gemini["default"]), (&"0.61.0".into(), &true.into()));
    assert_eq!(gemini["path"], home.path("empty/gemini").to_str().unwrap());
    assert!(gemini["login"]["source"].as_str().unwrap().contains("GEMINI_API_KEY"));
}

#[test]
fn a_variable_that_names_nothing_is_a_warning_and_the_search_goes_on() {
    let home = Home::new();
    install(&home, "gemini", "0.61.0");
    let agents = home.run_with(&["agents", "--json"], &[("GEMINI_CLI_PATH", "/nowhere/gemini")]).succeeds().json();
    let gemini = agent(&agents, "gemini");
    assert_eq!(gemini["path"], home.path("empty/gemini").to_str().unwrap());
    assert!(gemini["warnings"][0].as_str().unwrap().contains("GEMINI_CLI_PATH"));
    install(&home, "my-gemini", "0.61.0");
    let agents = home.run_with(&["agents", "--json"], &[("GEMINI_CLI_PATH", "my-gemini")]).succeeds().json();
    assert_eq!(agent(&agents, "gemini")["path"], home.path("empty/my-gemini").to_str().unwrap());
}

#[test]
fn an_agent_of_the_operators_own_is_an_agent_like_any_other() {
    let home = Home::new().with_config(
        "gembridge.toml",
        "[default]\nagent = 'mine'\n[agents.mine]\ncommand = 'my-agent'\nargs = ['--acp']\n",
    );
    home.run(&["run", "hi"]).refused(3, "agent `mine`: `my-agent` was not found");
    install(&home, "my-agent", "v1.2.3");
    let agents = home.run(&["agents", "--json"]).succeeds().json();
    assert_eq!(
        (&agent(&agents, "mine")["version"], &agent(&agents, "mine")["default"]),
        (&"1.2.3".into(), &true.into())
    );
}

#[test]
fn an_agent_that_is_not_known_or_not_there_is_refused_with_the_way_out() {
    let home = Home::new();
    home.run(&["run", "--agent", "gemni", "hi"]).refused(2, "agent `gemni` is not known; did you mean `gemini`?");
    home.run(&["run", "--agent", "gemini", "hi"]).refused(3, "npm i -g @google/gemini-cli");
    home.run(&["doctor", "--agent", "gemni"]).refused(2, "did you mean `gemini`?");
}

#[test]
fn doctor_finds_a_machine_with_only_the_built_in_agent_usable() {
    let home = Home::new();
    let report = home.run(&["doctor", "--json"]).succeeds().json();
    assert_eq!(report["ok"], true);
    let agent = check(&report, "agent");
    assert_eq!(agent["status"], "warn");
    assert!(agent["fix"].as_str().unwrap().contains("npm i -g @google/gemini-cli"));
    for name in ["settings", "private", "trust", "client tools", "landlock", "disk", "open files", "leftovers"] {
        assert!(check(&report, name)["detail"].is_string(), "{name}");
    }
}

#[test]
fn doctor_names_the_fix_for_what_is_broken() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--agent", "gemini"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("✗ agent"), "{}", ran.stdout);
    assert!(ran.stdout.contains("→ run `npm i -g @google/gemini-cli`"), "{}", ran.stdout);

    install(&home, "gemini", "0.11.3");
    fs::set_permissions(home.path(".config/gembridge"), fs::Permissions::from_mode(0o755)).unwrap();
    let report = home.run_with(&["doctor", "--json"], &[("GEMINI_API_KEY", "canary")]);
    assert!(!report.stdout.contains("canary"), "a key is never shown");
    let report = report.json();
    assert!(check(&report, "agent")["detail"].as_str().unwrap().contains("older than the tested"));
    assert!(check(&report, "login")["detail"].as_str().unwrap().contains("`GEMINI_API_KEY`"));
    assert!(check(&report, "private")["fix"].as_str().unwrap().contains("chmod 700"));
}

#[test]
fn doctor_says_which_agents_serve_guests_and_what_keeps_them_from_the_operators_files() {
    let home = Home::new().with_config("gembridge.toml", "[agents.mine]\ncommand = 'my-agent'\n");
    install(&home, "my-agent", "v1.2.3");
    install(&home, "codex-acp", "2.6.0");
    let report = home.run(&["doctor", "--json"]).succeeds().json();
    assert_eq!(check(&report, "guest fence")["status"], "ok");
    let guests = check(&report, "guests")["detail"].as_str().unwrap().to_owned();
    assert_eq!(guests, "served by `demo`, `mine`; `codex` not: its tools cannot be turned off");

    let home = home.with_config("gembridge.toml", "guests.fence = false\n[agents.mine]\ncommand = 'my-agent'\n");
    let report = home.run(&["doctor", "--json"]).succeeds().json();
    assert_eq!(check(&report, "guest fence")["status"], "warn");
    let guests = check(&report, "guests")["detail"].as_str().unwrap().to_owned();
    assert!(guests.contains("served by `demo`;") && guests.contains("`mine` not: it has a way to files"), "{guests}");
}

#[test]
fn a_path_that_would_open_gembridges_own_files_to_guests_is_refused() {
    let home = Home::new();
    let folder = home.path(".config");
    let text = format!("[agents.mine]\ncommand = 'my-agent'\nguest_read = ['{}']\n", folder.display());
    home.with_config("gembridge.toml", &text).run(&["agents"]).refused(2, "holds gembridge's own files");
}
