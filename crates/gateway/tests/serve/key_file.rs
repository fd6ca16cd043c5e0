//! The file of the keys: changed by many at once, damaged by hand, or not a file at all.

use std::fs;
use std::path::Path;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::Answer;

fn admin(gateway: &Gateway, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    gateway.ask(method, path, &headers, body.map(Value::to_string).as_deref())
}

fn create(gateway: &Gateway, name: &str) -> String {
    let answer = admin(gateway, "POST", "/admin/keys", Some(&json!({ "name": name })));
    assert_eq!(answer.status, 200, "{name}: {}", answer.body);
    answer.json()["key"].as_str().unwrap().to_owned()
}

fn revoke(gateway: &Gateway, name: &str) {
    let answer = admin(gateway, "DELETE", &format!("/admin/keys/{name}"), None);
    assert_eq!(answer.status, 204, "{name}: {}", answer.body);
}

fn status(gateway: &Gateway, key: &str) -> u16 {
    gateway.get_as(key, "/v1/models").status
}

/// A key that was made, and whether it was revoked again.
struct Made {
    name: String,
    key: String,
    is_good: bool,
}

fn check(gateway: &Gateway, all: &[Made]) {
    for Made { name, key, is_good } in all {
        assert_eq!(status(gateway, key), if *is_good { 200 } else { 401 }, "{name}");
    }
    let listed: Value = serde_json::from_str(&gateway.home.stdout_of(&["keys", "list", "--json"])).unwrap();
    let mut listed: Vec<_> = listed.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    let mut expected: Vec<_> = all.iter().filter(|made| made.is_good).map(|made| made.name.as_str()).collect();
    expected.push("admin");
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn f5_sixteen_parallel_writers_and_a_command_beside_them_lose_no_key_and_no_revocation() {
    let gateway = Home::for_serving().serve();
    let over_http = |writer: usize| {
        let mut all = Vec::new();
        for round in 0..4 {
            let name = format!("http-{writer}-{round}");
            let key = create(&gateway, &name);
            assert_eq!(status(&gateway, &key), 200, "{name} was made");
            let is_good = round % 2 == 0;
            if !is_good {
                revoke(&gateway, &name);
                assert_eq!(status(&gateway, &key), 401, "{name} was revoked");
            }
            all.push(Made { name, key, is_good });
        }
        all
    };
    let by_command = |number: usize| {
        let name = format!("command-{number}");
        let key = gateway.home.key(&name);
        let is_good = number.is_multiple_of(2);
        if !is_good {
            gateway.home.stdout_of(&["keys", "revoke", &name]);
        }
        assert_eq!(status(&gateway, &key), if is_good { 200 } else { 401 }, "{name}");
        Made { name, key, is_good }
    };
    let all: Vec<Made> = thread::scope(|scope| {
        let writers: Vec<_> = (0..16).map(|writer| scope.spawn(move || over_http(writer))).collect();
        let command = scope.spawn(|| (0..8).map(by_command).collect::<Vec<_>>());
        writers.into_iter().chain([command]).flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(all.len(), 16 * 4 + 8);
    check(&gateway, &all);
    let left = fs::read_dir(gateway.home.config("")).unwrap().flatten().map(|entry| entry.file_name());
    let mut left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("keys.toml")).collect();
    left.sort();
    assert_eq!(left, ["keys.toml", "keys.toml.lock"], "no temporary file is left");

    let again = restarted(gateway);
    check(&again, &all);
}

fn restarted(mut gateway: Gateway) -> Gateway {
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.ended().success());
    gateway.into_home().serve()
}

fn edit(path: &Path, edit: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, edit(text)).unwrap();
}

fn entry(name: &str, digest: &str) -> String {
    format!("[[keys]]\nname = '{name}'\ndigest = '{digest}'\nrank = 'user'\ncreated = '2026-01-02T03:04:05Z'\n")
}

fn doctor(home: &Home) -> Value {
    let output = home.command(&["doctor", "--agent", "demo", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn f5_a_damaged_entry_costs_that_entry_and_is_reported_without_its_contents() {
    let gateway = Home::for_serving().serve();
    let (ann, bob) = (create(&gateway, "ann"), create(&gateway, "bob"));
    let path = gateway.home.config("keys.toml");
    let damaged = entry("eve", "gb-canary") + &entry("gb canary", &"0".repeat(64)) + "[[keys]]\nname = 'gb-canary\n";
    edit(&path, |text| format!("{damaged}\n{text}"));
    assert_eq!((status(&gateway, &ann), status(&gateway, &gateway.key)), (200, 200));

    let mut gateway = restarted(gateway);
    assert_eq!((status(&gateway, &ann), status(&gateway, &gateway.key)), (200, 200));
    for line in ["line 1", "line 6", "line 11"] {
        let told = |gateway: &mut Gateway| gateway.stderr().matches(&format!("keys.toml` {line}:")).count();
        gateway.wait_for("the warning", |gateway| (told(gateway) > 0).then_some(()));
        assert_eq!(told(&mut gateway), 1, "{line}: {}", gateway.stderr());
    }
    let report = doctor(&gateway.home);
    let keys = report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "keys");
    let keys: Vec<_> = keys.collect();
    assert!(keys.iter().any(|check| check["status"] == "warn" && check["detail"].as_str().unwrap().contains("line 6")));

    // Changes go on, and what was damaged is not lost without a word.
    let carl = create(&gateway, "carl");
    revoke(&gateway, "bob");
    assert_eq!([&ann, &carl, &bob].map(|key| status(&gateway, key)), [200, 200, 401]);
    let beside = fs::read_dir(gateway.home.config("")).unwrap().flatten().map(|entry| entry.path());
    let copy = beside.into_iter().find(|path| path.to_string_lossy().contains("keys.toml.damaged-"));
    let copy = fs::read_to_string(copy.expect("a copy of the damaged file")).unwrap();
    assert!(copy.contains(&damaged), "{copy}");
    assert!(gateway.stderr().contains("keys.toml.damaged-"), "{}", gateway.stderr());
    let said = gateway.stderr() + &report.to_string() + &gateway.home.stdout_of(&["keys", "list"]);
    assert!(!said.contains("canary"), "{said}");
    let again = restarted(gateway);
    assert_eq!([&ann, &carl, &bob].map(|key| status(&again, key)), [200, 200, 401]);
}

#[test]
fn f5_a_name_that_stands_twice_admits_nobody_whose_key_may_have_been_revoked() {
    let gateway = Home::for_serving().serve();
    let (old, path) = (create(&gateway, "ann"), gateway.home.config("keys.toml"));
    let with_old = fs::read_to_string(&path).unwrap();
    revoke(&gateway, "ann");
    let new = create(&gateway, "ann");
    let bob = create(&gateway, "bob");
    // As if a copy of the file from before had been joined to the one of now.
    let of_old = with_old.split("[[keys]]").find(|entry| entry.contains("'ann'") || entry.contains("\"ann\"")).unwrap();
    edit(&path, |text| format!("{text}\n[[keys]]{of_old}"));
    assert_eq!([&old, &new, &bob].map(|key| status(&gateway, key)), [401, 401, 200], "nobody can tell which is good");
    revoke(&gateway, "ann");
    assert_eq!([&old, &new, &bob].map(|key| status(&gateway, key)), [401, 401, 200]);
    create(&gateway, "carl");
    let gateway = restarted(gateway);
    assert_eq!([&old, &new, &bob].map(|key| status(&gateway, key)), [401, 401, 200]);

    // The same entry twice leaves nothing to be decided.
    edit(&path, |text| {
        let of_bob = text.split("[[keys]]").find(|entry| entry.contains("\"bob\"")).unwrap().to_owned();
        format!("{text}\n[[keys]]{of_bob}")
    });
    assert_eq!(status(&gateway, &bob), 200);
    revoke(&gateway, "bob");
    assert_eq!(status(&gateway, &bob), 401);
}

#[test]
fn f18_a_fifo_in_the_place_of_the_keys_freezes_nothing_and_changes_no_key() {
    let mut gateway = Home::for_serving().serve();
    let path = gateway.home.config("keys.toml");
    fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert_eq!(gateway.ask("GET", "/health", &[], None).status, 200);
    assert_eq!(gateway.get("/v1/models").status, 200, "the keys stay as they were");
    gateway.wait_for("the log's word", |gateway| gateway.stderr().contains("is not a regular file").then_some(()));
    assert_eq!(admin(&gateway, "POST", "/admin/keys", Some(&json!({ "name": "ann" }))).status, 500);
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.ended().success());
    let (code, said) = gateway.into_home().refused(&["--agent", "demo"]);
    assert!(code != 0 && said.contains("keys.toml") && said.contains("is not a regular file"), "{said}");
}
