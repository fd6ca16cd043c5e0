//! The life of sessions, their settings, and what is refused.

use serde_json::{Value, json};

use crate::agent::{Agent, chunk_text, kind};

#[test]
fn it_introduces_itself_with_what_it_can_do() {
    let mut agent = Agent::spawn(&[]);
    let hello = agent.call("initialize", json!({"protocolVersion": 99})).unwrap();
    assert_eq!(hello["protocolVersion"], 1);
    assert_eq!(hello["agentInfo"]["name"], "gembridge-demo");
    let can = &hello["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert_eq!(can["promptCapabilities"], json!({"image": true, "audio": true, "embeddedContext": true}));
    assert_eq!(can["mcpCapabilities"]["http"], true);
    assert_eq!(can["sessionCapabilities"], json!({"list": {}, "resume": {}, "close": {}, "delete": {}}));
    assert_eq!(agent.call("authenticate", json!({"methodId": "none"})).unwrap(), json!({}));
}

#[test]
fn a_slow_start_is_answered_in_the_end() {
    let started = std::time::Instant::now();
    let mut agent = Agent::start_with(&["--start-delay-ms", "300"], json!({}));
    assert!(started.elapsed().as_millis() >= 300);
    let session = agent.session();
    assert_eq!(agent.prompt(&session, "hi").stop_reason(), "end_turn");
}

#[test]
fn words_come_at_the_pace_that_was_asked_for() {
    let mut agent = Agent::start_with(&["--token-delay-ms", "20"], json!({}));
    let session = agent.session();
    let started = std::time::Instant::now();
    let turn = agent.prompt(&session, "count");
    assert_eq!(turn.text(), "This is turn 1 of the session.");
    assert!(started.elapsed().as_millis() >= 7 * 20);
}

#[test]
fn a_new_session_names_modes_models_options_and_then_commands() {
    let mut agent = Agent::start();
    let opened = agent.call("session/new", json!({"cwd": "/w", "mcpServers": []})).unwrap();
    let ids = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&opened["modes"]["availableModes"], "id"), ["default", "autoEdit", "yolo", "plan"]);
    assert_eq!(ids(&opened["models"]["availableModels"], "modelId"), ["demo-echo", "demo-story"]);
    assert_eq!(ids(&opened["configOptions"][0]["options"], "value"), ["demo-echo", "demo-story"]);
    let commands = agent.next();
    assert_eq!(kind(&commands), "available_commands_update");
    let names = ids(&commands["params"]["update"]["availableCommands"], "name");
    assert!(names.contains(&"help".to_owned()) && names.contains(&"permission".to_owned()));
}

#[test]
fn session_ids_differ_between_processes() {
    let (mut one, mut other) = (Agent::start(), Agent::start());
    assert_ne!(one.session(), other.session());
    assert_ne!(one.session(), one.session());
}

#[test]
fn a_session_remembers_only_what_was_sent_to_it() {
    let mut agent = Agent::start();
    let (session, other) = (agent.session(), agent.session());
    agent.prompt(&session, "first question");
    agent.prompt(&other, "elsewhere");
    agent.prompt(&session, "second question");
    assert_eq!(agent.prompt(&session, "history").text(), "1. first question\n2. second question\n");
    assert!(agent.prompt(&session, "count").text().contains("turn 4 "));
}

#[test]
fn load_replays_the_conversation_and_resume_does_not() {
    let mut agent = Agent::start();
    let session = agent.session();
    let said = agent.prompt(&session, "remember me").text();
    agent.call("session/close", json!({"sessionId": session})).unwrap();
    let closed = agent.prompt(&session, "hi").outcome.unwrap_err();
    assert!(closed["message"].as_str().unwrap().contains("is closed"), "{closed}");

    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    let id = agent.send("session/load", params.clone());
    let loaded = agent.finish(id, |_| json!({}));
    assert_eq!(loaded.kinds(), ["user_message_chunk", "agent_message_chunk"]);
    assert_eq!(loaded.text_of("user_message_chunk"), "remember me");
    assert_eq!(loaded.text(), said);
    assert!(loaded.outcome.unwrap()["modes"].is_object());
    assert_eq!(kind(&agent.next()), "available_commands_update");

    let id = agent.send("session/resume", params);
    assert!(agent.finish(id, |_| json!({})).updates.is_empty());
    assert_eq!(agent.prompt(&session, "history").text(), "1. remember me\n");
}

#[test]
fn sessions_are_listed_in_pages_until_deleted() {
    let mut agent = Agent::start();
    let all: Vec<_> = (0..150).map(|_| agent.session()).collect();
    agent.prompt(&all[0], "a title");
    let first = agent.call("session/list", json!({"cwd": "/somewhere"})).unwrap();
    let second = agent.call("session/list", json!({"cursor": first["nextCursor"]})).unwrap();
    let ids = |page: &Value| -> Vec<String> {
        page["sessions"].as_array().unwrap().iter().map(|s| s["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), all);
    assert_eq!(first["sessions"][0]["title"], "a title");
    assert!(second.get("nextCursor").is_none());

    agent.call("session/delete", json!({"sessionId": all[0]})).unwrap();
    let listed = agent.call("session/list", json!({})).unwrap();
    assert!(!ids(&listed).contains(&all[0]));
    assert_eq!(agent.prompt(&all[0], "hi").outcome.unwrap_err()["code"], -32002);
    assert_eq!(ids(&agent.call("session/list", json!({"cwd": "/elsewhere"})).unwrap()), Vec::<String>::new());
}

#[test]
fn modes_and_models_are_set_and_told() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    let turn = agent.finish(id, |_| json!({}));
    assert_eq!(turn.updates, [json!({"sessionUpdate": "current_mode_update", "currentModeId": "yolo"})]);
    assert_eq!(turn.outcome.unwrap(), json!({}));

    let id = agent.send("session/set_model", json!({"sessionId": session, "modelId": "demo-story"}));
    let turn = agent.finish(id, |_| json!({}));
    assert_eq!(turn.updates[0]["configOptions"][0]["currentValue"], "demo-story");
    assert!(agent.prompt(&session, "anything").text().contains("5. "));

    let option = json!({"sessionId": session, "configId": "model", "value": "demo-echo"});
    let options = agent.call("session/set_config_option", option).unwrap();
    assert_eq!(options["configOptions"][0]["currentValue"], "demo-echo");
    assert!(agent.prompt(&session, "anything").text().contains("anything"));

    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "turbo"})),
        ("session/set_model", json!({"sessionId": session, "modelId": "gpt"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "colour", "value": "red"})),
    ] {
        assert_eq!(agent.call(method, params).unwrap_err()["code"], -32602, "{method}");
    }
}

#[test]
fn what_it_does_not_understand_is_refused_with_the_right_code() {
    let mut agent = Agent::start();
    let refused = agent.call("session/fly", json!({})).unwrap_err();
    assert_eq!(refused["code"], -32601);
    assert!(refused["message"].as_str().unwrap().contains("session/fly"));
    assert_eq!(agent.call("session/new", json!({"cwd": "/w"})).unwrap_err()["code"], -32602);
    assert_eq!(agent.call("session/new", json!({"cwd": "w", "mcpServers": []})).unwrap_err()["code"], -32602);
    assert_eq!(agent.prompt("demo-0-1", "hi").outcome.unwrap_err()["code"], -32002);
    for (line, code) in [("{not json", -32700), ("[1,2]", -32600), ("\"text\"", -32600), ("{}", -32600)] {
        agent.write(line);
        let answer = agent.next();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    agent.write("");
    agent.notify("session/unheard_of", json!({}));
    agent.notify("session/cancel", json!({"sessionId": "nobody"}));
    assert_eq!(agent.call("_demo/echo", json!({"a": [1]})).unwrap(), json!({"a": [1]}));
    assert_eq!(agent.call("_other/echo", json!({})).unwrap_err()["code"], -32601);
}

#[test]
fn a_text_id_comes_back_as_it_was() {
    let mut agent = Agent::start();
    agent.write(r#"{"jsonrpc":"2.0","id":"a\u0041-1","method":"_demo/ping"}"#);
    assert_eq!(agent.next(), json!({"jsonrpc": "2.0", "id": "aA-1", "result": {}}));
}

#[test]
fn a_busy_session_refuses_a_second_prompt_and_goes_on() {
    let mut agent = Agent::start();
    let session = agent.session();
    let first = agent.send_prompt(&session, "wait");
    let refused = agent.prompt(&session, "hi").outcome.unwrap_err();
    assert_eq!(refused["code"], -32600);
    assert!(refused["message"].as_str().unwrap().contains("busy"));
    agent.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(agent.finish(first, |_| json!({})).stop_reason(), "cancelled");
}

#[test]
fn sessions_of_one_process_stream_at_the_same_time() {
    let mut agent = Agent::start();
    let sessions = [agent.session(), agent.session()];
    for session in &sessions {
        agent.send_prompt(session, "wait");
    }
    // Both turns are open; a third one comes and goes between them.
    let third = agent.session();
    assert_eq!(agent.prompt(&third, "hi").stop_reason(), "end_turn");
    for session in &sessions {
        agent.notify("session/cancel", json!({"sessionId": session}));
        let answer = agent.next_where(|message| message.get("result").is_some());
        assert_eq!(answer["result"]["stopReason"], "cancelled");
    }

    let ids = sessions.clone().map(|session| agent.send_prompt(&session, "slow 50 20"));
    let (mut order, mut open) = (Vec::new(), ids.to_vec());
    while !open.is_empty() {
        let message = agent.next();
        open.retain(|id| message["id"] != *id);
        if !chunk_text(&message).is_empty() {
            order.push(message["params"]["sessionId"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(order.len(), 100);
    let first_of_second = order.iter().position(|session| *session == sessions[1]).unwrap();
    let last_of_first = order.iter().rposition(|session| *session == sessions[0]).unwrap();
    assert!(first_of_second < last_of_first, "one session waited for the other: {order:?}");
}

#[test]
fn it_ends_when_its_input_closes_even_in_the_middle_of_a_turn() {
    let mut agent = Agent::start();
    let session = agent.session();
    agent.send_prompt(&session, "slow 100000 1000");
    agent.next();
    assert!(agent.close().success());
}

#[test]
fn help_names_the_flags_and_the_words() {
    let mut agent = Agent::spawn(&["--help"]);
    let help = agent.output();
    assert!(help.contains("--token-delay-ms N") && help.contains("answer-with <tool> [json]"), "{help}");
    assert!(agent.wait().success());
}

#[test]
fn a_bad_argument_ends_it_at_once() {
    let mut agent = Agent::spawn(&["--no-such-thing"]);
    assert_eq!(agent.output(), "");
    assert_eq!(agent.wait().code(), Some(2));
}
