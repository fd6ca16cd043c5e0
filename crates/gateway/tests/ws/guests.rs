//! What one guest's key may take of an agent and of the memory, and what is left to others.

use serde_json::json;

use crate::support::gateway::{Gateway, post, said as messages};
use crate::support::home::Home;
use crate::support::messages::said;
use crate::support::websocket::{Client, hello};

/// Twelve sessions of the agent in all: four turns, four that wait, four to ask what it offers. One is left to operators,
/// and a guest's key has four of them and one of the turns.
const SMALL: &str = "limits.turns = 4\nlimits.idle_sessions = 4\n";
const ALL: usize = 12;

fn guest(gateway: &Gateway, key: &str) -> Client {
    let mut client = Client::connect_to(gateway.address, key, "/acp").expect("it is let in");
    client.call("initialize", &hello()).unwrap();
    client
}

#[test]
fn f6_idle_sessions_of_one_guest_leave_operators_and_other_guests_their_places() {
    let gateway = Home::for_serving().with_fake(&[], SMALL).serve_fake();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let mut hostile = guest(&gateway, &ann);
    let sessions: Vec<_> = (0..ALL).map(|_| hostile.new_session()).collect();
    // The guest stays attached to all of them.
    let answer = gateway.complete("say here");
    assert_eq!((answer.status, answer.text().as_str()), (200, "here"), "{}", answer.body);
    let mut operator = Client::known(&gateway, "/acp");
    operator.new_session();
    let mut other = guest(&gateway, &bob);
    let session = other.new_session();
    assert_eq!(said(&other.turn(&session, "say mine").0), "mine");
    // Its own go on as well, the first as the last.
    for session in [&sessions[0], &sessions[ALL - 1]] {
        assert_eq!(said(&hostile.turn(session, "say still here").0), "still here");
    }
}

#[test]
fn f6_a_session_that_gave_way_goes_on_where_it_was() {
    let gateway = Home::for_serving().with_fake(&[], SMALL).serve_fake();
    let ann = gateway.home.key("ann");
    let mut client = guest(&gateway, &ann);
    let first = client.new_session();
    assert_eq!(said(&client.turn(&first, "say one").0), "one");
    let rest: Vec<_> = (0..ALL).map(|_| client.new_session()).collect();
    let (shown, end) = client.turn(&first, "echo");
    assert_eq!(end.unwrap()["stopReason"], "end_turn");
    assert!(said(&shown).contains("say one"), "the new agent was told what was said: {}", said(&shown));
    assert_eq!(rest.len(), ALL);
}

#[test]
fn f6_a_guest_whose_sessions_all_work_waits_in_line_and_others_do_not() {
    let mut gateway = Home::for_serving().with_fake(&[], SMALL).serve_fake();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let gate = gateway.home.path("gate");
    let prompt = format!("say on ;; until {} ;; say done", gate.display());
    let mut streams = Vec::new();
    for _ in 0..6 {
        let mut connection = gateway.connect();
        post(&mut connection, &ann, &json!({ "model": "fake", "messages": messages(&prompt) }), &[]);
        streams.push(connection);
    }
    gateway.wait_for("all but one to wait", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"fake\"} 5\n").then_some(())
    });
    for key in [&gateway.key, &bob] {
        let answer = gateway.complete_as(key, &messages("say free"), &[]);
        assert_eq!((answer.status, answer.text().as_str()), (200, "free"), "{}", answer.body);
    }
    std::fs::write(&gate, "").unwrap();
    for mut connection in streams {
        let answer = connection.answer().unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ondone"), "{}", answer.body);
    }
}

#[test]
fn f6_the_refusal_says_what_is_full_and_the_way_out() {
    let gateway = Home::for_serving().with_fake(&[], &format!("{SMALL}limits.sessions_per_key = 1\n")).serve_fake();
    let ann = gateway.home.key("ann");
    let gate = gateway.home.path("gate");
    let mut client = guest(&gateway, &ann);
    let session = client.new_session();
    let turn = client.prompt(&session, &format!("say on ;; until {}", gate.display()));
    client.named("_gembridge/turn_started");
    let refused = client.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap_err();
    assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32000), &json!("queue_full")));
    let told = refused["message"].as_str().unwrap();
    assert!(told.contains("`fake`") && told.contains("1 session") && told.contains("try again"), "{told}");
    assert_eq!(gateway.complete("say free").status, 200);
    std::fs::write(&gate, "").unwrap();
    client.until(|message| message["id"] == turn);
}

#[test]
fn f6_a_guest_has_no_more_sessions_opened_over_its_sockets_than_it_may_make_requests() {
    let few = [("GEMBRIDGE_LIMITS_REQUESTS", "12")];
    let gateway = Home::new().with_fake(&[], "").serve_with(&["--agent", "fake"], &few);
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let mut hostile = [guest(&gateway, &ann), guest(&gateway, &ann)];
    let new = json!({ "cwd": "/", "mcpServers": [] });
    let mut sessions = Vec::new();
    while let Ok(opened) = hostile[sessions.len() % 2].call("session/new", &new) {
        sessions.push(opened["sessionId"].as_str().unwrap().to_owned());
        assert!(sessions.len() <= 12, "all are opened");
    }
    // One of each agent may have been opened to learn what it offers.
    assert!(sessions.len() >= 10, "{}", sessions.len());
    for client in &mut hostile {
        let refused = client.call("session/new", &new).unwrap_err();
        assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32000), &json!("queue_full")));
        let told = refused["message"].as_str().unwrap();
        assert!(told.contains("12 sessions opened") && told.contains("try again in"), "{told}");
    }
    assert_eq!(said(&hostile[0].turn(&sessions[0], "say still here").0), "still here");
    guest(&gateway, &bob).new_session();
    let mut operator = Client::known(&gateway, "/acp");
    for _ in 0..13 {
        operator.new_session();
    }
}

#[test]
fn f7_half_a_message_and_a_body_of_one_key_are_charged_to_one_share() {
    use std::io::{Read as _, Write as _};

    let gateway = Home::for_serving().serve();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let mut socket = std::net::TcpStream::connect(gateway.address).unwrap();
    let request = format!(
        "GET /acp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ann}\r\nconnection: upgrade\r\nupgrade: \
         websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let length: u64 = 10 << 20;
    socket.write_all(&[&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat()).unwrap();
    socket.write_all(&vec![b'x'; (10 << 20) - 1]).unwrap();
    // A ping behind 10 MB would not be read: the handshake's answer is all that comes.
    assert!(socket.read(&mut [0; 1_000]).unwrap() > 0);
    let body = messages(&format!("say {}", "x".repeat(1 << 20)));
    let refused = gateway.complete_as(&ann, &body, &[]);
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"), "{}", refused.body);
    for key in [&gateway.key, &bob] {
        assert_eq!(gateway.complete_as(key, &body, &[]).status, 200);
    }
}

#[test]
fn f8_what_waits_in_line_stays_charged_to_the_share_of_its_key() {
    let mut gateway = Home::for_serving().with_fake(&[], SMALL).serve_fake();
    let ann = gateway.home.key("ann");
    let gate = gateway.home.path("gate");
    let mut running = gateway.stream_as(&ann, &format!("say on ;; until {}", gate.display()));
    running.until("on");
    // One turn at a time, and ten such requests fit its share. Those of the WebSocket are charged as well.
    let large = format!("say done ;; {}", "x".repeat(1 << 20));
    let (mut client, mut other) = (guest(&gateway, &ann), guest(&gateway, &ann));
    let session = client.new_session();
    let prompts: Vec<_> = (0..5).map(|_| client.prompt(&session, &large)).collect();
    let mut requests = Vec::new();
    for _ in 0..5 {
        let mut connection = gateway.connect();
        post(&mut connection, &ann, &json!({ "model": "fake", "messages": messages(&large) }), &[]);
        requests.push(connection);
    }
    gateway.wait_for("ten of them to wait", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"fake\"} 10\n").then_some(())
    });
    other.prompt(&session, &large);
    assert_eq!(other.closed(), 1013);
    let refused = gateway.complete_as(&ann, &messages(&large), &[]);
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"), "{}", refused.body);
    let answer = gateway.complete_as(&gateway.key, &messages(&large), &[]);
    assert_eq!(answer.status, 200, "the operator has a share of its own: {}", answer.body);
    std::fs::write(&gate, "").unwrap();
    for mut connection in requests {
        assert_eq!(connection.answer().unwrap().status, 200);
    }
    for prompt in prompts {
        client.until(|message| message["id"] == prompt);
    }
}

#[test]
fn f8_what_is_kept_of_a_stored_response_is_not_charged_as_its_request() {
    let gateway = Home::for_serving().serve();
    let ann = gateway.home.key("ann");
    let authorization = format!("Bearer {ann}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    // Two of these do not fit a guest's share at once.
    let body = json!({ "model": "demo", "input": format!("say {}", "x".repeat(9 << 20)) }).to_string();
    for _ in 0..3 {
        let answer = gateway.ask("POST", "/v1/responses", &headers, Some(&body));
        assert_eq!(answer.status, 200, "{}", &answer.body[..answer.body.len().min(300)]);
    }
    let items = json!({ "items": [{ "role": "user", "content": "x", "unknown": "x".repeat(9 << 20) }] }).to_string();
    for _ in 0..3 {
        let answer = gateway.ask("POST", "/v1/conversations", &headers, Some(&items));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}
