//! Responses that go on without their client.

use gembridge_core::admission::AdmissionLimits;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::json;

use super::support::{asking, call, create, events, response, text_of};
use crate::openai::support::http::post;
use crate::openai::support::server::{ServerSetup, TestServer};

#[tokio::test]
async fn a_background_response_is_polled_and_followed_from_any_event_on() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("hel")]]);
    let server = TestServer::new(&agents).await;
    let request = asking("hi", json!({ "background": true, "stream": true }));
    let mut stream = post(server.address, "/v1/responses", &[], request.to_string()).await;
    let begun = events(&format!("{}\n\n", stream.until("hel").await.trim_end())).remove(0)["response"].clone();
    assert_eq!(begun["status"], "queued");
    // The client that began it leaves.
    drop(stream);
    let path = format!("responses/{}", begun["id"].as_str().unwrap());
    let meanwhile = call(&server, "GET", &path).await.json();
    assert_eq!((&meanwhile["status"], &meanwhile["background"]), (&json!("in_progress"), &json!(true)));

    let rest = format!("{path}?stream=true&starting_after=2");
    let (followed, ()) = tokio::join!(call(&server, "GET", &rest), agents.does(0, [text("lo"), done()]));
    let followed = events(&followed.body);
    assert_eq!(
        (&followed[0]["sequence_number"], &followed.last().unwrap()["type"]),
        (&json!(3), &json!("response.completed"))
    );
    let over = call(&server, "GET", &path).await.json();
    assert_eq!((&over["status"], text_of(&over)), (&json!("completed"), "hello".to_owned()));
    assert_eq!(followed.last().unwrap()["response"], over);
    let whole = call(&server, "GET", &format!("{path}?stream=true")).await;
    assert_eq!(events(&whole.body)[3..], followed, "the same again, from the beginning");
}

#[tokio::test]
async fn a_background_response_is_cancelled_once_and_any_other_is_not() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let begun = response(&server, &asking("hi", json!({ "background": true }))).await;
    let path = format!("responses/{}/cancel", begun["id"].as_str().unwrap());
    for _ in 0..2 {
        let cancelled = call(&server, "POST", &path).await.json();
        assert_eq!((&cancelled["id"], &cancelled["status"]), (&begun["id"], &json!("cancelled")));
    }
    agents.until_cancelled(0).await;

    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let plain = response(&server, &asking("hi", json!({}))).await;
    let path = format!("responses/{}", plain["id"].as_str().unwrap());
    assert_eq!(call(&server, "POST", &format!("{path}/cancel")).await.error().2, "response_id");
    assert_eq!(call(&server, "GET", &format!("{path}?stream=true")).await.error().2, "stream");
    let unkept = asking("hi", json!({ "background": true, "store": false }));
    assert_eq!(create(&server, &unkept).await.error().2, "background");
}

#[tokio::test]
async fn a_background_response_is_there_at_once_also_where_its_agent_is_busy_and_runs_when_it_is_free() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let admission = AdmissionLimits { running: 1, waiting: 3, ..AdmissionLimits::default() };
    let setup = ServerSetup { admission, ..ServerSetup::default() };
    let server = TestServer::with(&[("played", &agents)], setup).await;
    let first = response(&server, &asking("one", json!({ "background": true }))).await;
    agents.until_prompted(0).await;
    let second = response(&server, &asking("two", json!({ "background": true }))).await;
    assert_eq!((&second["status"], &second["output"]), (&json!("queued"), &json!([])));
    assert_ne!(first["id"], second["id"]);
    let path = format!("responses/{}", second["id"].as_str().unwrap());
    assert_eq!(call(&server, "GET", &path).await.json()["status"], "queued");
    agents.does(0, [done()]).await;
    agents.until_prompted(1).await;
    let rest = format!("{path}?stream=true&starting_after=1");
    let (followed, ()) = tokio::join!(call(&server, "GET", &rest), agents.does(1, [done()]));
    let followed = events(&followed.body);
    assert_eq!(
        (&followed[0]["type"], &followed.last().unwrap()["type"]),
        (&json!("response.in_progress"), &json!("response.completed"))
    );
    let over = call(&server, "GET", &path).await.json();
    assert_eq!((&over["id"], &over["status"]), (&second["id"], &json!("completed")));
    response(&server, &asking("three", json!({ "background": true, "previous_response_id": second["id"] }))).await;
    agents.until_prompts(1, 2).await;
}
