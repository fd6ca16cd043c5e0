//! The first run makes a key, and every later one finds it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::home::Home;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn s1_f16_the_first_run_makes_a_key_keeps_it_private_and_prints_it_into_no_file() {
    let home = Home::for_serving();
    fs::set_permissions(home.config(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut gateway = home.serve();
    let banner = gateway.stdout();
    assert!(banner.lines().count() <= 10, "{banner}");
    // Standard output is a file here, as it is a journal under systemd: what is written there stays.
    assert!(!banner.contains(&gateway.key) && !gateway.stderr().contains(&gateway.key), "{banner}");
    assert!(banner.contains(gateway.home.state("key").to_str().unwrap()), "{banner}");
    assert!(gateway.key.starts_with("gb-") && gateway.key.len() == 3 + 64);
    assert_eq!(mode(&gateway.home.state("key")), 0o600);
    assert_eq!(mode(&gateway.home.config("keys.toml")), 0o600);
    assert_eq!((mode(&gateway.home.state("")), mode(&gateway.home.config(""))), (0o700, 0o700));
    assert!(!fs::read_to_string(gateway.home.config("keys.toml")).unwrap().contains(&gateway.key));
    assert_eq!(gateway.get("/v1/models").status, 200);

    let key = gateway.key.clone();
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.ended().success());
    let home = std::mem::replace(&mut gateway.home, Home::for_serving());
    let again = home.serve();
    assert_eq!(again.key, key);
    assert!(!again.stdout().contains(&key));
    assert_eq!(again.get("/v1/models").status, 200);
}

#[test]
fn a_token_of_the_environment_is_a_key_and_no_other_is_made() {
    let gateway = Home::for_serving().serve_with(&["--agent", "demo"], &[("BEARER_TOKEN", "token-of-the-operator")]);
    assert_eq!(gateway.get_as("token-of-the-operator", "/metrics").status, 200);
    assert_eq!(gateway.get_as("token-of-somebody", "/metrics").status, 401);
    assert!(!gateway.home.config("keys.toml").exists());
    assert!(!gateway.stdout().contains("token-of-the-operator"));
}

#[test]
fn with_nothing_installed_the_demo_agent_answers_and_every_place_says_so() {
    let mut gateway = Home::for_serving().serve_with(&[], &[]);
    assert!(gateway.stdout().contains("Demo agent, since no agent is installed"), "{}", gateway.stdout());
    gateway.wait_for("the log's word", |gateway| gateway.stderr().contains("no agent is installed").then_some(()));
    assert!(gateway.complete("hello").text().contains("demo agent"));
}

#[test]
fn a_revoked_first_key_leaves_nothing_behind() {
    let gateway = Home::for_serving().serve();
    assert!(gateway.home.state("key").exists());
    gateway.home.stdout_of(&["keys", "revoke", "admin"]);
    assert!(!gateway.home.state("key").exists());
    assert_eq!(gateway.get("/v1/models").status, 401);
}

#[test]
fn a_settings_file_that_is_not_there_is_told_once() {
    let home = Home::for_serving();
    let (code, said) = home.refused(&["--config", "/nonexistent/gembridge.toml"]);
    assert_ne!(code, 0);
    assert_eq!(said.to_lowercase().matches("no such file").count(), 1, "{said}");
}
