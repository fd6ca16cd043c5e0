//! Calls that wait, and how they end.

use gembridge_core::model::{Content, ToolReturn};
use gembridge_core::tool_host::{FormatSpec, Offer, ToolHost, ToolNews};
use rmcp::model::{CallToolRequestParams, ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::agent::{Agent, Told, arguments_of, bridge, called, done, endpoint, named, soon, text_of, tool};
use crate::raw;

#[tokio::test]
async fn a_call_waits_until_it_is_answered() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["get_weather"]);
    let agent = Agent::connect(&endpoint).await;
    let waiting = agent.begin("get_weather", json!({"city": "Bern", "wait_for_previous": true}));
    let call = called(&mut endpoint.news).await;
    assert_eq!((&*call.tool, arguments_of(&call)), ("get_weather", r#"{"city":"Bern"}"#));
    assert!(!waiting.is_finished());
    call.reply.send(done(vec![Content::text("sunny")])).unwrap();
    let result = soon(waiting).await.unwrap();
    assert_eq!((text_of(&result).as_str(), result.is_error), ("sunny", Some(false)));
    bridge.shutdown().await;
}

#[tokio::test]
async fn parallel_calls_are_answered_in_reverse_order() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["look"]);
    let agent = Agent::connect(&endpoint).await;
    let waiting: Vec<_> = (0..3).map(|n| agent.begin("look", json!({"n": n}))).collect();
    let mut calls =
        vec![called(&mut endpoint.news).await, called(&mut endpoint.news).await, called(&mut endpoint.news).await];
    calls.sort_by_key(|call| arguments_of(call).to_owned());
    for call in calls.into_iter().rev() {
        let echo = arguments_of(&call).to_owned();
        call.reply.send(done(vec![Content::text(echo)])).unwrap();
    }
    for (n, waiting) in waiting.into_iter().enumerate() {
        assert_eq!(text_of(&soon(waiting).await.unwrap()), format!(r#"{{"n":{n}}}"#));
    }
    bridge.shutdown().await;
}

#[tokio::test]
async fn two_places_with_the_same_names_do_not_mix() {
    let bridge = bridge().await;
    let (mut ours, mut theirs) = (endpoint(&bridge, &["look"]), endpoint(&bridge, &["look"]));
    let (agent, other) = (Agent::connect(&ours).await, Agent::connect(&theirs).await);
    let from_ours = agent.begin("look", json!({"who": "ours"}));
    let from_theirs = other.begin("look", json!({"who": "theirs"}));
    let (call, their_call) = (called(&mut ours.news).await, called(&mut theirs.news).await);
    assert_eq!(arguments_of(&call), r#"{"who":"ours"}"#);
    assert_eq!(arguments_of(&their_call), r#"{"who":"theirs"}"#);
    their_call.reply.send(done(vec![Content::text("2")])).unwrap();
    call.reply.send(done(vec![Content::text("1")])).unwrap();
    assert_eq!(text_of(&soon(from_ours).await.unwrap()), "1");
    assert_eq!(text_of(&soon(from_theirs).await.unwrap()), "2");
    assert!(ours.news.try_recv().is_err() && theirs.news.try_recv().is_err());
    bridge.shutdown().await;
}

#[tokio::test]
async fn large_results_images_and_failures_come_through() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["look"]);
    let agent = Agent::connect(&endpoint).await;
    let large = "0123456789abcdef".repeat(5 * 1024 * 1024 / 16);
    let image = Content::Image { mime: "image/png".into(), data: "iVBORw0KGgo=".into(), uri: None };
    let answers = [done(vec![Content::text(large.clone())]), done(vec![image]), ToolReturn::failed("no such city")];
    for (n, answer) in answers.into_iter().enumerate() {
        let waiting = agent.begin("look", json!({}));
        called(&mut endpoint.news).await.reply.send(answer).unwrap();
        let result = soon(waiting).await.unwrap();
        match n {
            0 => assert!(text_of(&result) == large, "a result of 5 MB was changed"),
            1 => {
                let shown = result.content[0].as_image().unwrap();
                assert_eq!((shown.data.as_str(), shown.mime_type.as_str()), ("iVBORw0KGgo=", "image/png"));
            }
            _ => assert_eq!((text_of(&result).as_str(), result.is_error), ("no such city", Some(true))),
        }
    }
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_caller_that_asks_for_progress_hears_that_its_call_still_waits() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let mut agent = Agent::connect(&endpoint).await;
    // The library puts a progress token into every request of its own.
    let waiting = agent.begin("slow", json!({}));
    let call = called(&mut endpoint.news).await;
    assert_eq!(soon(agent.told.recv()).await, Some(Told::Progress(1.0)));
    assert_eq!(soon(agent.told.recv()).await, Some(Told::Progress(2.0)));
    call.reply.send(done(vec![])).unwrap();
    soon(waiting).await.unwrap();
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_call_that_the_agent_cancels_is_withdrawn() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let agent = Agent::connect(&endpoint).await;
    let request = ClientRequest::CallToolRequest(Request::new(CallToolRequestParams::new("slow")));
    let handle = soon(agent.client.send_cancellable_request(request, PeerRequestOptions::default())).await.unwrap();
    let call = called(&mut endpoint.news).await;
    soon(handle.cancel(Some("changed my mind".to_owned()))).await.unwrap();
    assert!(matches!(soon(endpoint.news.recv()).await, Some(ToolNews::Withdrawn(id)) if id == call.id));
    assert!(call.reply.is_closed());
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_call_whose_connection_ends_is_withdrawn() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let session = raw::session(&bridge, &endpoint.server).await;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#;
    let headers = raw::usual(&endpoint.server, &[("mcp-session-id", &session)]);
    let stream = raw::send(&bridge, &raw::request("POST", "/mcp", &headers, body)).await;
    let call = called(&mut endpoint.news).await;
    drop(stream);
    assert!(matches!(soon(endpoint.news.recv()).await, Some(ToolNews::Withdrawn(id)) if id == call.id));
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_session_that_the_agent_ends_withdraws_its_calls() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let session = raw::session(&bridge, &endpoint.server).await;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#;
    let headers = raw::usual(&endpoint.server, &[("mcp-session-id", &session)]);
    let _stream = raw::send(&bridge, &raw::request("POST", "/mcp", &headers, body)).await;
    let call = called(&mut endpoint.news).await;
    assert_eq!(raw::status(&bridge, &raw::request("DELETE", "/mcp", &headers, "")).await, 202);
    assert!(matches!(soon(endpoint.news.recv()).await, Some(ToolNews::Withdrawn(id)) if id == call.id));
    bridge.shutdown().await;
}

#[tokio::test]
async fn names_are_understood_as_agents_write_them() {
    let bridge = bridge().await;
    let long = format!("tools.{}", "x".repeat(80));
    let mut endpoint = endpoint(&bridge, &["look", &long]);
    let agent = Agent::connect(&endpoint).await;
    let shown = agent.tools().await[1].clone();
    assert!(shown.len() + "mcp__gembridge__".len() <= 64, "{shown}");
    for (written, meant) in [
        ("mcp_gembridge_look", "look"),
        ("mcp__gembridge__mcp_gembridge_look", "look"),
        (shown.as_str(), long.as_str()),
        (&format!("gembridge_{shown}"), &long),
    ] {
        let waiting = agent.begin(written, json!({}));
        let call = called(&mut endpoint.news).await;
        assert_eq!(call.tool, named(meant), "{written}");
        call.reply.send(done(vec![])).unwrap();
        soon(waiting).await.unwrap();
    }
    let unknown = agent.call("mcp_other_look", json!({})).await;
    assert_eq!(unknown.is_error, Some(true));
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_call_for_which_there_is_no_room_is_refused_at_once() {
    let config = gembridge_tools::Config { news: 4, ..gembridge_tools::Config::default() };
    let bridge = gembridge_tools::ToolBridge::start(config).await.unwrap();
    let mut endpoint = endpoint(&bridge, &["look"]);
    let agent = Agent::connect(&endpoint).await;
    let mut waiting: Vec<_> = (0..2).map(|_| agent.begin("look", json!({}))).collect();
    let calls = [called(&mut endpoint.news).await, called(&mut endpoint.news).await];
    // Two permits are kept for what the two could still withdraw; two are free again.
    waiting.push(agent.begin("look", json!({})));
    let third = called(&mut endpoint.news).await;
    let refused = agent.call("look", json!({})).await;
    assert_eq!(refused.is_error, Some(true));
    assert!(text_of(&refused).contains("too many calls"), "{refused:?}");
    for call in calls.into_iter().chain([third]) {
        call.reply.send(done(vec![])).unwrap();
    }
    for waiting in waiting {
        assert_eq!(soon(waiting).await.unwrap().is_error, Some(false));
    }
    bridge.shutdown().await;
}

#[tokio::test]
async fn an_answer_in_the_form_asked_for_is_recorded_and_any_other_is_sent_back() {
    let bridge = bridge().await;
    let mut endpoint = bridge.open().unwrap();
    let schema = tool("", r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#).schema;
    let format = bridge.format(&FormatSpec { name: None, description: None, schema }).unwrap();
    drop(endpoint.list.offer(Offer { tools: [].into(), format: Some(format) }));
    let agent = Agent::connect(&endpoint).await;
    assert_eq!(agent.tools().await, ["structured_output"]);
    let wrong = agent.call("structured_output", json!({"n": "one"})).await;
    assert_eq!(wrong.is_error, Some(true));
    assert!(text_of(&wrong).contains("at /n"), "{wrong:?}");
    assert!(endpoint.news.try_recv().is_err(), "a wrong answer is not recorded");
    for n in [1, 2] {
        let right = agent.call("mcp_gembridge_structured_output", json!({"n": n})).await;
        assert_eq!(right.is_error, Some(false));
        match endpoint.news.try_recv() {
            Ok(ToolNews::Output(answer)) => assert_eq!(&*answer.0, format!(r#"{{"n":{n}}}"#).as_bytes()),
            other => panic!("{other:?}"),
        }
    }
    bridge.shutdown().await;
}
