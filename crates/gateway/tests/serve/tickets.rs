//! Where a ticket for the WebSocket is good, and where it is not.

use std::fs;

use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::home::Home;

/// What a client sends that wants a WebSocket.
const UPGRADE: [(&str, &str); 4] = [
    ("upgrade", "websocket"),
    ("connection", "upgrade"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
];

fn ticket(gateway: &Gateway) -> String {
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = gateway.ask("POST", "/acp/ticket", &headers, Some("{}"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["ticket"].as_str().unwrap().to_owned()
}

/// The status of a request that carries a fresh ticket and no key, in its address or as a subprotocol; and the ticket.
fn statuses(gateway: &Gateway, method: &str, path: &str, body: Option<&str>) -> [(u16, String); 2] {
    let (one, two) = (ticket(gateway), ticket(gateway));
    let own = [&UPGRADE[..], &[("content-type", "application/json")]].concat();
    let in_address = format!("{path}?ticket={one}");
    let offered = format!("acp.v1, ticket.{two}");
    let as_protocol = [&own[..], &[("sec-websocket-protocol", offered.as_str())]].concat();
    let status = |path: &str, headers: &[(&str, &str)]| {
        let mut connection = gateway.connect();
        connection.send(method, path, headers, body).unwrap();
        connection.head().unwrap().0
    };
    [(status(&in_address, &own), one), (status(path, &as_protocol), two)]
}

#[test]
fn f4_a_ticket_is_good_at_the_websocket_and_on_no_other_route() {
    let gateway = Home::for_serving().serve();
    let described = gateway.get("/openapi.json").json();
    let mut asked = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_open = operation["security"].as_array().is_some_and(|all| all.contains(&serde_json::json!({})));
            if is_open || path == "/acp" {
                continue;
            }
            let path = path.replace("{name}", "admin").replace("{id}", "some-id").replace("{model}", "demo");
            let body = (method == "post").then_some(r#"{"name":"evil","rank":"admin"}"#);
            let got = statuses(&gateway, &method.to_uppercase(), &path, body);
            // What was refused elsewhere is still good where it belongs. A key has 64 that are unused, fewer than there are routes.
            for (status, ticket) in got {
                assert_eq!(status, 401, "{method} {path}");
                assert_eq!(gateway.ask("GET", &format!("/acp?ticket={ticket}"), &UPGRADE, None).status, 101);
            }
            asked += 1;
        }
    }
    assert!(asked >= 10, "few routes are described: {asked}");
    let at_websocket = |method, body| statuses(&gateway, method, "/acp", body).map(|(status, _)| status);
    assert_eq!(at_websocket("GET", None), [101, 101]);
    assert_eq!(at_websocket("POST", Some("{}")), [401, 401], "a WebSocket begins with GET");
    let keys: Value = gateway.get("/admin/keys").json();
    assert!(!keys.to_string().contains("evil"), "{keys}");
}

#[test]
fn f4_on_the_port_of_the_websocket_a_ticket_is_good_at_the_root() {
    let home = Home::for_serving();
    // Two runs would need two free ports: the system is asked for one that is free now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.configure_serving(&format!("server.acp_port = {}\n", free.port()));
    let mut gateway = home.serve();
    let (one, two) = (ticket(&gateway), ticket(&gateway));
    gateway.address = free;
    let status = |path: &str| gateway.ask("GET", path, &UPGRADE, None).status;
    assert_eq!(status(&format!("/?ticket={one}")), 101);
    assert_eq!(status(&format!("/nowhere?ticket={two}")), 401);
    assert!(fs::read_to_string(gateway.home.config("gembridge.toml")).unwrap().contains("acp_port"));
}
