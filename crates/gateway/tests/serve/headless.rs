//! An agent that runs a process for each turn, behind the APIs.

use gembridge_testkit::write_script;
use serde_json::json;

use crate::support::gateway::{Gateway, said};
use crate::support::home::Home;
use crate::support::websocket::Client;

/// Answers with the prompt, and notes its arguments.
fn gateway() -> Gateway {
    let home = Home::for_serving();
    let program = home.path("program");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {}/args\nread -r first\n\
         printf '{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"heard %s\"}}\\n' \"$first\"\n\
         printf '{{\"type\":\"result\",\"status\":\"success\",\"stats\":{{\"total_tokens\":3,\"input_tokens\":2,\"output_tokens\":1}}}}\\n'\n",
        home.folder().display()
    );
    write_script(&program, &script).unwrap();
    home.configure_serving(&format!("[agents.gemini]\ncommand = '{}'\ndriver = 'headless'\n", program.display()));
    let path = std::env::var("PATH").unwrap();
    home.serve_with(&["--agent", "gemini"], &[("PATH", &path)])
}

#[test]
fn a_conversation_goes_on_from_process_to_process() {
    let gateway = gateway();
    let first = gateway.complete_as(&gateway.key, &said("one"), &[]);
    assert_eq!((first.status, first.text().as_str()), (200, "heard one"), "{}", first.body);
    assert_eq!(first.json()["usage"]["total_tokens"], 3);
    let history = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "heard one" },
        { "role": "user", "content": "two" },
    ]);
    let second = gateway.complete_as(&gateway.key, &history, &[]);
    assert_eq!((second.status, second.text().as_str()), (200, "heard two"), "{}", second.body);
    assert_eq!(second.header("x-session-id"), first.header("x-session-id"));
    let args = std::fs::read_to_string(gateway.home.path("args")).unwrap();
    let resumed: Vec<_> = args.lines().map(|line| line.contains("--resume=")).collect();
    assert_eq!(resumed, [false, true], "{args}");
    let mut events = gateway.stream("three");
    let mut streamed = String::new();
    while let Some(event) = events.next().unwrap() {
        streamed.push_str(&event);
    }
    assert!(streamed.contains("heard three") && streamed.contains("[DONE]"), "{streamed}");
}

#[test]
fn keys_of_guests_are_refused_by_name() {
    let gateway = gateway();
    let guest = gateway.home.key("guest");
    let refused = gateway.complete_as(&guest, &said("one"), &[]);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("runs headless, which serves admin keys only"), "{}", refused.body);
}

#[test]
fn an_acp_client_has_a_session_of_it_over_the_websocket() {
    let gateway = gateway();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    for prompt in ["one", "two"] {
        let (messages, end) = client.turn(&session, prompt);
        let end = end.unwrap();
        assert_eq!((&end["stopReason"], &end["usage"]["totalTokens"]), (&json!("end_turn"), &json!(3)), "{end}");
        let told: Vec<_> = messages
            .iter()
            .filter(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
            .map(|message| message["params"]["update"]["content"]["text"].as_str().unwrap())
            .collect();
        assert_eq!(told.concat(), format!("heard {prompt}"), "{messages:#?}");
    }
    // Another client is told all of it.
    let mut other = Client::known(&gateway, "/acp");
    let id = other.request("session/load", &json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    let replayed = other.until(|message| message["id"] == id).iter().map(ToString::to_string).collect::<String>();
    assert!(replayed.contains("heard one") && replayed.contains("heard two"), "{replayed}");
    let args = std::fs::read_to_string(gateway.home.path("args")).unwrap();
    let resumed: Vec<_> = args.lines().map(|line| line.contains("--resume=")).collect();
    assert_eq!(resumed, [false, true], "{args}");
}
