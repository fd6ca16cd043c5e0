//! A gateway that cannot start says why in one sentence, and has started nothing.

use std::fs;
use std::net::TcpListener;

use crate::gateway::Home;

#[track_caller]
fn one_sentence(said: &str, expected: &str) {
    let complaints: Vec<_> = said.lines().filter(|line| line.starts_with("gembridge: ")).collect();
    assert_eq!(complaints.len(), 1, "{said}");
    assert!(complaints[0].contains(expected), "{said}");
}

#[test]
fn s4_an_address_that_others_reach_needs_a_key() {
    let home = Home::new();
    fs::write(home.config("keys.toml"), "keys = []\n").unwrap();
    for host in ["0.0.0.0", "::"] {
        let (code, said) = home.refused(&["--host", host]);
        assert_eq!(code, 2);
        one_sentence(&said, "there is no key that lets anybody in; run `gembridge keys create NAME` first");
    }
    fs::remove_file(home.config("keys.toml")).unwrap();
    fs::create_dir(home.config("keys.toml")).unwrap();
    let (code, said) = home.refused(&["--host", "0.0.0.0"]);
    assert_eq!(code, 2);
    one_sentence(&said, "keys.toml");
}

#[test]
fn s4_with_a_key_the_address_is_named_and_missing_tls_is_a_loud_warning() {
    let mut gateway = Home::new().serve_with(&["--agent", "demo", "--host", "0.0.0.0"], &[]);
    assert!(gateway.stdout().contains("for others, on 0.0.0.0:"), "{}", gateway.stdout());
    for word in ["warn", "others can reach 0.0.0.0:", "--behind-proxy", "--allow-host"] {
        gateway.wait_for(word, |gateway| gateway.stderr().contains(word).then_some(()));
    }
    let args = ["--agent", "demo", "--host", "0.0.0.0", "--behind-proxy", "--allow-host", "bridge.example"];
    let gateway = Home::new().serve_with(&args, &[]);
    assert!(!gateway.stderr().contains("others can reach"), "{}", gateway.stderr());
    let asked = |host: &str| gateway.ask("GET", "/health", &[("host", host)], None).status;
    assert_eq!((asked("bridge.example"), asked("evil.example")), (200, 403));
}

#[test]
fn a_port_that_is_taken_is_told_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let home = Home::new();
    let (code, said) = home.refused(&["--port", &port]);
    assert_eq!(code, 2);
    one_sentence(&said, "another program listens there, perhaps another gembridge; stop it, or choose another port");
    assert!(!home.config("keys.toml").exists() && !home.state("key").exists(), "nothing is half-started");
}

#[test]
fn r22_a_second_gateway_on_one_state_folder_is_refused_and_harms_nothing() {
    let gateway = Home::new().serve();
    let (code, said) = gateway.home.refused(&["--agent", "demo"]);
    assert_eq!(code, 2);
    one_sentence(&said, "is in use by another gembridge");
    assert_eq!(gateway.complete("hello").status, 200);
}

#[test]
fn broken_settings_are_refused_before_anything_starts() {
    let home = Home::new();
    for (settings, expected) in [
        ("[server]\nhostss = 'x'\n", "did you mean `hosts`?"),
        ("[server]\nhosts = ['http://x']\n", "is not a host"),
        ("[server]\nproxies = ['everywhere']\n", "no address and no block of addresses"),
        ("[server]\nhost = 'no such host'\n", "has no address"),
    ] {
        home.configure(settings);
        let (code, said) = home.refused(&[]);
        assert_eq!(code, 2, "{said}");
        one_sentence(&said, expected);
    }
    home.configure("");
    let (code, said) = home.refused(&["--agent", "gemni"]);
    assert_eq!(code, 2);
    one_sentence(&said, "did you mean `gemini`?");
}
