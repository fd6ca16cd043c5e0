//! Two guests and an operator on one gateway, and one of the guests is hostile: what the others ask is answered all the
//! same, nobody sees anything of the others, and the memory stays within its bound. How long it takes is measured by the
//! benchmark `hostile-guest`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, said as messages};
use crate::support::home::Home;
use crate::support::messages::said;
use crate::support::websocket::{Client, hello};

/// Twenty sessions of the agent: a guest's key has six.
const SETTINGS: &str = "limits.turns = 8\nlimits.idle_sessions = 8\n";

/// What all bodies and messages may take together is 48 MB; the rest is for sessions and for a machine that is busy.
const MEMORY_KB: u64 = 80 << 10;

const REQUESTS: usize = 12;

fn known(gateway: &Gateway, key: &str) -> Client {
    let mut client = Client::connect_to(gateway.address, key, "/acp").expect("it is let in");
    client.call("initialize", &hello()).unwrap();
    client
}

/// A connection that says what it is told to, as far as the gateway reads it.
fn pushed(gateway: &Gateway, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    // The gateway may stop reading, or close.
    drop(stream.write_all(body));
    stream
}

/// Half a WebSocket message of 9 MB.
fn half_message(gateway: &Gateway, key: &str) -> TcpStream {
    let head = format!(
        "GET /acp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: upgrade\r\nupgrade: \
         websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let length: u64 = 9 << 20;
    let body = [&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4], &vec![b'x'; 4 << 20]].concat();
    pushed(gateway, &head, &body)
}

/// A body of 10 MB that stops after one.
fn slow_upload(gateway: &Gateway, key: &str) -> TcpStream {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: \
         application/json\r\ncontent-length: 10485760\r\n\r\n"
    );
    pushed(gateway, &head, &vec![b' '; 1 << 20])
}

/// Everything that a guest may try, again and again. What comes back to it.
fn attack(gateway: &Gateway, key: &str, ready: &AtomicBool, is_over: &AtomicBool) -> String {
    let mut heard = String::new();
    let mut client = known(gateway, key);
    let sessions: Vec<_> = (0..30).map(|_| client.new_session()).collect();
    let mut held: Vec<_> = (0..24).map(|_| half_message(gateway, key)).collect();
    held.extend((0..8).map(|_| slow_upload(gateway, key)));
    ready.store(true, Ordering::Release);
    let mut round = 0;
    while !is_over.load(Ordering::Acquire) {
        let session = &sessions[round % sessions.len()];
        let server = json!({ "name": "sh", "command": "/bin/sh", "args": [], "env": [] });
        let fork = json!({ "sessionId": session, "cwd": "/", "mcpServers": [server] });
        for (method, params) in [("session/fork", fork), ("session/new", json!({ "cwd": "/", "mcpServers": [] }))] {
            let answer = client.call(method, &params).unwrap_or_else(|refused| refused);
            heard.push_str(&answer.to_string());
            if let Some(made) = answer["sessionId"].as_str() {
                client.call("_gembridge/detach", &json!({ "sessionId": made })).unwrap();
            }
        }
        let (shown, _) = client.turn(session, "say eve");
        heard.extend(shown.iter().map(Value::to_string));
        round += 1;
    }
    heard.push_str(&client.call("session/list", &json!({})).unwrap().to_string());
    for mut stream in held {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut bytes = Vec::new();
        // What has come by now is enough.
        drop(stream.read_to_end(&mut bytes));
        heard.push_str(&String::from_utf8_lossy(&bytes));
    }
    heard
}

/// What an ordinary client does: small requests, large ones, and turns of one session. All must be answered.
fn work(gateway: &Gateway, key: &str, name: &str) -> String {
    let mut heard = String::new();
    let mut client = known(gateway, key);
    let session = client.new_session();
    for number in 0..REQUESTS {
        let word = format!("{name}-{number}");
        let padding = if number % 3 == 0 { "x".repeat(100_000) } else { String::new() };
        let answer = gateway.complete_as(key, &messages(&format!("say {word}\n{padding}")), &[]);
        assert_eq!((answer.status, answer.text().as_str()), (200, word.as_str()), "{}", answer.body);
        heard.push_str(&answer.body);
        let (shown, end) = client.turn(&session, &format!("say {word}"));
        assert_eq!(end.unwrap()["stopReason"], "end_turn", "{name}");
        assert_eq!(said(&shown), word);
        heard.extend(shown.iter().map(Value::to_string));
    }
    heard.push_str(&client.call("session/list", &json!({})).unwrap().to_string());
    heard
}

#[test]
fn f6_f7_f8_a_hostile_guest_makes_nothing_of_others_fail_and_nothing_crosses() {
    let gateway = Home::for_serving().with_fake(&[], SETTINGS).serve_fake();
    let (eve, bob) = (gateway.home.key("eve"), gateway.home.key("bob"));
    let (ready, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let quiet = gembridge_testkit::rss_kb(gateway.pid());
    let (of_eve, of_bob, of_operator) = std::thread::scope(|scope| {
        let hostile = scope.spawn(|| attack(&gateway, &eve, &ready, &is_over));
        while !ready.load(Ordering::Acquire) && !hostile.is_finished() {
            std::thread::yield_now();
        }
        let guest = scope.spawn(|| work(&gateway, &bob, "bob"));
        let operator = scope.spawn(|| work(&gateway, &gateway.key, "operator"));
        // Keys come and go meanwhile.
        let mut number = 0;
        while !guest.is_finished() || !operator.is_finished() {
            let name = format!("temporary-{number}");
            let key = gateway.home.key(&name);
            assert_eq!(gateway.get_as(&key, "/v1/models").status, 200);
            gateway.home.stdout_of(&["keys", "revoke", &name]);
            assert_eq!(gateway.get_as(&key, "/v1/models").status, 401);
            number += 1;
        }
        let worked = (guest.join(), operator.join());
        is_over.store(true, Ordering::Release);
        (hostile.join().unwrap(), worked.0.unwrap(), worked.1.unwrap())
    });
    let peak = gembridge_testkit::process_table::peak_rss_kb(gateway.pid());
    assert!(peak < quiet + MEMORY_KB, "{quiet} kB when nobody asks, {peak} kB at most");
    for (name, heard, others) in [("eve", &of_eve, ["bob-", "operator-"]), ("bob", &of_bob, ["operator-", "say eve"])] {
        for other in others {
            assert!(!heard.contains(other), "{name} was shown `{other}`");
        }
    }
    assert!(of_operator.contains("say bob-"), "the operator sees every session in the list");
}
