//! What operators look at: metrics, the dashboard and the alerts made of them, the request log, the audit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::gateway::{Home, read_lines};

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
    let mut gateway = Home::new().serve();
    // Something of everything that is counted only when it happens.
    assert_eq!(gateway.complete("hello").status, 200);
    assert_eq!(gateway.complete("crash 3").status, 502);
    let served = gateway.wait_for("the first look at the agents", |gateway| {
        let served = gateway.get("/metrics").body;
        served.contains("gembridge_agent_restarts_total").then_some(served)
    });
    let served = metrics_in(&served);
    for file in ["docs/ops/grafana.json", "docs/ops/alerts.yml"] {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        let named = metrics_in(&text);
        assert!(named.len() >= 5, "{file} names few metrics: {named:?}");
        // Counted only when it happens, and it must not happen here.
        let rare = ["gembridge_rate_limit_rejections_total", "gembridge_connections_refused_total"];
        for name in named.iter().filter(|name| !rare.contains(&name.as_str())) {
            assert!(served.contains(name), "{file} names `{name}`, which is not served: {served:?}");
        }
    }
    let dashboard = fs::read_to_string(repository().join("docs/ops/grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 8);
}

#[test]
fn what_is_refused_for_its_rate_is_counted() {
    let home = Home::new();
    fs::write(home.config("gembridge.toml"), "[limits]\nrequests = 3\n").unwrap();
    let gateway = home.serve();
    let statuses: Vec<_> = (0..5).map(|_| gateway.get("/v1/models")).collect();
    assert_eq!(statuses.iter().filter(|answer| answer.status == 429).count(), 2);
    let refused = statuses.last().unwrap();
    assert!(refused.header("retry-after").is_some() && refused.header("x-ratelimit-remaining") == Some("0"));
    assert_eq!(refused.code(), "rate_limit_exceeded");
    assert_eq!(gateway.ask("GET", "/health", &[], None).status, 200, "health is not limited");
}

#[test]
fn s33_the_audit_says_who_asked_for_what_and_what_agents_were_allowed() {
    let project = Home::new();
    let folder = project.path("project");
    fs::create_dir(&folder).unwrap();
    let settings = format!(
        "permissions.policy = 'deny'\n[agents.demo]\nmode = 'agent'\nworkspace = {:?}\n",
        folder.to_str().unwrap()
    );
    project.configure(&settings);
    let mut gateway = project.serve();
    let ann = gateway.home.run(&["keys", "create", "ann", "--admin"]).trim().to_owned();
    let answer = gateway.complete_as(&ann, &crate::gateway::said("permission rm canary-command"), &[]);
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
    let agent = lines.iter().find(|line| line["message"] == "agent" && line["fields"]["session"] == session.as_str());
    let pid = agent.and_then(|line| line["fields"]["agent_pid"].as_str()).expect("the process that served it");
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
    let mut gateway = Home::new().serve();
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
