//! Clients that read slower than their agent writes, and clients that do not read at all.

use std::time::Duration;

use gembridge_api::acp::AcpConfig;
use gembridge_core::limit::Limits;
use serde_json::{Value, json};

use crate::acp::support::agents::{self, ScriptedAgents};
use crate::acp::support::client::{Client, seqs};
use crate::acp::support::server::{ServerSetup, TestServer};
use crate::acp::support::{done, text};

/// More pieces than the buffers of all sockets hold, each far larger than what a log keeps in memory.
const PIECES: usize = 80;
const PIECE: usize = 256 << 10;

/// A log that lets go of whoever is four batches behind.
fn setup() -> ServerSetup {
    let limits = Limits { follower_batches: 4, follower_bytes: 1 << 20, ..Limits::default() };
    let config = AcpConfig { behind: 64 << 10, ..AcpConfig::default() };
    ServerSetup { config, limits, ..ServerSetup::default() }
}

fn is_piece(message: &Value) -> bool {
    message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
}

/// The agent says everything, and `quick` has read each piece before the next one comes. The number of the last piece.
async fn flood(agents: &ScriptedAgents, quick: &mut Client) -> u64 {
    let piece = "x".repeat(PIECE);
    let mut last = 0;
    for _ in 0..PIECES {
        agents.does(0, [text(&piece)]).await;
        last = seqs(&[quick.find(is_piece).await])[0];
    }
    agents.does(0, [done()]).await;
    last
}

fn assert_no_gap(seen: &[u64]) {
    assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seen:?}");
}

#[tokio::test]
async fn r28_a_client_that_is_megabytes_behind_and_reads_again_gets_everything_on_the_same_connection() {
    let agents = agents::silent();
    let server = TestServer::with(&agents, setup());
    let mut quick = server.client().await;
    let session = quick.new_session().await;
    let mut slow = server.attached(&session, "").await;
    slow.named("_gembridge/replay_ended").await;
    let id = quick.prompt(&session, "flood").await;
    agents.until_prompts(0, 1).await;
    let last = flood(&agents, &mut quick).await;
    assert_eq!(quick.answer(id).await.unwrap()["stopReason"], "end_turn");

    let seen = slow.until(|message| message["method"] == "_gembridge/turn_ended").await;
    assert_eq!(seen.iter().filter(|message| is_piece(message)).count(), PIECES);
    assert_no_gap(&seqs(&seen));
    assert!(*seqs(&seen).last().unwrap() > last, "the end comes after the last piece");

    // It is live again, and what it asks for is done.
    let id = slow.prompt(&session, "again").await;
    agents.until_prompts(0, 2).await;
    agents.does(0, [text("here"), done()]).await;
    assert_eq!(slow.answer(id).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(quick.find(is_piece).await["params"]["update"]["content"]["text"], "here");
}

#[tokio::test]
async fn r28_a_prompt_of_a_client_that_is_far_behind_is_answered_after_all_that_was_said() {
    let agents = agents::silent();
    let server = TestServer::with(&agents, setup());
    let mut slow = server.client().await;
    let session = slow.new_session().await;
    let mut quick = server.attached(&session, "").await;
    quick.named("_gembridge/replay_ended").await;
    let id = slow.prompt(&session, "flood").await;
    agents.until_prompts(0, 1).await;
    flood(&agents, &mut quick).await;
    quick.named("_gembridge/turn_ended").await;

    let seen = slow.until(|message| message["id"] == id && message.get("result").is_some()).await;
    assert_eq!(seen.iter().filter(|message| is_piece(message)).count(), PIECES);
    assert_no_gap(&seqs(&seen));
    assert_eq!(seen.last().unwrap()["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn r28_what_a_client_has_not_read_when_the_session_is_closed_still_comes() {
    let agents = agents::silent();
    let server = TestServer::with(&agents, setup());
    let mut quick = server.client().await;
    let session = quick.new_session().await;
    let mut slow = server.attached(&session, "").await;
    slow.named("_gembridge/replay_ended").await;
    quick.prompt(&session, "flood").await;
    agents.until_prompts(0, 1).await;
    flood(&agents, &mut quick).await;
    quick.named("_gembridge/turn_ended").await;
    quick.call("session/close", json!({ "sessionId": session })).await.unwrap();

    let seen = slow.until(|message| message["method"] == "_gembridge/session_closed").await;
    assert_eq!(seen.iter().filter(|message| is_piece(message)).count(), PIECES);
    assert_no_gap(&seqs(&seen));
}

#[tokio::test]
async fn r28_a_client_that_is_far_behind_may_attach_again_and_misses_nothing() {
    let agents = agents::silent();
    let server = TestServer::with(&agents, setup());
    let mut quick = server.client().await;
    let session = quick.new_session().await;
    let mut slow = server.attached(&session, "").await;
    slow.named("_gembridge/replay_ended").await;
    quick.prompt(&session, "flood").await;
    agents.until_prompts(0, 1).await;
    let last = flood(&agents, &mut quick).await;
    quick.named("_gembridge/turn_ended").await;

    // Only what it has not been shown by then is new: everything before it comes on the way there.
    let again = slow.request("_gembridge/attach", json!({ "sessionId": session, "after": last })).await;
    let seen = slow.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert!(seen.iter().any(|message| message["id"] == again));
    assert_eq!(seen.iter().filter(|message| is_piece(message)).count(), PIECES);
    assert_no_gap(&seqs(&seen));
}

#[tokio::test]
async fn r7_a_client_that_takes_nothing_is_let_go_and_neither_agent_nor_others_wait() {
    let agents = agents::silent();
    let config = AcpConfig { messages_per_second: 1_000_000, ..setup().config };
    let server = TestServer::with(&agents, ServerSetup { send: Duration::from_secs(2), config, ..setup() });
    let mut quick = server.client().await;
    let session = quick.new_session().await;
    let mut stuck = server.attached(&session, "").await;
    stuck.named("_gembridge/replay_ended").await;
    let id = quick.prompt(&session, "flood").await;
    agents.until_prompts(0, 1).await;
    let last = flood(&agents, &mut quick).await;
    assert_eq!(quick.answer(id).await.unwrap()["stopReason"], "end_turn");
    while server.face.connections() > 1 {
        quick.call("$/ping", json!({})).await.unwrap();
    }

    let (seen, _) = stuck.drain().await;
    let seen = seqs(&seen);
    assert_no_gap(&seen);
    let reached = *seen.last().unwrap();
    assert!(reached < last);
    // It comes back with the number that it saw last.
    let mut back = server.attached(&session, &format!("&after={reached}")).await;
    let rest = seqs(&back.until(|message| message["method"] == "_gembridge/replay_ended").await);
    assert_eq!(rest.first(), Some(&(reached + 1)));
    assert_no_gap(&rest);
    assert!(*rest.last().unwrap() > last);
}
