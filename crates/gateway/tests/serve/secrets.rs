//! Keys and words that pass through the gateway are left behind nowhere.

use serde_json::json;

use crate::support::gateway::said;
use crate::support::home::Home;

#[test]
fn s16_neither_keys_nor_words_are_in_any_output_log_metric_or_error() {
    let home = Home::for_serving();
    let log = home.path("log");
    home.configure_serving(&format!("[log]\nlevel = 'debug'\nfile = {:?}\n", log.to_str().unwrap()));
    let variables = [("BEARER_TOKEN", "canary-token"), ("GEMINI_API_KEY", "canary-api-key")];
    let mut gateway = home.serve_with(&["--agent", "demo"], &variables);
    let key = gateway.home.key("ann");
    let mut told = Vec::new();
    for prompt in ["canary-prompt", "crash 3\ncanary-prompt", "error 500 x\ncanary-prompt", "permission canary-prompt"]
    {
        told.push(gateway.complete_as(&key, &said(prompt), &[]));
        drop(gateway.stream_as(&key, prompt));
    }
    // Refused in every way there is, each with something secret in it.
    let bearer = format!("Bearer {key}");
    let own = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let chat = "/v1/chat/completions";
    told.push(gateway.ask("POST", chat, &own, Some("{\"messages\": canary-prompt")));
    told.push(gateway.ask("POST", chat, &own, Some(r#"{"messages":[{"role":"canary-prompt","content":"x"}]}"#)));
    told.push(gateway.ask("POST", chat, &own, Some(r#"{"model":"demo","messages":[],"tools":["canary-prompt"]}"#)));
    told.push(gateway.ask("POST", chat, &[own[0], ("content-type", "text/plain")], Some("canary-prompt")));
    told.push(gateway.ask("GET", "/v1/models", &[("authorization", "Bearer canary-wrong-key")], None));
    told.push(gateway.ask("GET", "/v1/models", &[("x-api-key", "canary-wrong-key")], None));
    told.push(gateway.ask("GET", "/v1/models", &[own[0], ("x-api-key", "canary-wrong-key")], None));
    told.push(gateway.get_as(&key, "/metrics"));
    told.push(gateway.get_as("canary-token", "/openapi.json"));
    let strange = json!({ "model": "demo", "stream": "canary-prompt", "messages": said("canary-prompt") });
    told.push(gateway.ask("POST", chat, &own, Some(&strange.to_string())));

    for answer in told.iter().filter(|answer| answer.status != 200) {
        assert!(answer.status >= 400 && answer.json()["error"]["message"].is_string());
        for secret in ["canary-token", "canary-wrong-key", "canary-api-key", key.as_str()] {
            assert!(!answer.body.contains(secret), "{}", answer.body);
        }
    }
    gateway.signal(rustix::process::Signal::TERM);
    gateway.ended();
    let audit = std::fs::read_to_string(gateway.home.state("audit.jsonl")).unwrap();
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("request ended") && !audit.is_empty());
    for (place, text) in
        [("stdout", gateway.stdout()), ("stderr", gateway.stderr()), ("the log", logged), ("the audit", audit)]
    {
        for secret in ["canary", key.as_str()] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{place} has `{secret}`");
        }
    }
    // The sessions' own log holds what was said, and no key.
    let kept = gateway.state_text();
    for secret in ["canary-token", "canary-wrong-key", "canary-api-key", key.as_str()] {
        assert!(!kept.contains(secret), "the state folder has `{secret}`");
    }
}

#[test]
fn s16_a_line_break_from_outside_does_not_begin_a_line_of_the_log() {
    let mut gateway = Home::for_serving().serve();
    let bearer = format!("Bearer {}", gateway.key);
    gateway.ask("GET", "/a%0Afaked", &[("authorization", &bearer), ("user-agent", "x\u{9b}2J\tfaked")], None);
    let said = gateway.wait_for("the record", |gateway| {
        let said = gateway.stderr();
        said.contains("status=404").then_some(said)
    });
    assert!(!said.contains(['\u{1b}', '\u{9b}', '\t']), "{said:?}");
    assert!(!said.lines().any(|line| line.starts_with("faked")), "{said}");
}
