//! What operators look at: metrics, the dashboard and the alerts made of them, the request log, the audit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, post, read_lines, said};
use crate::support::home::Home;
use crate::support::http::Answer;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every name of ours in a text.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character: char| !is_part(character));
    words.filter(|word| word.starts_with("gembridge_")).map(str::to_owned).collect()
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_exists() {
    // Nothing has happened yet: an increase from 0 shows, and one from nothing does not.
    let gateway = Home::for_serving().serve();
    let served = gateway.get("/metrics").body;
    for line in [
        "gembridge_connections_refused_total 0",
        r#"gembridge_rate_limit_rejections_total{limit="failures"} 0"#,
        r#"gembridge_agent_restarts_total{agent="demo"} 0"#,
        r#"gembridge_agent_turn_seconds_count{agent="demo"} 0"#,
        r#"gembridge_requests_total{route="/v1/chat/completions",method="POST",status="502"} 0"#,
    ] {
        assert!(served.lines().any(|served| served == line), "{line} is missing in {served}");
    }
    let served = metrics_in(&served);
    for file in ["docs/ops/grafana.json", "docs/ops/alerts.yml"] {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        let named = metrics_in(&text);
        assert!(named.len() >= 5, "{file} names few metrics: {named:?}");
        for name in &named {
            assert!(served.contains(name), "{file} names `{name}`, which is not served: {served:?}");
        }
    }
    let dashboard = fs::read_to_string(repository().join("docs/ops/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 8);
}

#[test]
fn what_is_refused_for_its_rate_is_counted() {
    let home = Home::for_serving();
    fs::write(home.config("gembridge.toml"), "[limits]\nrequests = 3\n").unwrap();
    let gateway = home.serve();
    let statuses: Vec<_> = (0..5).map(|_| gateway.get("/v1/nothing")).collect();
    assert_eq!(statuses.iter().filter(|answer| answer.status == 429).count(), 2);
    let refused = statuses.last().unwrap();
    assert!(refused.header("retry-after").is_some() && refused.header("x-ratelimit-remaining") == Some("0"));
    assert_eq!(refused.code(), "rate_limit_exceeded");
    assert_eq!(gateway.ask("GET", "/health", &[], None).status, 200, "health is not limited");
    let listed: Vec<_> = (0..31).map(|_| gateway.get("/v1/models").status).collect();
    assert_eq!(
        listed.iter().filter(|status| **status == 429).count(),
        1,
        "what there is, is counted apart: {listed:?}"
    );
}

#[test]
fn the_operators_own_programs_ask_as_often_as_they_like_and_guests_do_not() {
    let gateway = Home::new().serve();
    let guest = gateway.home.key("ann");
    let refused = |key: &str| (0..130).filter(|_| gateway.get_as(key, "/v1/nothing").status == 429).count();
    assert_eq!(refused(&gateway.key), 0);
    assert_eq!(refused(&guest), 30);
}

#[test]
fn who_is_no_admin_is_told_a_command_that_makes_one() {
    let gateway = Home::for_serving().serve();
    let user = gateway.home.key("ann");
    let refused = gateway.get_as(&user, "/admin/status");
    assert_eq!(refused.status, 403);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    let command = message.split('`').nth(1).expect("the way out").replace("NAME", "bob");
    let args: Vec<_> = command.split(' ').skip(1).collect();
    let admin = gateway.home.stdout_of(&args).trim().to_owned();
    let mut gateway = gateway;
    gateway.wait_for("the new key", |gateway| (gateway.get_as(&admin, "/admin/status").status == 200).then_some(()));
}

#[test]
fn s33_the_audit_says_who_asked_for_what_and_what_agents_were_allowed() {
    let project = Home::for_serving();
    let folder = project.path("project");
    fs::create_dir(&folder).unwrap();
    let settings = format!(
        "permissions.policy = 'deny'\n[agents.demo]\nmode = 'agent'\nworkspace = {:?}\n",
        folder.to_str().unwrap()
    );
    project.configure_serving(&settings);
    let mut gateway = project.serve();
    let ann = gateway.home.stdout_of(&["keys", "create", "ann", "--admin"]).trim().to_owned();
    let answer = gateway.complete_as(&ann, &said("permission rm canary-command"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let session = answer.header("x-session-id").unwrap().to_owned();
    gateway.ask("GET", "/health", &[("host", "evil.example")], None);
    let path = gateway.home.state("audit.jsonl");
    let lines = gateway.wait_for("the audit", |_| {
        let lines = read_lines(&path);
        let told = |word: &str| lines.iter().any(|line| line["message"] == word);
        let of_it = |word: &str| {
            lines.iter().any(|line| line["message"] == word && line["fields"]["session"] == session.as_str())
        };
        (of_it("request") && of_it("agent") && told("permission") && told("refused")).then_some(lines)
    });
    let of = |word: &str| lines.iter().find(|line| line["message"] == word).unwrap();
    let request =
        lines.iter().find(|line| line["fields"]["session"] == session.as_str() && line["message"] == "request");
    let request = request.expect("the request is there with its session");
    assert_eq!(request["fields"]["principal"], "ann");
    assert_eq!(request["fields"]["status"], 200, "a number for programs");
    let agent = lines.iter().find(|line| line["message"] == "agent" && line["fields"]["session"] == session.as_str());
    let pid = agent.and_then(|line| line["fields"]["agent_pid"].as_u64()).expect("the process that served it");
    assert!(fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("demo-agent"));
    assert_eq!(request["fields"]["route"], "/v1/chat/completions");
    assert!(request["time"].is_string());
    let permission = &of("permission")["fields"];
    assert_eq!((&permission["principal"], &permission["session"]), (&"ann".into(), &session.as_str().into()));
    assert_eq!((&permission["decision"], &permission["by"]), (&"RejectOnce".into(), &"Policy".into()));
    assert!(of("refused")["fields"]["refused"].as_str().unwrap().contains("evil.example"));
    assert!(!fs::read_to_string(&path).unwrap().contains("canary"), "what was said is not in it");
}

#[test]
fn the_log_has_a_record_at_the_start_and_at_the_end_of_each_request() {
    let mut gateway = Home::for_serving().serve();
    let answer = gateway.complete("hello");
    let number = answer.header("x-request-id").unwrap().to_owned();
    let said = gateway.wait_for("the end's record", |gateway| {
        let said = gateway.stderr();
        said.lines().any(|line| line.contains("request ended") && line.contains(&number)).then_some(said)
    });
    let of_it: Vec<_> = said.lines().filter(|line| line.contains(&number)).collect();
    assert!(of_it[0].contains("request started") && of_it[0].contains("address=127.0.0.1"), "{}", of_it[0]);
    let end = of_it.last().unwrap();
    for field in ["status=200", "model_used=", "session=", "first_token_ms=", "output_tokens=", "queue_ms="] {
        assert!(end.contains(field), "{field} is missing in {end}");
    }
}

#[test]
fn an_agent_that_says_no_word_has_no_first_token() {
    let mut gateway = Home::for_serving().serve();
    // An error of its protocol is the agent's, whatever its code says about us.
    let answer = gateway.complete("error -32601 no such thing");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &"agent_error".into()), "{}", answer.body);
    let number = answer.header("x-request-id").unwrap().to_owned();
    let end = gateway.wait_for("the end's record", |gateway| {
        let is_it = |line: &&str| line.contains("request ended") && line.contains(&number);
        gateway.stderr().lines().find(is_it).map(str::to_owned)
    });
    assert!(!end.contains("first_token_ms="), "{end}");
    let served = gateway.get("/metrics").body;
    assert!(served.lines().any(|line| line == "gembridge_first_token_seconds_count 0"), "{served}");
}

#[test]
fn the_log_has_the_number_of_what_was_no_request() {
    let mut gateway = Home::for_serving().serve();
    let headers: Vec<_> = (0..200).map(|_| ("x-many", "1")).collect();
    for (method, headers, status) in [("hello there", &[][..], 400), ("GET", &headers[..], 431)] {
        let refused = gateway.ask(method, "/health", headers, None);
        assert_eq!(refused.status, status);
        let number = refused.header("x-request-id").unwrap().to_owned();
        let line = gateway.wait_for("its record", |gateway| {
            gateway.stderr().lines().find(|line| line.contains(&number)).map(str::to_owned)
        });
        for part in ["request refused", "address=127.0.0.1", &format!("status={status}"), "refused="] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
    }
}

/// The record of the end of a request, from the log for programs.
fn end_of(gateway: &mut Gateway, number: &str) -> Value {
    let path = gateway.home.path("log.jsonl");
    gateway.wait_for("the end's record", |_| {
        let ended = |line: &Value| line["message"] == "request ended" && line["fields"]["request"] == number;
        read_lines(&path).into_iter().find(ended).map(|mut line| line["fields"].take())
    })
}

#[test]
fn the_end_of_a_refused_request_says_what_was_asked() {
    let home = Home::for_serving();
    let (gate, log) = (home.path("gate"), home.path("log.jsonl"));
    let home = home.with_fake(&[], "limits.turns = 1\nlimits.queue = 1\n");
    let mut gateway = home.serve_with(&["--agent", "fake"], &[("LOG_FILE", log.to_str().unwrap())]);
    let answer = gateway.complete("say hello");
    let session = answer.header("x-session-id").unwrap().to_owned();
    let number = |answer: &Answer| answer.header("x-request-id").unwrap().to_owned();
    let end = end_of(&mut gateway, &number(&answer));
    assert_eq!((&end["status"], &end["stream"]), (&200.into(), &false.into()), "{end}");
    assert!(end["ms"].is_f64() && end["queue_ms"].is_f64(), "{end}");

    let stranger = gateway.home.key("ann");
    gateway.wait_for("the new key", |gateway| (gateway.get_as(&stranger, "/v1/models").status == 200).then_some(()));
    let refused = gateway.complete_as(&stranger, &said("hello"), &[("x-session-id", &session)]);
    assert_eq!(refused.status, 404, "{}", refused.body);
    let end = end_of(&mut gateway, &number(&refused));
    assert_eq!((&end["model_asked"], &end["session"]), (&"default".into(), &session.as_str().into()), "{end}");

    let mut connection = gateway.connect();
    let body = json!({ "model": "fake", "stream": true, "n": 99, "messages": said("hello") });
    post(&mut connection, &gateway.key, &body, &[]);
    let refused = connection.answer().unwrap();
    assert_eq!(refused.status, 400);
    let end = end_of(&mut gateway, &number(&refused));
    assert_eq!((&end["model_asked"], &end["stream"]), (&"fake".into(), &true.into()), "{end}");

    // One runs, one waits, one finds the line full, and the one that waits leaves.
    let mut running = gateway.stream(&format!("say begun ;; until {}", gate.display()));
    running.until("begun");
    let mut waiting = gateway.connect();
    post(&mut waiting, &gateway.key, &json!({ "model": "fake", "messages": said("say waited") }), &[]);
    gateway.wait_for("one in line", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"fake\"} 1\n").then_some(())
    });
    let full = gateway.complete("say refused");
    assert_eq!(full.code(), "queue_full");
    let end = end_of(&mut gateway, &number(&full));
    assert!(end["model_asked"] == "default" && end["model_used"] == "fake" && end["queue_ms"].is_f64(), "{end}");
    drop(waiting);
    let left = gateway
        .wait_for("the end of who left", |_| read_lines(&log).into_iter().find(|line| line["fields"]["status"] == 499));
    let left = &left["fields"];
    assert!(left["model_asked"] == "fake" && left["stream"] == false && left["queue_ms"].is_f64(), "{left}");
    fs::write(&gate, "").unwrap();
}
