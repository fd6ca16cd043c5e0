//! Keys and origins that change while the gateway runs, and what one key sees of another's.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::gateway::{post, said};
use crate::support::home::Home;
use crate::support::http::End;

#[test]
fn s6_a_revoked_key_fails_on_its_next_request_and_its_streams_end() {
    let gateway = Home::for_serving().serve();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let mut of_ann = gateway.stream_as(&ann, "slow 600 100");
    let mut of_bob = gateway.stream_as(&bob, "slow 60 100");
    assert_eq!((of_ann.status, of_bob.status), (200, 200));
    of_ann.until(" ");
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    let revoked = Instant::now();
    let refused = gateway.get_as(&ann, "/v1/models");
    assert_eq!((refused.status, refused.code().as_str()), (401, "invalid_api_key"));
    let (_, end) = of_ann.rest();
    assert_ne!(end, End::Done);
    // Sixty seconds of text were left; five are allowed, the rest is for a busy machine.
    assert!(revoked.elapsed() < Duration::from_secs(20), "{:?}", revoked.elapsed());
    assert_eq!(of_bob.rest().1, End::Done, "others are not disturbed");
}

#[test]
fn a_new_key_works_at_once_and_is_listed_without_itself() {
    let gateway = Home::for_serving().serve();
    let made = gateway.home.stdout_of(&["keys", "create", "ci", "--turns", "2", "--priority", "-1", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let key = made["key"].as_str().unwrap();
    assert_eq!(gateway.get_as(key, "/v1/models").status, 200);
    let listed = gateway.home.stdout_of(&["keys", "list"]);
    assert!(listed.contains("admin") && listed.contains("ci") && listed.contains("turns 2, priority -1"), "{listed}");
    let as_json = gateway.home.stdout_of(&["keys", "list", "--json"]);
    assert!(!listed.contains(key) && !as_json.contains(key));
}

#[test]
fn the_limits_of_a_new_key_hold_at_once() {
    let mut gateway = Home::for_serving().serve();
    let made = gateway.home.stdout_of(&["keys", "create", "narrow", "--turns", "1", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let key = made["key"].as_str().unwrap();
    let mut first = gateway.stream_as(key, "slow 600 100");
    first.until(" ");
    let mut second = gateway.connect();
    post(&mut second, key, &json!({"model": "demo", "messages": said("hello")}), &[]);
    gateway.wait_for("the second request to stand in line", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"demo\"} 1\n").then_some(())
    });
    drop(first);
    assert_eq!(second.answer().unwrap().status, 200);
}

#[test]
fn s7_a_key_comes_in_every_usual_header_and_two_that_differ_are_refused() {
    let gateway = Home::for_serving().serve();
    let key = gateway.key.as_str();
    let bearer = format!("Bearer {key}");
    for (headers, status) in [
        (vec![("authorization", bearer.as_str())], 200),
        (vec![("x-api-key", key)], 200),
        (vec![("x-goog-api-key", key)], 200),
        (vec![("authorization", bearer.as_str()), ("x-api-key", key)], 200),
        (vec![("authorization", bearer.as_str()), ("x-api-key", "other")], 400),
        (vec![("x-api-key", "' OR 1=1--")], 401),
        (vec![], 401),
    ] {
        assert_eq!(gateway.ask("GET", "/v1/models", &headers, None).status, status, "{headers:?}");
    }
}

#[test]
fn s11_another_keys_session_does_not_exist() {
    let gateway = Home::for_serving().serve();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let first = gateway.complete_as(&ann, &said("hello"), &[]);
    let session = first.header("x-session-id").expect("the session is named").to_owned();
    let unknown = "01a1de76-8378-75da-9a63-fc285e32a817";
    let of = |key: &str, session: &str| gateway.complete_as(key, &said("count"), &[("x-session-id", session)]);
    assert_eq!(of(&ann, &session).status, 200, "its owner goes on with it");
    let (theirs, nobodys) = (of(&bob, &session), of(&bob, unknown));
    assert_eq!((theirs.status, nobodys.status), (404, 404), "{}", theirs.body);
    let told = |answer: &crate::support::http::Answer, id: &str| {
        let mut body = answer.json();
        body["error"]["request_id"] = json!(null);
        body.to_string().replace(id, "ID")
    };
    assert_eq!(told(&theirs, &session), told(&nobodys, unknown));
}

#[test]
fn s11_two_keys_with_one_history_have_two_sessions() {
    let gateway = Home::for_serving().serve();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let first = gateway.complete_as(&ann, &said("hello"), &[]);
    let history = json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": first.text() },
        { "role": "user", "content": "count" },
    ]);
    let go_on = |key: &str| {
        let answer = gateway.complete_as(key, &history, &[]);
        answer.header("x-session-id").unwrap().to_owned()
    };
    let theirs = go_on(&bob);
    assert_eq!(Some(go_on(&ann).as_str()), first.header("x-session-id"));
    assert_ne!(Some(theirs.as_str()), first.header("x-session-id"));
}

#[test]
fn s3b_an_origin_is_allowed_and_removed_while_the_gateway_runs() {
    let mut gateway = Home::for_serving().serve();
    let origin = "https://app.example";
    let bearer = format!("Bearer {}", gateway.key);
    let status = |gateway: &crate::support::gateway::Gateway| {
        gateway.ask("GET", "/v1/models", &[("authorization", &bearer), ("origin", origin)], None)
    };
    let refused = status(&gateway);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("gembridge origins allow https://app.example"), "{}", refused.body);
    gateway.home.stdout_of(&["origins", "allow", "HTTPS://App.example:443/"]);
    assert_eq!(gateway.home.stdout_of(&["origins", "list"]), "https://app.example\n");
    gateway.wait_for("the allowed origin", |gateway| (status(gateway).status == 200).then_some(()));
    assert_eq!(status(&gateway).header("access-control-allow-origin"), Some(origin));
    gateway.home.stdout_of(&["origins", "remove", origin]);
    gateway.wait_for("the refusal", |gateway| (status(gateway).status == 403).then_some(()));
    gateway.wait_for("s33: refused origins are in the audit", |gateway| {
        let audit = std::fs::read_to_string(gateway.home.state("audit.jsonl")).unwrap();
        audit.contains("https://app.example").then_some(())
    });
}

#[test]
fn s3b_a_wildcard_for_extensions_needs_its_own_setting_and_doctor_warns_of_it() {
    let home = Home::for_serving();
    home.configure_serving("[server]\nany_extension = true\n");
    let gateway = home.serve();
    let headers = [("origin", "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba")];
    assert_eq!(gateway.ask("GET", "/health", &headers, None).status, 200);
    let report = gateway.home.stdout_of(&["doctor", "--agent", "demo", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let keys = checks.iter().find(|check| check["name"] == "keys").unwrap();
    assert_eq!(keys["status"], "warn", "{keys}");
    let gateway = Home::for_serving().serve();
    assert_eq!(gateway.ask("GET", "/health", &headers, None).status, 403);
}

#[test]
fn a_list_without_keys_says_that_there_are_none() {
    let home = Home::new();
    let said = home.stdout_of(&["keys", "list"]);
    assert!(said.contains("there are no keys; `gembridge keys create NAME` makes one"), "{said}");
    assert_eq!(home.stdout_of(&["keys", "list", "--json"]).trim(), "[]");
}
