//! An agent that is an A2A server at an address: here another gateway, with the fake agent behind it.

use serde_json::json;

use crate::support::gateway::{Gateway, said};
use crate::support::home::Home;

/// The gateway behind, and the one in front of it.
fn gateways() -> (Gateway, Gateway) {
    let behind = Home::for_serving().with_fake(&[], "").serve_fake();
    let home = Home::for_serving();
    let url = format!("http://{}", behind.address);
    home.configure_serving(&format!("[agents.other]\nurl = '{url}'\nkey_variable = 'OTHER_KEY'\n"));
    let front = home.serve_with(&["--agent", "other"], &[("OTHER_KEY", &behind.key)]);
    (behind, front)
}

#[test]
fn a_conversation_over_the_openai_api_is_one_conversation_of_the_server() {
    let (behind, front) = gateways();
    let first = front.complete_as(&front.key, &said("say one"), &[]);
    assert_eq!((first.status, first.text().as_str()), (200, "one"), "{}", first.body);
    let history = json!([
        { "role": "user", "content": "say one" },
        { "role": "assistant", "content": "one" },
        { "role": "user", "content": "say two" },
    ]);
    let second = front.complete_as(&front.key, &history, &[]);
    assert_eq!((second.status, second.text().as_str()), (200, "two"), "{}", second.body);
    assert_eq!(second.header("x-session-id"), first.header("x-session-id"));
    let tasks = behind.get("/a2a/v1/tasks").json();
    assert_eq!(tasks["totalSize"], 1, "{tasks}");
    let mut events = front.stream("say three");
    let mut streamed = String::new();
    while let Some(event) = events.next().unwrap() {
        streamed.push_str(&event);
    }
    assert!(streamed.contains("three") && streamed.contains("[DONE]"), "{streamed}");
}

#[test]
fn what_the_server_answers_with_an_error_is_told_and_guests_are_refused() {
    let (behind, front) = gateways();
    let guest = front.home.key("guest");
    let refused = front.complete_as(&guest, &said("say one"), &[]);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("is an A2A server of its operator"), "{}", refused.body);
    drop(behind);
    let failed = front.complete("say one");
    assert_eq!(failed.status, 503, "{}", failed.body);
    assert!(failed.body.contains("cannot be reached at"), "{}", failed.body);
}

#[test]
fn the_doctor_and_the_list_of_agents_show_the_address() {
    let behind = Home::for_serving().serve();
    let home = Home::for_serving();
    let url = format!("http://{}", behind.address);
    home.configure_serving(&format!("[agents.other]\nurl = '{url}'\n"));
    let listed = home.stdout_of(&["agents", "--json"]);
    assert!(listed.contains(&url) && listed.contains("url of the settings"), "{listed}");
    let doctor = home.run(&["doctor", "--agent", "other"]);
    assert!(doctor.stdout.contains("answered the request for its card"), "{}{}", doctor.stdout, doctor.stderr);
}
