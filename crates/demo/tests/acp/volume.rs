//! Much at once: nothing is lost, doubled or out of order.

use std::collections::HashMap;

use serde_json::Value;

use crate::agent::{Agent, chunk_text};

#[test]
fn a_hundred_thousand_chunks_arrive_complete_and_in_order() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "chunks 100000");
    let mut expected = 1_u64;
    let answer = loop {
        let message = agent.next();
        if message["id"] == id {
            break message;
        }
        if !chunk_text(&message).is_empty() {
            assert_eq!(chunk_text(&message), format!("{expected} "));
            expected += 1;
        }
    };
    assert_eq!(expected, 100_001);
    assert_eq!(answer["result"]["usage"]["outputTokens"], 100_000);
}

#[test]
fn a_hundred_sessions_stream_together_each_in_its_own_order() {
    let mut agent = Agent::start();
    let sessions: Vec<_> = (0..100).map(|_| agent.session()).collect();
    for session in &sessions {
        agent.send_prompt(session, "slow 30 2");
    }
    let mut next: HashMap<String, u64> = HashMap::new();
    let mut ended = 0;
    while ended < sessions.len() {
        let message: Value = agent.next();
        ended += usize::from(message.get("result").is_some());
        if !chunk_text(&message).is_empty() {
            let counter = next.entry(message["params"]["sessionId"].as_str().unwrap().to_owned()).or_insert(0);
            *counter += 1;
            assert_eq!(chunk_text(&message), format!("word-{counter} "));
        }
    }
    assert_eq!(next.len(), 100);
    assert!(next.values().all(|count| *count == 30));
}

#[test]
fn chunks_larger_than_the_pipe_arrive_whole() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "chunks 40 size 1000000");
    let (mut bytes, mut chunks) = (0, 0);
    loop {
        let message = agent.next();
        if message["id"] == id {
            break;
        }
        chunks += usize::from(!chunk_text(&message).is_empty());
        bytes += chunk_text(&message).len();
    }
    assert_eq!((chunks, bytes), (40, 40_000_000));
}
