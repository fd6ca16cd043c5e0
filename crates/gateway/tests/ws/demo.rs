//! Everyday use, with the demo agent.

use serde_json::json;

use crate::support::home::Home;
use crate::support::messages::{last_seq, said};
use crate::support::websocket::{Client, hello};

#[test]
fn a_conversation_with_the_demo_agent_streams_and_remembers() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::connect(&gateway, "/acp");
    let greeting = client.call("initialize", &hello()).unwrap();
    assert_eq!(greeting["_meta"]["gembridge"]["demo"], true);
    let session = client.new_session();
    let (messages, end) = client.turn(&session, "hello there");
    assert!(said(&messages).contains("hello there"));
    assert_eq!(end.unwrap()["stopReason"], "end_turn");
    let (messages, _) = client.turn(&session, "count");
    assert!(said(&messages).contains('2'), "{}", said(&messages));
}

#[test]
fn a_permission_of_the_demo_agent_is_answered_from_any_client() {
    let gateway = Home::for_serving().serve();
    let mut one = Client::known(&gateway, "/acp");
    let session = one.new_session();
    let mut two = Client::known(&gateway, &format!("/acp?session={session}"));
    two.named("_gembridge/replay_ended");
    one.prompt(&session, "permission rm -r build");
    let request = two.named("session/request_permission");
    let allow = request["params"]["options"].as_array().unwrap().iter().find(|option| option["kind"] == "allow_once");
    let option = allow.unwrap()["optionId"].clone();
    let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
    two.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    assert_eq!(one.named("_gembridge/request_resolved")["params"]["by"], "client");
    assert_eq!(one.named("_gembridge/turn_ended")["params"]["outcome"], "finished");
}

#[test]
fn cancel_ends_a_turn_of_the_demo_agent_and_the_next_one_runs() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    let id = client.prompt(&session, "wait");
    client.named("_gembridge/turn_started");
    client.notify("session/cancel", &json!({ "sessionId": session }));
    let answer = client.until(|message| message["id"] == id).pop().unwrap();
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(client.turn(&session, "hello").1.unwrap()["stopReason"], "end_turn");
}

#[test]
fn a_session_of_the_openai_face_is_watched_as_it_runs_and_cancelled() {
    let gateway = Home::for_serving().serve();
    let mut watcher = Client::known(&gateway, "/acp");
    watcher.call("_gembridge/watch_sessions", &json!({})).unwrap();
    let stream = gateway.stream("wait");
    let shown = watcher.until(|message| {
        message["method"] == "_gembridge/session_changed" && message["params"]["session"]["state"] == "running"
    });
    let session = shown.last().unwrap()["params"]["session"]["sessionId"].as_str().unwrap().to_owned();
    watcher.call("_gembridge/attach", &json!({ "sessionId": session })).unwrap();
    watcher.named("_gembridge/replay_ended");
    watcher.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(watcher.named("_gembridge/turn_ended")["params"]["outcome"], "cancelled");
    drop(stream);
}

#[test]
fn a_session_outlives_its_socket_and_the_gateway() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    let (messages, _) = client.turn(&session, "remember the geese");
    let last = last_seq(&messages);
    drop(client);
    // The same home, after a kill without a goodbye.
    let mut gateway = gateway;
    let home = std::mem::replace(&mut gateway.home, Home::for_serving());
    drop(gateway);
    let gateway = home.serve();
    let mut back = Client::known(&gateway, &format!("/acp?session={session}&limit=1"));
    let shown = back.until(|message| message["method"] == "_gembridge/replay_ended");
    assert!(said(&shown).contains("remember the geese"));
    assert_eq!(shown.last().unwrap()["params"]["last"], last);
    let (messages, end) = back.turn(&session, "and now?");
    assert_eq!(end.unwrap()["stopReason"], "end_turn");
    assert!(last_seq(&messages) > last);
    let listed = back.call("session/list", &json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session);
}

#[test]
fn a_long_answer_is_read_on_by_one_who_lost_the_connection() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    client.prompt(&session, "chunks 5000 size 20");
    let mut heard = String::new();
    let mut last = 0;
    for _ in 0..5 {
        let mut count = 0;
        let messages = client.until(|_| {
            count += 1;
            count == 300
        });
        heard.push_str(&said(&messages));
        last = last_seq(&messages).max(last);
        drop(client);
        client = Client::known(&gateway, &format!("/acp?session={session}&after={last}"));
    }
    let messages = client.until(|message| message["method"] == "_gembridge/turn_ended");
    heard.push_str(&said(&messages));
    drop(client);
    let mut whole = Client::known(&gateway, &format!("/acp?session={session}"));
    let all = whole.until(|message| message["method"] == "_gembridge/replay_ended");
    assert_eq!(heard, said(&all));
    assert!(heard.len() >= 5_000 * 20);
}

#[test]
fn a_form_of_the_agent_goes_to_a_client_that_fills_in_forms() {
    let gateway = Home::for_serving().serve();
    let mut blind = Client::known(&gateway, "/acp");
    let session = blind.new_session();
    let mut able = Client::connect(&gateway, &format!("/acp?session={session}"));
    let mut able_hello = hello();
    able_hello["clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    able.call("initialize", &able_hello).unwrap();
    able.named("_gembridge/replay_ended");
    let id = blind.prompt(&session, "elicit");
    let form = able.named("elicitation/create");
    assert_eq!(form["params"]["sessionId"], session);
    let properties = form["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let content: serde_json::Map<_, _> = properties.keys().map(|name| (name.clone(), json!("blue"))).collect();
    able.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": { "action": "accept", "content": content } }));
    let messages = blind.until(|message| message["id"] == id);
    assert!(messages.iter().all(|message| message["method"] != "elicitation/create"), "it could not have answered");
    assert!(said(&messages).contains("blue"), "{}", said(&messages));
}

#[test]
fn a_session_that_waits_for_a_tool_of_its_client_is_shown_waiting() {
    let gateway = Home::for_serving().serve();
    let mut watcher = Client::known(&gateway, "/acp");
    watcher.call("_gembridge/watch_sessions", &json!({})).unwrap();
    let tool = json!({ "type": "function", "function": { "name": "pick", "parameters": { "type": "object" } } });
    let said = json!({
        "model": "demo", "tools": [tool],
        "messages": [{ "role": "user", "content": r#"call pick {"n":1}"# }],
    });
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = gateway.ask("POST", "/v1/chat/completions", &headers, Some(&said.to_string()));
    assert_eq!(answer.json()["choices"][0]["finish_reason"], "tool_calls");
    let waiting = watcher
        .until(|message| {
            message["method"] == "_gembridge/session_changed" && message["params"]["session"]["state"] == "waiting"
        })
        .pop()
        .unwrap();
    let session = waiting["params"]["session"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(waiting["params"]["session"]["openRequests"], 0, "nobody is asked for permission");
    assert_eq!(gateway.ask("GET", "/admin/status", &headers, None).json()["sessions"]["waiting"], 1);
    watcher.call("_gembridge/attach", &json!({ "sessionId": session })).unwrap();
    let shown = watcher.until(|message| message["method"] == "_gembridge/replay_ended");
    let call = shown.iter().find(|message| message["params"]["_meta"]["gembridge"]["clientTool"] == true).unwrap();
    assert_eq!(call["params"]["update"]["title"], "pick");
    watcher.notify("session/cancel", &json!({ "sessionId": session }));
    watcher.until(|message| {
        message["method"] == "_gembridge/session_changed" && message["params"]["session"]["state"] == "idle"
    });
}

#[test]
fn r1_a_question_that_was_open_when_the_gateway_was_killed_is_settled_when_it_is_back() {
    let mut gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    client.prompt(&session, "permission rm -r build");
    let request = client.named("session/request_permission");
    let ask = &request["params"]["_meta"]["gembridge"];
    // The same home, after a kill without a goodbye.
    let home = std::mem::replace(&mut gateway.home, Home::for_serving());
    drop(gateway);
    let gateway = home.serve();
    let mut back = Client::known(&gateway, &format!("/acp?session={session}&after={}", ask["seq"]));
    let shown = back.until(|message| message["method"] == "_gembridge/replay_ended");
    let resolved = shown.iter().find(|message| message["method"] == "_gembridge/request_resolved").unwrap();
    assert_eq!((&resolved["params"]["ask"], &resolved["params"]["by"]), (&ask["ask"], &json!("cancel")));
    let ended = shown.iter().find(|message| message["method"] == "_gembridge/turn_ended").unwrap();
    assert_eq!(ended["params"]["outcome"], "interrupted");
    let error = back.call("session/no_such_thing", &json!({ "sessionId": session })).unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("method_not_found")));
}

#[test]
fn tokens_of_a_turn_over_websocket_are_in_the_metrics() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    let (_, result) = client.turn(&session, "usage");
    let used = result.unwrap()["usage"].clone();
    let metrics = gateway.get("/metrics").body;
    for (kind, tokens) in [("input", &used["inputTokens"]), ("output", &used["outputTokens"])] {
        // Labels come in any order.
        let line = metrics.lines().find(|line| {
            let is_it = line.starts_with("gembridge_tokens_total{") && line.contains("model=\"demo\"");
            is_it && line.contains(&format!("kind=\"{kind}\""))
        });
        let counted = line.and_then(|line| line.rsplit(' ').next()).and_then(|counted| counted.parse::<u64>().ok());
        assert!(
            tokens.as_u64() > Some(0) && counted == tokens.as_u64(),
            "{kind}: {line:?}, and the client heard {used}"
        );
    }
}
