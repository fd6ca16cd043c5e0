//! What a client is shown again when it comes, and how it goes on from there.

use gembridge_core::limit::Limits;
use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::{Client, hello, said, seqs};
use crate::acp::support::server::{ServerSetup, TestServer};
use crate::acp::support::{done, text};

/// A session with five turns of four entries each: prompt, start, text, end.
async fn told(server: &TestServer) -> String {
    let mut client = server.client().await;
    let session = client.new_session().await;
    for number in 1..=5 {
        let id = client.prompt(&session, &format!("q{number}")).await;
        client.answer(id).await.unwrap();
    }
    session
}

async fn replayed(client: &mut Client) -> Vec<Value> {
    client.until(|message| message["method"] == "_gembridge/replay_ended").await
}

fn prompts(messages: &[Value]) -> Vec<String> {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let prompts = updates.filter(|update| update["sessionUpdate"] == "user_message_chunk");
    prompts.filter_map(|update| update["content"]["text"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_replay_begins_after_initialize_and_ends_with_how_the_session_stands() {
    let server = TestServer::new(&agents::echo());
    let session = told(&server).await;
    let mut client = server.connect(&format!("/acp?session={session}")).await;
    let id = client.request("initialize", hello()).await;
    let first = client.next().await;
    assert_eq!(first["id"], id, "the answer comes first");
    assert_eq!(first["result"]["_meta"]["gembridge"]["session"], session);
    let messages = replayed(&mut client).await;
    let (begin, end) = (&messages[0], &messages[messages.len() - 1]["params"]);
    assert_eq!(begin["method"], "_gembridge/replay_started");
    assert_eq!((&begin["params"]["from"], &begin["params"]["to"]), (&json!(1), &json!(20)));
    assert_eq!(seqs(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!((&end["last"], &end["turn"]), (&json!(20), &json!({ "state": "idle" })));
    assert_eq!((&end["queued"], &end["openRequests"], &end["truncated"]), (&json!(0), &json!([]), &json!(false)));
    assert_eq!(prompts(&messages), ["q1", "q2", "q3", "q4", "q5"], "on a replay its own prompts are shown too");
}

#[tokio::test]
async fn limit_counts_whole_turns_and_after_goes_on_where_a_client_left_off() {
    let server = TestServer::new(&agents::echo());
    let session = told(&server).await;
    for (query, first, expected) in [
        ("&limit=1", 17, &["q5"][..]),
        ("&limit=2", 13, &["q4", "q5"]),
        ("&limit=99", 1, &["q1", "q2", "q3", "q4", "q5"]),
        ("&limit=0", 21, &[]),
        ("&after=0", 1, &["q1", "q2", "q3", "q4", "q5"]),
        ("&after=18", 19, &[]),
        ("&after=20", 21, &[]),
        ("&after=999", 21, &[]),
    ] {
        let mut client = server.attached(&session, query).await;
        let messages = replayed(&mut client).await;
        assert_eq!(seqs(&messages), (first..=20).collect::<Vec<_>>(), "{query}");
        assert_eq!(prompts(&messages), expected, "{query}");
        assert_eq!(messages.last().unwrap()["params"]["truncated"], first > 1, "{query}");
    }
}

#[tokio::test]
async fn since_and_before_are_exclusive_and_come_before_limit() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let mut times = Vec::new();
    for number in 1..=4 {
        let id = client.prompt(&session, &format!("q{number}")).await;
        let messages = client.until(|message| message["id"] == id).await;
        let started = messages.iter().find(|message| message["method"] == "_gembridge/turn_started").unwrap();
        times.push(started["params"]["at"].as_u64().unwrap());
        // The next turn begins in a later millisecond.
        while gembridge_core::model::Timestamp::now().0 <= messages.iter().filter_map(at).max().unwrap() {
            tokio::task::yield_now().await;
        }
    }
    let show = async |query: &str| {
        let mut client = server.attached(&session, query).await;
        prompts(&replayed(&mut client).await)
    };
    assert_eq!(show(&format!("&before={}", times[2])).await, ["q1", "q2"]);
    assert_eq!(show(&format!("&since={}", times[1] + 10_000_000)).await, [] as [&str; 0]);
    let end_of_second = times[2] - 1;
    assert_eq!(show(&format!("&since={end_of_second}")).await, ["q3", "q4"]);
    assert_eq!(show(&format!("&since={end_of_second}&before={}", times[3])).await, ["q3"]);
    assert_eq!(show(&format!("&before={}&limit=1", times[3])).await, ["q3"]);
}

fn at(message: &Value) -> Option<u64> {
    message["params"]["_meta"]["gembridge"]["at"].as_u64().or_else(|| message["params"]["at"].as_u64())
}

#[tokio::test]
async fn what_has_left_the_memory_is_shown_from_the_store() {
    let limits = Limits { ring_entries: 8, ..Limits::default() };
    let agents = agents::scripted(|_| (0..300).map(|n| text(&format!("{n} "))).chain([done()]).collect());
    let server = TestServer::with(&agents, ServerSetup { limits, ..ServerSetup::default() });
    let session = told(&server).await;
    let mut client = server.attached(&session, "").await;
    let messages = replayed(&mut client).await;
    let last = messages.last().unwrap()["params"]["last"].as_u64().unwrap();
    assert_eq!(last, 5 * 303);
    assert_eq!(seqs(&messages), (1..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_running_turn_is_shown_from_its_beginning_and_then_as_it_goes_on() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "go").await;
    agents.until_prompts(0, 1).await;
    agents.does(0, [text("one "), text("two ")]).await;
    let mut late = server.attached(&session, "&limit=1").await;
    let mut messages = replayed(&mut late).await;
    assert_eq!(messages.last().unwrap()["params"]["turn"], json!({ "state": "running", "id": 1 }));
    agents.does(0, [text("three"), done()]).await;
    messages.extend(late.until(|message| message["method"] == "_gembridge/turn_ended").await);
    assert_eq!(said(&messages), "one two three");
    let numbers = seqs(&messages);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn load_shows_everything_before_it_answers_and_resume_shows_nothing() {
    let server = TestServer::new(&agents::echo());
    let session = told(&server).await;
    let mut client = server.client().await;
    let id = client.request("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    let messages = client.until(|message| message["id"] == id).await;
    assert_eq!(seqs(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!(messages.last().unwrap()["result"]["modes"]["currentModeId"], "default");
    let wish = json!({ "sessionId": session, "cwd": "/", "_meta": { "gembridge": { "limit": 1 } } });
    let id = client.request("session/load", wish).await;
    let messages = client.until(|message| message["id"] == id).await;
    assert_eq!(prompts(&messages), ["q5"]);

    let mut other = server.client().await;
    let id = other.request("session/resume", json!({ "sessionId": session, "cwd": "/" })).await;
    let messages = other.until(|message| message["id"] == id).await;
    assert_eq!(messages.len(), 1);
    let id = other.prompt(&session, "q6").await;
    assert_eq!(said(&other.until(|message| message["id"] == id).await), "you said q6");
    // Whoever loaded it is still there.
    assert_eq!(said(&client.until(|message| message["method"] == "_gembridge/turn_ended").await), "you said q6");

    let attached = other.call("_gembridge/attach", json!({ "sessionId": session, "after": 20 })).await.unwrap();
    assert_eq!((&attached["state"], &attached["last"]), (&json!("idle"), &json!(24)));
    assert_eq!(seqs(&replayed(&mut other).await), [21, 22, 23, 24]);
    assert_eq!(other.call("_gembridge/detach", json!({ "sessionId": session })).await, Ok(json!({})));
    let id = client.prompt(&session, "q7").await;
    client.answer(id).await.unwrap();
    other.call("$/ping", json!({})).await.unwrap();
    assert_eq!(other.call("session/load", json!({ "sessionId": "0", "cwd": "/" })).await.unwrap_err()["code"], -32002);
    let both = json!({ "sessionId": session, "after": 1, "limit": 1 });
    assert_eq!(other.call("_gembridge/attach", both).await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn since_the_beginning_is_everything_and_a_number_is_of_its_own_session() {
    let agents = agents::echo();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    // Something that came before the first turn.
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await.unwrap();
    for number in 1..=3 {
        let id = client.prompt(&session, &format!("q{number}")).await;
        client.answer(id).await.unwrap();
    }
    let mut late = server.attached(&session, "&since=0").await;
    assert_eq!(seqs(&replayed(&mut late).await), (1..=13).collect::<Vec<_>>());
    let mut late = server.attached(&session, "&since=0&limit=99").await;
    assert_eq!(seqs(&replayed(&mut late).await), (1..=13).collect::<Vec<_>>());

    let other = told(&server).await;
    let mut back = server.attached(&session, "&after=10").await;
    assert_eq!(seqs(&replayed(&mut back).await), [11, 12, 13]);
    back.call("session/load", json!({ "sessionId": other, "cwd": "/", "mcpServers": [] })).await.unwrap();
    assert_eq!(prompts(&replayed(&mut back).await), ["q1", "q2", "q3", "q4", "q5"]);
}
