//! A gateway that cannot start says why in one sentence, and has started nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::home::Home;

#[track_caller]
fn one_sentence(said: &str, expected: &str) {
    let complaints: Vec<_> = said.lines().filter(|line| line.starts_with("gembridge: ")).collect();
    assert_eq!(complaints.len(), 1, "{said}");
    assert!(complaints[0].contains(expected), "{said}");
}

#[test]
fn s4_an_address_that_others_reach_needs_a_key() {
    let home = Home::for_serving();
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
    let mut gateway = Home::for_serving().serve_with(&["--agent", "demo", "--host", "0.0.0.0"], &[]);
    assert!(gateway.stdout().contains("for others, on 0.0.0.0:"), "{}", gateway.stdout());
    for word in ["warn", "others can reach 0.0.0.0:", "--behind-proxy", "--allow-host"] {
        gateway.wait_for(word, |gateway| gateway.stderr().contains(word).then_some(()));
    }
    let args = ["--agent", "demo", "--host", "0.0.0.0", "--behind-proxy", "--allow-host", "bridge.example"];
    let gateway = Home::for_serving().serve_with(&args, &[]);
    assert!(!gateway.stderr().contains("others can reach"), "{}", gateway.stderr());
    let asked = |host: &str| gateway.ask("GET", "/health", &[("host", host)], None).status;
    assert_eq!((asked("bridge.example"), asked("evil.example")), (200, 403));
}

#[test]
fn f17_a_token_that_can_be_guessed_is_refused_where_others_reach_and_a_warning_here() {
    let home = Home::for_serving();
    let serve = |host: &str, token: &str| {
        let mut command = home.command(&["serve", "--port", "0", "--agent", "demo", "--host", host]);
        command.env("BEARER_TOKEN", token).output().unwrap()
    };
    let refused = serve("0.0.0.0", &"x".repeat(31));
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    one_sentence(&said, "`BEARER_TOKEN` has 31 characters");
    let doctor = home.command(&["doctor", "--agent", "demo"]).env("BEARER_TOKEN", "a").output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("`BEARER_TOKEN` has 1 characters"), "{doctor:?}");

    let mut gateway = home.serve_with(&["--agent", "demo"], &[("BEARER_TOKEN", "short-canary")]);
    gateway.wait_for("the warning", |gateway| gateway.stderr().contains("has 12 characters").then_some(()));
    assert!(!gateway.stderr().contains("canary"), "{}", gateway.stderr());
    let long = "x".repeat(32);
    let gateway = Home::for_serving().serve_with(&["--agent", "demo", "--host", "0.0.0.0"], &[("BEARER_TOKEN", &long)]);
    assert_eq!(gateway.get_as(&long, "/metrics").status, 200);
    assert!(!gateway.stderr().contains("characters"), "{}", gateway.stderr());
}

#[test]
fn f19_a_folder_where_another_users_files_lie_is_refused_before_anything_starts() {
    let home = Home::for_serving();
    let state = home.state("");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&state, Some(65_534), None).unwrap();
        for args in
            [&["serve", "--port", "0", "--agent", "demo"][..], &["run", "--agent", "demo", "hello"], &["keys", "list"]]
        {
            let refused = home.command(args).output().unwrap();
            assert_eq!(refused.status.code(), Some(2), "{args:?}");
            one_sentence(&String::from_utf8(refused.stderr).unwrap(), "belongs to user 65534");
        }
        let report = home.command(&["doctor", "--agent", "demo"]).output().unwrap();
        assert!(String::from_utf8_lossy(&report.stdout).contains("belongs to user 65534"), "{report:?}");
        assert!(!home.config("keys.toml").exists());
        std::os::unix::fs::chown(&state, Some(0), None).unwrap();
    }
    // Our own, with nothing of others in it, is made private.
    let mut gateway = home.serve();
    gateway.wait_for("the warning", |gateway| gateway.stderr().contains("it is private now").then_some(()));
    assert_eq!(fs::metadata(gateway.home.state("")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_port_that_is_taken_is_told_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let home = Home::for_serving();
    let (code, said) = home.refused(&["--port", &port]);
    assert_eq!(code, 2);
    one_sentence(&said, "another program listens there; stop it, or choose another port with `--port`");
    assert!(!home.config("keys.toml").exists() && !home.state("key").exists(), "nothing is half-started");
}

#[test]
fn r22_a_second_gateway_on_one_state_folder_is_refused_and_harms_nothing() {
    let gateway = Home::for_serving().serve();
    let (code, said) = gateway.home.refused(&["--agent", "demo"]);
    assert_eq!(code, 2);
    one_sentence(&said, "is in use by another gembridge");
    assert_eq!(gateway.complete("hello").status, 200);
}

#[test]
fn broken_settings_are_refused_before_anything_starts() {
    let home = Home::for_serving();
    for (settings, expected) in [
        ("[server]\nhostss = 'x'\n", "did you mean `hosts`?"),
        ("[server]\nhosts = ['http://x']\n", "is not a host"),
        ("[server]\nproxies = ['everywhere']\n", "no address and no block of addresses"),
        ("[server]\nhost = 'no such host'\n", "has no address"),
    ] {
        home.configure_serving(settings);
        let (code, said) = home.refused(&[]);
        assert_eq!(code, 2, "{said}");
        one_sentence(&said, expected);
    }
    home.configure_serving("");
    let (code, said) = home.refused(&["--agent", "gemni"]);
    assert_eq!(code, 2);
    one_sentence(&said, "did you mean `gemini`?");
}

#[test]
fn who_has_the_port_is_told_where_it_says_so_itself() {
    let ollama = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ollama.local_addr().unwrap().port().to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = ollama.accept().unwrap();
        // A connection that is closed with something unread takes its answer along.
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        let said = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\nconnection: close\r\n\r\nOllama is running";
        stream.write_all(said.as_bytes()).unwrap();
        ollama
    });
    let (code, said) = Home::for_serving().refused(&["--port", &port]);
    assert_eq!(code, 2);
    one_sentence(&said, "Ollama listens there; stop it, or choose another port with `--port`");
    drop(answering.join().unwrap());
    let gateway = Home::for_serving().serve();
    let port = gateway.address.port().to_string();
    let (_, said) = Home::for_serving().refused(&["--port", &port]);
    one_sentence(&said, "another gembridge listens there");
}
