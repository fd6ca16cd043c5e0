//! Modes in which an agent no longer asks, and tools of its own: neither is for guests.

use serde_json::{Value, json};

use crate::server::{Agent, TestServer, calling, prompted};
use crate::support::gateway::said;
use crate::support::websocket::Client;

/// The modes of this agent in which it does more than answer and ask.
fn privileged(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["acceptEdits", "bypassPermissions", "auto", "dontAsk"],
        Agent::Codex => &["workspace-write", "agent-full-access", "agent"],
        Agent::OpenCode => &[],
        Agent::Gemini => &["autoEdit", "yolo"],
        Agent::Qwen => &["auto-edit", "yolo", "auto"],
    }
}

/// Calls of its own tools that write a file or read one.
fn own_tools(agent: Agent, written: &str, read: &str) -> Vec<Value> {
    let shell = format!("cp '{read}' '{written}'; cat '{read}'");
    match agent {
        Agent::Claude => vec![
            json!({ "name": "Write", "args": { "file_path": written, "content": "words" } }),
            json!({ "name": "Bash", "args": { "command": shell, "description": "copies" } }),
            json!({ "name": "Read", "args": { "file_path": read } }),
        ],
        Agent::Codex => vec![json!({ "name": "exec_command", "args": { "cmd": shell } })],
        Agent::OpenCode => vec![
            json!({ "name": "write", "args": { "filePath": written, "content": "words" } }),
            json!({ "name": "bash", "args": { "command": shell, "description": "copies" } }),
            json!({ "name": "read", "args": { "filePath": read } }),
        ],
        Agent::Gemini | Agent::Qwen => vec![
            json!({ "name": "write_file", "args": { "file_path": written, "content": "words" } }),
            json!({ "name": "run_shell_command", "args": { "command": shell, "description": "copies" } }),
            json!({ "name": "read_file", "args": { "file_path": read, "absolute_path": read } }),
        ],
    }
}

/// The ids of the options that stand for the mode, and all values of each, as the agent lists them.
fn mode_options(opened: &Value) -> Vec<(String, Vec<String>)> {
    let options = opened["configOptions"].as_array().cloned().unwrap_or_default().into_iter();
    let of_mode = options.filter(|option| option["category"] == "mode");
    let values = |option: &Value| {
        let options = option["options"].as_array().into_iter().flatten();
        options.filter_map(|option| option["value"].as_str().map(str::to_owned)).collect()
    };
    of_mode.map(|option| (option["id"].as_str().unwrap().to_owned(), values(&option))).collect()
}

/// Tries to set every privileged mode in every way. Gives what was taken.
fn set_privileged(guest: &mut Client, agent: Agent, opened: &Value) -> Vec<String> {
    let session = &opened["sessionId"];
    let mut taken = Vec::new();
    for mode in privileged(agent) {
        let mut options: Vec<_> = mode_options(opened).into_iter().map(|(id, _)| id).collect();
        options.extend(["mode".to_owned(), "permissionMode".to_owned()]);
        if guest.call("session/set_mode", &json!({ "sessionId": session, "modeId": mode })).is_ok() {
            taken.push(format!("mode {mode}"));
        }
        for id in options {
            let params = json!({ "sessionId": session, "configId": id, "value": mode });
            if guest.call("session/set_config_option", &params).is_ok() {
                taken.push(format!("option {id} {mode}"));
            }
        }
    }
    taken
}

fn neither_modes_nor_tools_of(agent: Agent) {
    let server = TestServer::new(agent);
    let written = server.gateway.home.path("written");
    let mut guest = server.guest();
    let opened = guest.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap();
    let session = opened["sessionId"].as_str().unwrap();
    guest.turn(session, "hello").1.unwrap();
    let taken = set_privileged(&mut guest, agent, &opened);
    let mut told = String::new();
    for call in own_tools(agent, written.to_str().unwrap(), server.key_file().to_str().unwrap()) {
        let text = json!([{ "type": "text", "text": calling(&call) }]);
        told.push_str(&prompted(&mut guest, session, &text).0);
    }
    assert!(!written.exists(), "{agent:?} wrote a file for a guest, in the modes {taken:?}");
    told.push_str(&server.asked().concat());
    assert!(!told.contains(&server.gateway.key), "{agent:?} read the operator's key for a guest");
    assert!(taken.is_empty(), "{agent:?} took {taken:?}");
}

#[test]
fn f3_a_guest_sets_no_privileged_mode_and_runs_no_tool_of_claude_code() {
    neither_modes_nor_tools_of(Agent::Claude);
}

#[test]
fn f3_a_guest_sets_no_privileged_mode_and_runs_no_tool_of_opencode() {
    neither_modes_nor_tools_of(Agent::OpenCode);
}

#[test]
fn f3_a_guest_sets_no_privileged_mode_and_runs_no_tool_of_the_gemini_cli() {
    neither_modes_nor_tools_of(Agent::Gemini);
}

/// Its shell cannot be turned off.
#[test]
fn f3_codex_serves_no_guest_and_says_why_over_either_api() {
    let server = TestServer::new(Agent::Codex);
    let (written, key) = (server.gateway.home.path("written"), server.key_file());
    let [call] = &own_tools(Agent::Codex, written.to_str().unwrap(), key.to_str().unwrap())[..] else { unreachable!() };
    let reading = calling(call);

    let mut guest = server.guest();
    let opened = guest.call("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
    if let Ok(opened) = &opened {
        let session = opened["sessionId"].as_str().unwrap();
        let before = prompted(&mut guest, session, &json!([{ "type": "text", "text": reading }])).0;
        let leaked = [before, server.asked().concat()].concat().contains(&server.gateway.key);
        let taken = set_privileged(&mut guest, Agent::Codex, opened);
        prompted(&mut guest, session, &json!([{ "type": "text", "text": reading }]));
        panic!("it was served: leaked {leaked}, took {taken:?}, wrote {}", written.exists());
    }
    let refusal = opened.unwrap_err();
    assert!(refusal["message"].as_str().unwrap().contains("tools"), "{refusal}");

    let answer = server.gateway.complete_as(&server.guest_key, &said(&reading), &[]);
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{}", answer.body);
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("tools"), "{}", answer.body);
    assert_eq!(server.model_calls(), 0, "the model was not asked");

    let answer = server.gateway.complete_as(&server.gateway.key, &said("hello"), &[]);
    assert_eq!((answer.status, answer.text().as_str()), (200, "You said: hello"), "the operator is served");
}
