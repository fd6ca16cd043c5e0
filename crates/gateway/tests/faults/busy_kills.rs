//! A gateway that is killed while it streams to many clients: every word that any of them saw is kept, and every turn has
//! one end once its session is used again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gembridge_core::model::Outcome;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::history;
use crate::kills::Dice;
use crate::support::gateway::{Gateway, said};
use crate::support::home::Home;
use crate::support::http::{Connection, Events};

/// `GEMBRIDGE_SOAK=long` when it is built: a thousand.
const KILLS: usize = if option_env!("GEMBRIDGE_SOAK").is_some() { 1_000 } else { 30 };
const CLIENTS: usize = 6;

/// What a client saw of an answer.
struct Seen {
    session: String,
    text: String,
}

fn begin(gateway: &Gateway, prompt: &str) -> std::io::Result<Events> {
    let mut connection = Connection::open(gateway.address)?;
    let authorization = format!("Bearer {}", gateway.key);
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let body = json!({ "model": "default", "stream": true, "messages": said(prompt) });
    connection.send("POST", "/v1/chat/completions", &headers, Some(&body.to_string()))?;
    Events::begin(connection)
}

/// Streams of all clients, killed when they have seen about so many bytes together.
fn stream_until_killed(gateway: &Gateway, bytes: usize) -> Vec<Seen> {
    let (seen, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for client in 0..CLIENTS {
            let (seen, count) = (&seen, &count);
            threads.spawn(move || {
                let prompt =
                    ["chunks 100000 delay 1", "chunks 20000 size 90 ;; wait-cancel", "burst 3000 ;; wait-cancel"];
                // One that comes too late sees nothing.
                let Ok(mut events) = begin(gateway, prompt[client % prompt.len()]) else { return };
                let mut text = String::new();
                while let Ok(Some(data)) = events.next() {
                    let event: Value = serde_json::from_str(&data).unwrap();
                    let piece = event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
                    text.push_str(piece);
                    if count.fetch_add(piece.len(), Ordering::Relaxed) >= bytes {
                        // More than one may come here; it dies once.
                        gateway.signal(Signal::KILL);
                    }
                }
                seen.lock().unwrap().extend(events.session.map(|session| Seen { session, text }));
            });
        }
    });
    seen.into_inner().unwrap()
}

#[test]
fn r14_every_word_that_a_client_saw_survives_kill_9_of_a_busy_gateway() {
    let mut home = Home::with_modes("ok");
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut words, mut used_again) = (0, None::<String>);
    for kill in 0..KILLS {
        let mut gateway = home.serve_fake();
        if let Some(session) = &used_again {
            let pin = [("x-session-id", session.as_str())];
            let answer = gateway.complete_as(&gateway.key, &said("say here"), &pin);
            assert_eq!(answer.text(), "here", "kill {kill}: {}", answer.body);
        }
        let seen = stream_until_killed(&gateway, usize::try_from(dice.below(60_000)).unwrap());
        assert!(!gateway.ended().success(), "kill {kill}");
        home = gateway.into_home();
        let ids: Vec<String> = seen.iter().map(|seen| seen.session.clone()).collect();
        for (seen, log) in seen.iter().zip(history::logs(&home.state_folder(), &ids)) {
            assert!(history::text(&log).starts_with(&seen.text), "kill {kill}: seen, and not in the log");
            history::is_in_order(&log);
            words += seen.text.split_whitespace().count();
        }
        if let Some(session) = &used_again {
            let log = history::logs(&home.state_folder(), std::slice::from_ref(session)).remove(0);
            history::is_in_order(&log);
            let outcomes = history::outcomes(&log);
            let ends = matches!(outcomes.as_slice(), [Outcome::Interrupted(_), Outcome::Finished(_)]);
            assert!(ends, "kill {kill}: {outcomes:?}");
        }
        used_again = ids.into_iter().next();
    }
    assert!(words > KILLS, "the clients hardly saw anything: {words} words");
    eprintln!("{KILLS} kills, {words} words seen, none lost");
    history::database_is_sound(&home.state_folder());
    home.is_deserted();
}
