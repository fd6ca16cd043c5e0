//! Every route that the gateway describes, asked without a key, from foreign names and foreign pages.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::Answer;

struct Route {
    method: String,
    path: String,
    is_open: bool,
}

/// Read from `/openapi.json`, so that a route that is added is tested.
fn routes(gateway: &Gateway) -> Vec<Route> {
    let described = gateway.get("/openapi.json").json();
    let mut routes = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_open = operation["security"].as_array().is_some_and(|all| all.contains(&serde_json::json!({})));
            // A path that takes an id is asked for with one.
            let path = path.split('/').map(|part| if part.starts_with('{') { "some-id" } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            routes.push(Route { method: method.to_uppercase(), path, is_open });
        }
    }
    assert!(routes.len() >= 12, "few routes are described");
    routes
}

fn ask(gateway: &Gateway, route: &Route, headers: &[(&str, &str)]) -> Answer {
    let body = (route.method == "POST").then_some("{}");
    let own = [("content-type", "application/json")];
    gateway.ask(&route.method, &route.path, &[&own, headers].concat(), body)
}

#[test]
fn s1_every_route_but_the_open_ones_answers_401_without_a_key() {
    let gateway = Home::for_serving().serve();
    let mut open = Vec::new();
    for route in routes(&gateway) {
        let answer = ask(&gateway, &route, &[]);
        if route.is_open {
            // A proof wants a nonce.
            let expected = if route.path == "/acp/proof" { 400 } else { 200 };
            assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
            open.push(route.path);
        } else {
            let (place, body) = (format!("{} {}", route.method, route.path), answer.json());
            let error = &body["error"];
            // Calls of JSON-RPC have numbers for codes, and details beside them; clients of Ollama know nothing but a text.
            let details = &error["data"][0];
            let number = answer.header("x-request-id").unwrap_or_default();
            let (code, told) = match (details["reason"].as_str(), error["code"].as_str(), error.as_str()) {
                (Some(reason), ..) => (reason.to_lowercase(), details["metadata"]["requestId"].as_str()),
                (_, Some(code), _) => (code.to_owned(), error["request_id"].as_str()),
                (_, _, Some(text)) => (text.chars().take(15).collect(), Some(number)),
                _ => (error["type"].as_str().unwrap_or_default().to_owned(), body["request_id"].as_str()),
            };
            let known = ["invalid_api_key", "authentication_error", "missing API key"];
            assert!(answer.status == 401 && known.contains(&code.as_str()), "{place}: {}", answer.body);
            assert_eq!(told, Some(number), "{place}");
        }
        assert!(answer.header("x-request-id").is_some(), "every answer carries its number");
    }
    open.sort();
    // The list is short, and it does not grow by accident.
    let pages = ["/docs", "/docs/page.css", "/docs/page.js"];
    let card = ".well-known/agent-card.json";
    let cards = ["/".to_owned(), "/a2a/v0.3/".to_owned(), "/a2a/v1/".to_owned()].map(|folder| folder + card);
    let mut expected = [&["/", "/acp/proof", "/api/version"], &pages[..], &["/health", "/healthz", "/readyz"]].concat();
    expected.extend(cards.iter().map(String::as_str));
    expected.sort_unstable();
    assert_eq!(open, expected);
}

#[test]
fn s2_s3_no_route_answers_a_foreign_name_or_a_foreign_page() {
    let gateway = Home::for_serving().serve();
    let bearer = format!("Bearer {}", gateway.key);
    for route in routes(&gateway) {
        for foreign in [
            &[("host", "evil.example")][..],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("origin", "http://localhost.evil.com")],
            &[("sec-fetch-site", "cross-site")],
        ] {
            let answer = ask(&gateway, &route, &[&[("authorization", bearer.as_str())], foreign].concat());
            assert_eq!(answer.status, 403, "{} {} {foreign:?}", route.method, route.path);
        }
        let near = ask(&gateway, &route, &[("authorization", &bearer), ("origin", "http://localhost:3000")]);
        assert_ne!(near.status, 403, "{} {}", route.method, route.path);
    }
}

#[test]
fn s3_nothing_but_json_is_taken() {
    let gateway = Home::for_serving().serve();
    let bearer = format!("Bearer {}", gateway.key);
    // Clients of Ollama call their JSON whatever they like.
    let strict = |route: &&Route| route.method == "POST" && !route.path.starts_with("/api/");
    for route in routes(&gateway).iter().filter(strict) {
        for media in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
            let headers = [("authorization", bearer.as_str()), ("content-type", media)];
            assert_eq!(gateway.ask("POST", &route.path, &headers, Some("{}")).status, 415, "{} {media}", route.path);
        }
    }
}

#[test]
fn s10_odd_spellings_of_a_path_skip_nothing() {
    let gateway = Home::for_serving().serve();
    for path in
        ["//v1/models", "/v1/%2e%2e/models", "/V1/models", "/v1/models/", "/health/../metrics", "/%6detrics", "/x"]
    {
        assert_eq!(gateway.ask("GET", path, &[], None).status, 401, "{path}");
    }
    assert_eq!(gateway.get("/no/such/thing").status, 404);
}

#[test]
fn s27_the_page_comes_with_its_policy_and_needs_nothing_from_elsewhere() {
    let gateway = Home::for_serving().serve();
    for path in ["/", "/docs", "/docs/page.js", "/docs/page.css"] {
        let answer = gateway.ask("GET", path, &[], None);
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("content-security-policy"),
            Some(
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
            )
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert!(!answer.body.contains("https://"), "{path}");
    }
}

#[test]
fn every_described_body_has_a_shape() {
    let gateway = Home::for_serving().serve();
    let described = gateway.get("/openapi.json").json();
    let body = &described["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"];
    let name = body["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
    let fields = &described["components"]["schemas"][name]["properties"];
    for field in ["model", "messages", "stream", "max_completion_tokens", "stop"] {
        assert!(fields[field].is_object(), "{field} is not described");
    }
    // Nothing points to what is not there.
    for place in references(&described) {
        assert!(described.pointer(&place).is_some(), "{place} is described nowhere");
    }
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(entries) => entries.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_list_of_models_has_no_built_in_agent_beside_a_real_one_and_tells_other_names_apart() {
    let gateway = Home::for_serving().with_fake(&[], "").serve_fake();
    let listed = gateway.get("/v1/models").json();
    let entries = listed["data"].as_array().unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"fake") && !ids.iter().any(|id| id.starts_with("demo")), "{ids:?}");
    let first_alias = entries.iter().position(|entry| entry.get("alias_of").is_some()).expect("other names");
    assert!(entries[first_alias..].iter().all(|entry| entry.get("alias_of").is_some()), "they come last");
    assert_eq!(gateway.get("/v1/models/demo").status, 200, "what is not listed answers when it is named");
    let alone = Home::for_serving().serve();
    let listed = alone.get("/v1/models").json();
    assert!(listed["data"].as_array().unwrap().iter().any(|entry| entry["id"] == "demo"));
}

/// Programs that look whether Ollama is there have no key to look with.
#[test]
fn s1_what_programs_of_ollama_look_for_answers_without_a_key_and_tells_nothing() {
    let gateway = Home::for_serving().serve();
    for (path, body) in [("/", "Ollama is running"), ("/api/version", r#"{"version":"0.31.2"}"#)] {
        let answer = gateway.ask("GET", path, &[], None);
        assert_eq!((answer.status, answer.body.as_str()), (200, body), "{path}");
    }
    for path in ["/", "/api/version", "/api/hello"] {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        let request = format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let page = gateway.ask("GET", "/", &[("accept", "text/html,application/xhtml+xml")], None);
    assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "browsers get the page");
    for (method, path) in [("GET", "/api/tags"), ("POST", "/api/show"), ("POST", "/api/chat"), ("GET", "/api/ps")] {
        let answer = gateway.ask(method, path, &[], None);
        assert_eq!(answer.status, 401, "{method} {path}");
        assert!(
            answer.json()["error"].as_str().is_some_and(|error| error.contains("missing API key")),
            "{}",
            answer.body
        );
    }
}

#[test]
fn s7_a_key_in_the_path_works_for_every_dialect_and_reaches_no_log() {
    let gateway = Home::for_serving().serve();
    let key = &gateway.key;
    let said = r#"{"model":"demo","max_tokens":9,"stream":false,"messages":[{"role":"user","content":"hi"}]}"#;
    // What curl sends with every example of Ollama's documents.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(gateway.ask("POST", &format!("/k/{key}/api/chat"), &form, Some(said)).status, 200);
    let json = [("content-type", "application/json")];
    for path in ["/v1/chat/completions", "/v1/messages", "/api/chat"] {
        let answer = gateway.ask("POST", &format!("/k/{key}{path}"), &json, Some(said));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    for path in ["/api/tags", "/v1/models", "/nowhere", "//api/tags"] {
        gateway.ask("GET", &format!("/k/{key}{path}"), &[], None);
    }
    for odd in [format!("/K/{key}/api/tags"), format!("//k/{key}/api/tags"), format!("/api/tags/{key}")] {
        assert!(gateway.ask("GET", &odd, &[], None).status >= 400, "{odd}");
    }
    assert_eq!(gateway.ask("POST", "/k/nonsense/api/chat", &json, Some(said)).status, 401);
    let log = gateway.stderr();
    assert!(log.contains("path=/api/chat"), "{log}");
    assert!(!log.contains(key.as_str()) && !log.contains("nonsense"), "{log}");
}
