//! Agents that do not start: who is told what, and when.

use crate::support::gateway::Gateway;
use crate::support::home::Home;

fn ready(gateway: &Gateway) -> u16 {
    gateway.ask("GET", "/readyz", &[], None).status
}

/// Failed starts, as the metrics have them.
fn restarts(gateway: &Gateway) -> u64 {
    let metrics = gateway.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix("gembridge_agent_restarts_total{agent=\"fake\"} "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn r2_an_open_circuit_is_not_ready_and_says_when_to_come_back_until_the_agent_is_well() {
    let home = Home::for_serving();
    let broken = home.path("broken");
    std::fs::write(&broken, "").unwrap();
    let mode = format!("crash-start-while:{}", broken.display());
    let mut gateway = home.with_fake(&["--mode", &mode], "").serve_fake();
    gateway.wait_for("the open circuit", |gateway| (ready(gateway) == 503).then_some(()));
    assert_eq!(gateway.ask("GET", "/health", &[], None).status, 200, "it lives");
    let refused = gateway.complete("say hello");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    gateway.wait_for("the count of the failed starts", |gateway| (restarts(gateway) >= 5).then_some(()));
    std::fs::remove_file(&broken).unwrap();
    gateway.wait_for("a well agent", |gateway| (ready(gateway) == 200).then_some(()));
    gateway.wait_for("an answer", |gateway| (gateway.complete("say hello").status == 200).then_some(()));
}

#[test]
fn r3_whoever_comes_at_the_end_of_a_hung_start_is_told_to_come_back_and_whoever_waited_that_it_took_too_long() {
    let home = Home::for_serving().with_fake(&["--mode", "hang-init"], "");
    let text = std::fs::read_to_string(home.config("gembridge.toml")).unwrap();
    std::fs::write(home.config("gembridge.toml"), format!("{text}limits = {{ start_seconds = 2 }}\n")).unwrap();
    let mut gateway = home.serve_fake();
    let waited = gateway.complete("say hello");
    assert!(matches!(waited.status, 503 | 504), "{}", waited.body);
    // However the requests fall on the starts, nobody gets a 504 who did not wait.
    gateway.wait_for("both", |gateway| {
        let began = std::time::Instant::now();
        let answer = gateway.complete("say hello");
        if began.elapsed() < std::time::Duration::from_millis(900) {
            assert_eq!(answer.status, 503, "{}", answer.body);
            assert!(answer.header("retry-after").is_some());
        }
        (answer.status == 503).then_some(())
    });
}

#[test]
fn an_agent_may_have_limits_of_its_own() {
    let home = Home::for_serving();
    let gate = home.path("gate");
    let home = home.with_fake(&[], "limits.turns = 50\n");
    let text = std::fs::read_to_string(home.config("gembridge.toml")).unwrap();
    std::fs::write(home.config("gembridge.toml"), format!("{text}limits = {{ turns = 1, queue = 1 }}\n")).unwrap();
    let mut gateway = home.serve_fake();
    let prompt = format!("say begun ;; until {} ;; say done", gate.display());
    let mut running = gateway.stream(&prompt);
    running.until("begun");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| gateway.complete("say waited").status);
        let mut looker = gateway.connect();
        let line = "gembridge_queue_depth{agent=\"fake\"} 1\n";
        loop {
            let key = format!("Bearer {}", gateway.key);
            looker.send("GET", "/metrics", &[("authorization", &key)], None).unwrap();
            if looker.answer().unwrap().body.contains(line) {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(gateway.complete("say too much").status, 429);
        std::fs::write(&gate, "").unwrap();
        assert_eq!(waiting.join().unwrap(), 200);
    });
    assert!(gateway.is_running());
}

#[test]
fn a_setup_has_one_fingerprint_from_its_first_answer_on() {
    let gateway = Home::for_serving().serve();
    let mut fingerprints: Vec<_> =
        (0..3).map(|_| gateway.complete("hello").json()["system_fingerprint"].as_str().unwrap().to_owned()).collect();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
}
