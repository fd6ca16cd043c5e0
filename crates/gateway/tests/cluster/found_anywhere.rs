//! Whatever names a session finds it through any gateway, and the agent that has it answers.

use serde_json::{Value, json};

use crate::gateways::{SECRET, TOKEN, Talk, Three, session};
use crate::support::gateway::{Gateway, post, said};
use crate::support::http::{End, Events};
use crate::support::websocket::Client;

fn post_json(gateway: &Gateway, path: &str, body: &Value) -> Value {
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = gateway.ask("POST", path, &headers, Some(&body.to_string()));
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

#[test]
fn a_session_is_found_by_its_id_through_every_gateway() {
    let three = Three::start();
    let [a, b, c] = &three.gateways[..] else { unreachable!() };
    let first = a.complete("count");
    let id = session(&first);
    let pin = [("x-session-id", id.as_str())];
    for (gateway, turn) in [(b, 2), (c, 3), (a, 4), (b, 5)] {
        let next = gateway.complete_as(&gateway.key, &said("count"), &pin);
        assert_eq!(next.text(), format!("This is turn {turn} of the session."), "{}", next.body);
        assert_eq!(session(&next), id);
        assert_eq!(next.headers.iter().filter(|(name, _)| name == "x-request-id").count(), 1);
    }
    // A stream comes through as it is said.
    let mut connection = c.connect();
    post(&mut connection, &c.key, &json!({ "model": "default", "stream": true, "messages": said("count") }), &pin);
    let mut events = Events::begin(connection).unwrap();
    assert_eq!((events.status, events.session.as_deref()), (200, Some(id.as_str())));
    assert_eq!(events.rest(), ("This is turn 6 of the session.".to_owned(), End::Done));
    // One that nobody has is not found anywhere.
    let unknown = "0190a6f0-0000-7000-8000-000000000000";
    let nowhere = b.complete_as(&b.key, &said("count"), &[("x-session-id", unknown)]);
    assert_eq!(nowhere.status, 404, "{}", nowhere.body);
}

#[test]
fn twenty_turns_of_a_resent_history_are_one_session_wherever_they_land() {
    let three = Three::start();
    let mut talk = Talk::default();
    let mut sessions = Vec::new();
    for turn in 1..=20 {
        let answer = talk.say(&three.gateways[turn % 3], "count");
        assert_eq!(answer.text(), format!("This is turn {turn} of the session."));
        sessions.push(session(&answer));
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    // Neither what was said nor a key nor the secret is in Redis.
    let keys = three.redis.ask("KEYS *");
    let names: Vec<_> = keys.lines().filter(|line| line.starts_with("gembridge:")).collect();
    assert!(names.iter().any(|name| name.starts_with("gembridge:history:")), "{names:?}");
    for name in names {
        let held = three.redis.ask(&format!("DUMP {name}"));
        for canary in ["count", "turn", TOKEN, SECRET, "bearer"] {
            assert!(!name.contains(canary) && !held.contains(canary), "{name} holds `{canary}`");
        }
    }
}

#[test]
fn the_result_of_a_call_reaches_its_turn_through_another_gateway() {
    let three = Three::start();
    let [a, b, c] = &three.gateways[..] else { unreachable!() };
    let tool = json!({ "type": "function", "function": { "name": "pick", "parameters": { "type": "object" } } });
    let mut messages = vec![json!({ "role": "user", "content": r#"rounds 2 pick {"n":7}"# })];
    let mut sessions = Vec::new();
    for gateway in [a, b, c] {
        let body = json!({ "model": "default", "messages": messages, "tools": [tool] });
        let mut connection = gateway.connect();
        post(&mut connection, &gateway.key, &body, &[]);
        let answer = connection.answer().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        sessions.push(session(&answer));
        let message = answer.json()["choices"][0]["message"].clone();
        match message["tool_calls"][0]["id"].as_str() {
            Some(id) => {
                let result = json!({ "role": "tool", "tool_call_id": id, "content": "chosen" });
                messages.extend([message.clone(), result]);
            }
            None => assert!(answer.text().contains("2 rounds, and in the last one: Tool `pick` answered: chosen")),
        }
    }
    sessions.dedup();
    assert_eq!((sessions.len(), messages.len()), (1, 5), "{messages:?}");
}

#[test]
fn a_response_and_a_task_go_on_through_another_gateway() {
    let three = Three::start();
    let [a, b, c] = &three.gateways[..] else { unreachable!() };
    let first = post_json(a, "/v1/responses", &json!({ "model": "default", "input": "count" }));
    let id = first["id"].as_str().unwrap();
    let next = json!({ "model": "default", "input": "count", "previous_response_id": id });
    let next = post_json(b, "/v1/responses", &next);
    assert_eq!(next["output"][0]["content"][0]["text"], "This is turn 2 of the session.", "{next}");
    let read = c.get(&format!("/v1/responses/{id}"));
    assert_eq!((read.status, &read.json()["id"]), (200, &json!(id)), "{}", read.body);

    let call = |gateway: &Gateway, method: &str, params: Value| {
        post_json(gateway, "/a2a", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    };
    let message = json!({ "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "count" }] });
    let sent = call(a, "message/send", json!({ "message": message }));
    let task = sent["result"]["id"].as_str().expect("a task").to_owned();
    for gateway in [b, c] {
        let read = call(gateway, "tasks/get", json!({ "id": task }));
        assert_eq!(read["result"]["id"], task.as_str(), "{read}");
    }
    let mut again = message;
    again["taskId"] = json!(task);
    again["messageId"] = json!("n");
    let answered = call(c, "message/send", json!({ "message": again }));
    assert!(answered.to_string().contains("This is turn 2 of the session."), "{answered}");
    let over_http = b.get(&format!("/a2a/v1/tasks/{task}"));
    assert_eq!((over_http.status, &over_http.json()["id"]), (200, &json!(task)), "{}", over_http.body);
}

#[test]
fn an_acp_client_comes_back_to_its_session_through_another_gateway() {
    let three = Three::start();
    let [a, b, _] = &three.gateways[..] else { unreachable!() };
    let mut client = Client::known(a, "/acp");
    let id = client.new_session();
    client.turn(&id, "count").1.unwrap();
    drop(client);
    let mut client = Client::known(b, &format!("/acp?session={id}"));
    let (messages, end) = client.turn(&id, "count");
    end.unwrap();
    let pieces = messages.iter().filter_map(|message| message["params"]["update"]["content"]["text"].as_str());
    let told: String = pieces.collect();
    assert!(told.contains("This is turn 2 of the session."), "{messages:#?}");
}

#[test]
fn s7_a_ticket_opens_one_websocket_at_any_gateway() {
    let three = Three::start();
    let [a, b, c] = &three.gateways[..] else { unreachable!() };
    for (gateway, again) in [(b, c), (a, b)] {
        let ticket = post_json(a, "/acp/ticket", &json!({}))["ticket"].as_str().unwrap().to_owned();
        let path = format!("/acp?ticket={ticket}");
        assert!(Client::connect_to(gateway.address, "", &path).is_ok());
        assert_eq!(Client::connect_to(again.address, "", &path).err(), Some(401), "it is used up");
        assert_eq!(Client::connect_to(a.address, "", &path).err(), Some(401));
    }
}

#[test]
fn s7_a_request_that_says_it_was_passed_on_is_refused_without_the_clusters_signature() {
    let three = Three::start();
    let forged = [("x-gembridge-forwarded", "1 0 00 127.0.0.1 00")];
    let answer = three.gateways[0].complete_as(TOKEN, &said("count"), &forged);
    assert_eq!(answer.status, 403, "{}", answer.body);
}
