//! SIGHUP: what is good is taken over, what is broken changes nothing.

use std::fs;

use rustix::process::Signal;

use crate::support::gateway::Gateway;
use crate::support::home::Home;

fn allows(gateway: &Gateway, host: &str) -> bool {
    gateway.ask("GET", "/health", &[("host", host)], None).status == 200
}

#[test]
fn r25_a_hang_up_takes_good_settings_and_keeps_the_old_when_they_are_broken() {
    let mut gateway = Home::for_serving().serve();
    assert!(!allows(&gateway, "one.example"));
    gateway.home.configure_serving("[server]\nhosts = ['one.example']\n");
    gateway.signal(Signal::HUP);
    gateway.wait_for("the new host", |gateway| allows(gateway, "one.example").then_some(()));

    gateway.home.configure_serving("[server]\nhsots = ['two.example']\n");
    gateway.signal(Signal::HUP);
    gateway.wait_for("the complaint", |gateway| {
        let said = gateway.stderr();
        (said.contains("the settings stay as they were") && said.contains("did you mean `hosts`?")).then_some(())
    });
    assert!(allows(&gateway, "one.example") && !allows(&gateway, "two.example"));
    assert_eq!(gateway.complete("hello").status, 200);
}

#[test]
fn r25_a_key_file_that_breaks_locks_nobody_out() {
    let mut gateway = Home::for_serving().serve();
    fs::write(gateway.home.config("keys.toml"), "[[keys").unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("the complaint", |gateway| gateway.stderr().contains("the keys stay as they were").then_some(()));
    assert_eq!(gateway.get("/v1/models").status, 200, "{}", gateway.stderr());
}

#[test]
fn r25_a_hang_up_takes_over_rates_and_names_what_waits_for_a_restart() {
    let mut gateway = Home::for_serving().serve();
    let limit = |gateway: &Gateway| gateway.get("/v1/nothing").header("x-ratelimit-limit").map(str::to_owned);
    assert_ne!(limit(&gateway).as_deref(), Some("4321"));
    let text = "limits.requests = 4321\nlimits.turns = 3\nlog.level = 'debug'\n[server]\nhosts = ['one.example']\n[agents.mine]\ncommand = 'x'\n";
    fs::write(gateway.home.config("gembridge.toml"), text).unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("the new rate", |gateway| (limit(gateway).as_deref() == Some("4321")).then_some(()));
    let said = gateway.wait_for("what waits", |gateway| {
        let said = gateway.stderr();
        said.contains("only after a restart").then_some(said)
    });
    let waiting = said.lines().find(|line| line.contains("only after a restart")).unwrap();
    assert!(waiting.contains("`limits.turns`") && waiting.contains("`agents.mine.command`"), "{waiting}");
    for taken_over in ["limits.requests", "server.hosts", "log.level"] {
        assert!(!waiting.contains(taken_over), "{waiting}");
    }
    gateway.wait_for("more words", |gateway| {
        // Something that is told at that level.
        drop(gateway.connect().send("non sense", "", &[], None));
        gateway.stderr().contains(" debug ").then_some(())
    });
}

#[test]
fn r25_a_hang_up_takes_over_what_names_of_models_stand_for() {
    let mut gateway = Home::for_serving().serve();
    let lists = |gateway: &Gateway, name: &str| gateway.get("/v1/models").body.contains(&format!("\"{name}\""));
    assert!(!lists(&gateway, "my-model"));
    gateway.home.configure_serving("[models]\nmy-model = 'demo'\n");
    gateway.signal(Signal::HUP);
    gateway.wait_for("the new name", |gateway| lists(gateway, "my-model").then_some(()));
    gateway.home.configure_serving("");
    gateway.signal(Signal::HUP);
    gateway.wait_for("the end of it", |gateway| (!lists(gateway, "my-model")).then_some(()));
    assert!(!gateway.stderr().contains("only after a restart"), "{}", gateway.stderr());
}
