//! Whose sessions a key has: those of its owner, who is not the name of the key.

use std::fs;

use crate::support::gateway::{Gateway, said};
use crate::support::home::Home;

/// A session of this key.
fn session(gateway: &Gateway, key: &str) -> String {
    let answer = gateway.complete_as(key, &said("say hello"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.header("x-session-id").unwrap().to_owned()
}

fn goes_on(gateway: &Gateway, key: &str, session: &str) -> u16 {
    gateway.complete_as(key, &said("say again"), &[("x-session-id", session)]).status
}

/// A gateway whose agent works in the operator's folder, which only admin keys may use.
fn in_the_workspace() -> Gateway {
    let home = Home::for_serving();
    let folder = home.path("project");
    fs::create_dir(&folder).unwrap();
    let program = gembridge_testkit::fake_agent_path();
    home.configure_serving(&format!(
        "[agents.fake]\ncommand = {:?}\nmode = 'agent'\nworkspace = {:?}\n",
        program.to_str().unwrap(),
        folder.to_str().unwrap()
    ));
    home.serve_fake()
}

/// The gateway says so in its log.
fn was_closed(gateway: &Gateway, session: &str) -> bool {
    let said = gateway.stderr();
    said.lines().any(|line| line.contains("its owner lost the key or the rank") && line.contains(session))
}

#[test]
fn f11_a_new_key_with_an_old_name_sees_nothing_of_the_old_one() {
    let gateway = Home::for_serving().serve();
    let old = gateway.home.key("ann");
    let session = session(&gateway, &old);
    assert_eq!(goes_on(&gateway, &old, &session), 200);
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    let new = gateway.home.key("ann");
    assert_eq!(goes_on(&gateway, &new, &session), 404);
    assert_eq!(goes_on(&gateway, &gateway.key, &session), 200, "the operator still finds it");
}

#[test]
fn f11_an_entry_without_an_owner_keeps_its_sessions_and_no_later_key_gets_them() {
    let gateway = Home::for_serving().serve();
    let old = gateway.home.key("ann");
    let path = gateway.home.config("keys.toml");
    // As an earlier version wrote it.
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("owner"));
    fs::write(&path, lines.flat_map(|line| [line, "\n"]).collect::<String>()).unwrap();
    let session = session(&gateway, &old);
    assert_eq!(goes_on(&gateway, &old, &session), 200);
    let rotated = gateway.home.stdout_of(&["keys", "rotate", "ann"]).trim().to_owned();
    assert_eq!((goes_on(&gateway, &old, &session), goes_on(&gateway, &rotated, &session)), (401, 200));
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    let new = gateway.home.key("ann");
    assert_eq!(goes_on(&gateway, &new, &session), 404);
}

#[test]
fn f11_a_rotated_key_keeps_its_sessions_and_the_old_secret_stops_at_once() {
    let gateway = Home::for_serving().serve();
    let first = gateway.home.key("ann");
    let session = session(&gateway, &first);
    let second = gateway.home.stdout_of(&["keys", "rotate", "ann"]).trim().to_owned();
    assert_eq!((goes_on(&gateway, &first, &session), goes_on(&gateway, &second, &session)), (401, 200));

    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = gateway.ask("POST", "/admin/keys/ann/rotate", &headers, Some("{}"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let third = answer.json()["key"].as_str().unwrap().to_owned();
    assert_eq!((goes_on(&gateway, &second, &session), goes_on(&gateway, &third, &session)), (401, 200));
    assert_eq!(gateway.ask("POST", "/admin/keys/nobody/rotate", &headers, Some("{}")).status, 400);

    // The key of the first run is found where it was.
    gateway.home.stdout_of(&["keys", "rotate", "admin"]);
    assert_eq!(gateway.get("/v1/models").status, 401);
    let admin = fs::read_to_string(gateway.home.state("key")).unwrap();
    assert_eq!(gateway.get_as(admin.trim(), "/v1/models").status, 200);
}

#[test]
fn f11_an_operator_who_is_one_no_more_loses_the_operators_processes_and_their_turns() {
    let mut gateway = in_the_workspace();
    let gate = gateway.home.path("gate");
    let ann = gateway.home.stdout_of(&["keys", "create", "ann", "--admin"]).trim().to_owned();
    let idle = session(&gateway, &ann);
    let mut running = gateway.stream_as(&ann, &format!("say begun ;; until {} ;; say done", gate.display()));
    running.until("begun");

    let path = gateway.home.config("keys.toml");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find("name = \"ann\"").unwrap();
    let (before, of_ann) = text.split_at(at);
    fs::write(&path, format!("{before}{}", of_ann.replacen("\"admin\"", "\"user\"", 1))).unwrap();
    assert_eq!(gateway.get_as(&ann, "/admin/status").status, 403, "she is a user now");
    let refused = gateway.complete_as(&ann, &said("say again"), &[("x-session-id", &idle)]);
    assert_eq!(refused.status, 403, "{}", refused.body);
    gateway.wait_for("the end of her session", |gateway| was_closed(gateway, &idle).then_some(()));
    gateway.wait_for("the end of her turn", |gateway| {
        (gateway.get("/admin/status").json()["sessions"]["running"] == 0).then_some(())
    });
    assert_ne!(running.rest().1, crate::support::http::End::Done);
    let refused = gateway.complete_as(&ann, &said("say again"), &[("x-session-id", &idle)]);
    assert_eq!(refused.status, 403, "{}", refused.body);
}

#[test]
fn f11_the_sessions_of_a_revoked_operator_end() {
    let mut gateway = in_the_workspace();
    let gate = gateway.home.path("gate");
    let ann = gateway.home.stdout_of(&["keys", "create", "ann", "--admin"]).trim().to_owned();
    let hers = session(&gateway, &ann);
    let mut running = gateway.stream_as(&ann, &format!("say begun ;; until {} ;; say done", gate.display()));
    running.until("begun");
    let mine = session(&gateway, &gateway.key);
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    gateway.wait_for("the end of her session", |gateway| was_closed(gateway, &hers).then_some(()));
    gateway.wait_for("the end of her turn", |gateway| {
        (gateway.get("/admin/status").json()["sessions"]["running"] == 0).then_some(())
    });
    assert!(!was_closed(&gateway, &mine), "the others' sessions stay");
    assert_eq!(goes_on(&gateway, &gateway.key, &mine), 200);
}
