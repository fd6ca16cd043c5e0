//! Keys, rates and what an answer always carries.

use std::time::Duration;

use gembridge_api::guard::GuardConfig;
use gembridge_api::guard::rate::{Counted, Rate};

use crate::support::{KEY, OTHER_KEY, TestServer, config, digest, request, with_key};

const EVERY_KEYED: [&str; 9] = [
    "GET /who",
    "HEAD /who",
    "DELETE /who",
    "POST /small",
    "POST /large",
    "GET /stream",
    "GET /nowhere",
    "POST /nowhere",
    "OPTIONS /who",
];

#[tokio::test]
async fn s1_every_route_but_the_open_ones_needs_a_key_even_where_there_is_none() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { failure_rate: many(), ..guard });
    for line in EVERY_KEYED {
        for headers in
            [&[][..], &["authorization: Bearer wrong"], &["x-api-key: wrong"], &["authorization: Basic eDp5"]]
        {
            let mut client = stage.connect().await;
            client.send(&request(line, headers)).await;
            let reply = client.head().await;
            assert_eq!(reply.status, 401, "{line} {headers:?}");
            assert_eq!(reply.header("www-authenticate"), Some("bearer"));
        }
    }
    for path in ["/health", "/healthz", "/readyz"] {
        let reply = stage.ask(&request(&format!("GET {path}"), &[])).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"status":"ok"}"#), "{path}");
    }
}

#[tokio::test]
async fn s7_each_spelling_of_a_key_names_its_owner_and_two_keys_are_refused() {
    let stage = TestServer::start();
    for (headers, status, body) in [
        (vec![format!("authorization: Bearer {KEY}")], 200, "ann"),
        (vec![format!("x-api-key: {OTHER_KEY}")], 200, "bob"),
        (vec![format!("x-goog-api-key: {KEY}")], 200, "ann"),
        (vec![format!("x-api-key: {KEY}"), format!("authorization: Bearer {KEY}")], 200, "ann"),
        (vec![format!("x-api-key: {OTHER_KEY}"), format!("authorization: Bearer {KEY}")], 400, "two different keys"),
    ] {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let reply = stage.ask(&request("GET /who", &headers)).await;
        assert_eq!(reply.status, status, "{headers:?}");
        assert!(reply.body.contains(body), "{}", reply.body);
    }
}

#[tokio::test]
async fn s9_a_hostile_or_huge_key_changes_nothing() {
    let stage = TestServer::start();
    for key in ["' OR 1=1--".to_owned(), "x".repeat(64 << 10), "é".to_owned()] {
        let reply = stage.ask(&request("GET /who", &[&format!("authorization: Bearer {key}")])).await;
        assert_eq!(reply.status, 401);
        assert!(!reply.body.contains(&key));
    }
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
}

#[tokio::test]
async fn s10_odd_spellings_of_a_path_do_not_skip_the_key() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { failure_rate: many(), ..guard });
    for target in [
        "//who",
        "/who/",
        "/./who",
        "/%2e%2e/who",
        "/WHO",
        "/health/../who",
        "/health/%2e%2e/who",
        "/health%2f..%2fwho",
        "/health;/who",
        "//health",
        "/health/",
        "/HEALTH",
        "/health%00",
        "*",
        "http://localhost/who",
        "http://localhost/health/../who",
    ] {
        let reply = stage.ask(&request(&format!("GET {target}"), &[])).await;
        assert!(matches!(reply.status, 400 | 401), "{target}: {}", reply.status);
    }
    assert_eq!(stage.ask(&request("GET http://localhost/health", &[])).await.status, 200);
}

#[tokio::test]
async fn s6_a_revoked_key_fails_on_the_next_request_and_its_streams_and_waits_end() {
    let mut stage = TestServer::start();
    let mut stream = stage.connect().await;
    stream.send(&with_key("GET /stream", &[])).await;
    stream.until("data: one").await;
    let mut other = stage.connect().await;
    other.send(&request("GET /stream", &[&format!("x-api-key: {OTHER_KEY}")])).await;
    other.until("data: one").await;
    let mut waiting = stage.connect().await;
    waiting.send(&with_key("GET /wait", &[])).await;
    stage.arrived(1).await;

    stage.keys.revoke(&digest(KEY));
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 401);
    stream.closed().await;
    assert!(!stream.text().ends_with("0\r\n\r\n"), "a cut stream must not look whole");
    assert_eq!(waiting.reply().await.status, 401);
    stage.dropped.recv().await.unwrap();
    assert!(stage.dropped.try_recv().is_err(), "the other key's stream goes on");
    assert_eq!(stage.ask(&request("GET /who", &[&format!("x-api-key: {OTHER_KEY}")])).await.status, 200);
}

#[tokio::test]
async fn every_answer_and_every_error_carries_the_number_of_its_request() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { rate: Some(Rate { requests: 3, ..many() }), ..guard });
    let mut seen = std::collections::HashSet::new();
    for (raw, status) in [
        (request("GET /health", &[]), 200),
        (request("GET /who", &["origin: https://evil.example"]), 403),
        (request("GET /who", &[]), 401),
        (with_key("GET /nowhere", &[]), 404),
        (with_key("DELETE /who", &[]), 405),
        (with_key("POST /small", &["content-type: text/plain", "content-length: 0"]), 415),
        (with_key("GET /who", &[]), 429),
    ] {
        let reply = stage.ask(&raw).await;
        assert_eq!(reply.status, status);
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 7);
        if status != 200 {
            let error = reply.error();
            assert_eq!(error["request_id"], id.as_str());
            for field in ["message", "type", "code"] {
                assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {error}");
            }
            assert!(error.as_object().unwrap().contains_key("param"));
        }
        assert!(seen.insert(id));
    }
}

#[tokio::test]
async fn an_operator_on_this_machine_is_counted_only_where_the_limit_is_for_everybody() {
    let (server, guard) = config();
    let proxies = gembridge_api::guard::address::Proxies(vec!["127.0.0.1".parse().unwrap()]);
    let (rate, counted) = (Some(Rate { requests: 2, ..many() }), Counted::OthersThanLocalOperators);
    let stage = TestServer::with(server, GuardConfig { rate, counted, proxies, ..guard });
    for _ in 0..9 {
        let reply = stage.ask(&with_key("GET /who", &[])).await;
        assert_eq!((reply.status, reply.header("x-ratelimit-limit")), (200, None));
    }
    // The same key from elsewhere, and a guest on this machine.
    let elsewhere = with_key("GET /who", &["x-forwarded-for: 203.0.113.9"]);
    let guest = request("GET /who", &[&format!("x-api-key: {OTHER_KEY}")]);
    for raw in [&elsewhere, &guest] {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(stage.ask(raw).await.status);
        }
        assert_eq!(statuses, [200, 200, 429]);
    }
}

#[tokio::test]
async fn s7_a_key_in_the_path_lets_in_and_is_in_no_answer() {
    let stage = TestServer::start();
    for (line, headers, status, body) in [
        (format!("GET /k/{KEY}/who"), vec![], 200, "ann"),
        (format!("GET /k/{KEY}//who?x=1"), vec![], 200, "ann"),
        (format!("GET /k/{KEY}/who"), vec![format!("x-api-key: {OTHER_KEY}")], 400, "two different keys"),
        (format!("GET /k/{KEY}/nowhere"), vec![], 404, "nothing at `/nowhere`"),
        ("GET /k/wrong/who".to_owned(), vec![], 401, "invalid API key"),
        ("GET /k//who".to_owned(), vec![], 401, "missing API key"),
    ] {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let reply = stage.ask(&request(&line, &headers)).await;
        assert_eq!(reply.status, status, "{line} {headers:?}: {}", reply.body);
        assert!(reply.body.contains(body) && !reply.body.contains(KEY), "{}", reply.body);
    }
}

#[tokio::test]
async fn s28_what_there_is_may_be_asked_often_and_takes_nothing_from_work() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { rate: Some(Rate { requests: 2, ..many() }), ..guard });
    for remaining in (0..20).rev() {
        let reply = stage.ask(&with_key("GET /facts", &[])).await;
        assert_eq!((reply.status, reply.header("x-ratelimit-remaining")), (200, Some(remaining.to_string().as_str())));
    }
    assert_eq!(stage.ask(&with_key("GET /facts", &[])).await.status, 429);
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.header("x-ratelimit-remaining"), Some("1"));
}

#[tokio::test]
async fn s28_the_limit_is_told_kept_and_not_widened_by_a_spoofed_address() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { rate: Some(Rate { requests: 3, ..many() }), ..guard });
    for remaining in ["2", "1", "0"] {
        let reply = stage.ask(&with_key("GET /who", &[&format!("x-forwarded-for: 203.0.113.{remaining}")])).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("x-ratelimit-limit"), Some("3"));
        assert_eq!(reply.header("x-ratelimit-remaining"), Some(remaining));
        assert!(reply.header("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 0);
    }
    for key in ["x-forwarded-for: 203.0.113.9", "forwarded: for=203.0.113.9"] {
        let refused = stage.ask(&with_key("GET /who", &[key])).await;
        assert_eq!(refused.status, 429);
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
        assert_eq!(refused.error()["type"], "rate_limit_exceeded");
    }
    assert_eq!(stage.ask(&request("GET /health", &[])).await.status, 200, "health is not counted");
}

#[tokio::test]
async fn s28_behind_a_configured_proxy_each_client_has_its_own_limit() {
    let (server, guard) = config();
    let proxies = gembridge_api::guard::address::Proxies(vec!["127.0.0.1".parse().unwrap()]);
    let stage =
        TestServer::with(server, GuardConfig { failure_rate: Rate { requests: 1, ..many() }, proxies, ..guard });
    for (client, status) in
        [("203.0.113.1", 401), ("203.0.113.2", 401), ("203.0.113.1", 429), ("9.9.9.9, 203.0.113.2", 429)]
    {
        let reply = stage.ask(&request("GET /who", &[&format!("x-forwarded-for: {client}")])).await;
        assert_eq!(reply.status, status, "{client}");
    }
}

#[tokio::test]
async fn f9_requests_without_a_good_key_never_shut_out_a_good_key_of_the_same_address() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { rate: Some(Rate { requests: 5, ..many() }), ..guard });
    for headers in [&[][..], &["x-api-key: wrong"], &["x-api-key: one", "authorization: Bearer two"]] {
        for _ in 0..10 {
            let reply = stage.ask(&request("GET /who", headers)).await;
            assert!(matches!(reply.status, 400 | 401 | 429), "{}", reply.status);
            assert_eq!(reply.header("x-ratelimit-limit"), Some("20"), "the limit that counted it");
        }
    }
    assert_eq!(stage.ask(&request("GET /who", &[])).await.status, 429, "all three kinds were counted together");
    let reply = stage.ask(&with_key("GET /who", &[])).await;
    assert_eq!((reply.status, reply.header("x-ratelimit-remaining")), (200, Some("4")));
}

#[tokio::test]
async fn f9_each_key_has_a_limit_of_its_own_wherever_it_asks_from() {
    let (server, guard) = config();
    let proxies = gembridge_api::guard::address::Proxies(vec!["127.0.0.1".parse().unwrap()]);
    let stage = TestServer::with(server, GuardConfig { rate: Some(Rate { requests: 2, ..many() }), proxies, ..guard });
    for (client, status) in [("203.0.113.1", 200), ("203.0.113.2", 200), ("203.0.113.3", 429)] {
        let reply = stage.ask(&with_key("GET /who", &[&format!("x-forwarded-for: {client}")])).await;
        assert_eq!(reply.status, status, "{client}");
    }
    let other = stage.ask(&request("GET /who", &[&format!("x-api-key: {OTHER_KEY}")])).await;
    assert_eq!((other.status, other.header("x-ratelimit-remaining")), (200, Some("1")));
}

#[tokio::test]
async fn s28_requests_without_a_good_key_have_a_stricter_limit_that_good_ones_do_not_share() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { failure_rate: Rate { requests: 2, ..many() }, ..guard });
    for status in [401, 401, 429, 429] {
        let reply = stage.ask(&request("GET /who", &["x-api-key: wrong"])).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("retry-after").is_some(), status == 429);
        if status == 429 {
            let told = ["limit", "remaining"].map(|name| reply.header(&format!("x-ratelimit-{name}")));
            assert_eq!(told, [Some("2"), Some("0")], "of the limit that refuses");
            assert_eq!(reply.header("x-ratelimit-reset"), reply.header("retry-after"));
        }
    }
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
}

#[tokio::test]
async fn s31_a_panic_becomes_a_500_without_its_text_and_the_server_goes_on() {
    let stage = TestServer::start();
    let reply = stage.ask(&with_key("GET /panic", &[])).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.error()["code"], "internal_error");
    assert!(!reply.body.contains("secret"));
    let mut client = stage.connect().await;
    client.send(&with_key("GET /panic-later", &[])).await;
    client.closed().await;
    assert!(!client.text().contains("secret"));
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
}

#[tokio::test]
async fn methods_are_answered_sanely() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&with_key("HEAD /who", &[])).await;
    assert_eq!(client.head().await.status, 200);
    // No body came with it: the next answer follows at once.
    client.send(&with_key("GET /who", &[])).await;
    assert_eq!(client.reply().await.body, "ann");
    for (method, headers) in [("DELETE", &[][..]), ("POST", &["content-length: 0"]), ("PUT", &[]), ("PATCH", &[])] {
        let wrong = stage.ask(&with_key(&format!("{method} /who"), headers)).await;
        assert_eq!((wrong.status, wrong.header("allow")), (405, Some("get,head")), "{method}");
    }
    let options = stage.ask(&with_key("OPTIONS /who", &["content-length: 0"])).await;
    assert_eq!((options.status, options.header("allow")), (204, Some("get,head")));
}

fn many() -> Rate {
    Rate { requests: 1_000, window: Duration::from_mins(10) }
}
