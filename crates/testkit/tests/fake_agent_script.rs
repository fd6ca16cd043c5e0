//! The script in a prompt, the session methods and the quirks of the fake agent.

use gembridge_testkit::raw_acp::{Exchange, RawAcp};
use serde_json::{Value, json};

fn ready(arguments: &[&str]) -> (RawAcp, String) {
    let mut agent = RawAcp::fake(arguments);
    agent.initialize();
    let session = agent.open_session("/folder");
    (agent, session)
}

fn run(prompt: &str, answer: impl FnMut(&Value) -> Value) -> Exchange {
    let (mut agent, session) = ready(&[]);
    let id = agent.start_prompt(&session, prompt);
    agent.finish(id, answer)
}

fn tell(prompt: &str) -> Exchange {
    run(prompt, |message| panic!("the agent asked {message}"))
}

fn choose(option: &str) -> impl FnMut(&Value) -> Value {
    move |_| json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn kinds(exchange: &Exchange) -> Vec<String> {
    let updates = exchange.before.iter().filter_map(|message| message["params"]["update"]["sessionUpdate"].as_str());
    updates.filter(|kind| *kind != "available_commands_update").map(str::to_owned).collect()
}

#[test]
fn text_steps_are_said() {
    let table = [
        ("just words", "You said: just words"),
        ("say a\nsay b\\nc", "ab\nc"),
        ("prose first\nsay then a step", "then a step"),
        ("chunks 3", "chunk-0 chunk-1 chunk-2 "),
        ("chunks 2 size 4 delay 1", "xxxxxxxx"),
        ("burst 2 size 3", "xxxxxx"),
        ("echo", r#"[{"type":"text","text":"echo"}]"#),
        ("session", r#"{"cwd":"/folder","mcpServers":[]}"#),
    ];
    for (prompt, expected) in table {
        let exchange = tell(prompt);
        assert_eq!(exchange.text(), expected, "{prompt}");
        assert_eq!(exchange.response["result"], json!({"stopReason": "end_turn"}), "{prompt}");
    }
}

#[test]
fn other_updates_come_in_their_kind() {
    let table = [
        ("think hm", vec!["agent_thought_chunk"]),
        ("tool read Look => seen", vec!["tool_call", "tool_call_update", "tool_call_update"]),
        ("tool-fail execute Try", vec!["tool_call", "tool_call_update", "tool_call_update"]),
        ("diff f.txt a => b", vec!["tool_call", "tool_call_update"]),
        ("plan a | b | c", vec!["plan"]),
        ("mode plan", vec!["current_mode_update"]),
        ("title New", vec!["session_info_update"]),
        ("config model fake-tiny", vec!["config_option_update"]),
        ("usage-update", vec!["usage_update"]),
        ("unknown-update", vec!["weather_report"]),
        ("unknown-content ;; content image", vec!["agent_message_chunk", "agent_message_chunk"]),
    ];
    for (prompt, expected) in table {
        assert_eq!(kinds(&tell(prompt)), expected, "{prompt}");
    }
    assert_eq!(tell("tool-fail execute Try").updates("tool_call_update")[1]["status"], "failed");
    assert_eq!(tell("usage-chunk").updates("agent_message_chunk")[0]["_meta"]["usage"]["inputTokens"], 120);
}

#[test]
fn the_response_takes_the_shape_that_is_asked_for() {
    let result = |prompt: &str| tell(prompt).response["result"].clone();
    assert_eq!(result("stop max_tokens")["stopReason"], "max_tokens");
    assert_eq!(result("unknown-stop")["stopReason"], "paused_for_tea");
    assert_eq!(result("usage")["usage"]["totalTokens"], 158);
    assert_eq!(result("usage-quota")["_meta"]["quota"]["token_count"]["output_tokens"], 30);
    assert_eq!(tell("error 429 too much").response["error"], json!({"code": 429, "message": "too much"}));

    let (mut agent, session) = ready(&[]);
    agent.prompt(&session, "say a ;; trail 2");
    let trail = [agent.message().unwrap(), agent.message().unwrap()];
    assert_eq!(trail[1]["params"]["update"]["content"]["text"], "trail-1 ");
}

#[test]
fn a_permission_is_asked_and_its_outcome_said() {
    let allowed = run("permission rm x", choose("proceed_once"));
    assert_eq!(allowed.text(), "permission: allow_once (proceed_once)");
    assert_eq!(kinds(&allowed), ["tool_call", "tool_call_update", "agent_message_chunk"]);
    assert_eq!(allowed.requests("session/request_permission")[0]["params"]["options"][0]["kind"], "allow_always");
    assert_eq!(run("permission", choose("cancel")).text(), "permission: reject_once (cancel)");
    assert_eq!(run("permission", choose("forged")).text(), "permission: unoffered (forged)");
    let cancelled = run("permission", |_| json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(cancelled.text(), "permission: cancelled");
    for (variant, options) in [("only-always", 1), ("no-options", 0), ("unknown-kind", 1), ("withdrawn", 3)] {
        let exchange = run(&format!("permission {variant} x"), choose("cancel"));
        let request = &exchange.requests("session/request_permission")[0];
        assert_eq!(request["params"]["options"].as_array().unwrap().len(), options, "{variant}");
    }
    assert_eq!(run("permission withdrawn x", choose("cancel")).requests("$/cancel_request").len(), 1);
}

#[test]
fn files_terminals_and_questions_go_to_the_client() {
    let read = run("read a.txt line 2 limit 3", |_| json!({"content": "two"}));
    assert_eq!(read.text(), "read: two");
    let params = &read.requests("fs/read_text_file")[0]["params"];
    assert_eq!((&params["path"], &params["line"], &params["limit"]), (&json!("/folder/a.txt"), &json!(2), &json!(3)));
    let written = run("write /abs/b.txt one\\ntwo", |_| json!(null));
    assert_eq!(written.text(), "write: ok");
    assert_eq!(written.requests("fs/write_text_file")[0]["params"]["content"], "one\ntwo");
    let ran = run("terminal-kill sleep 5", |message| match message["method"].as_str().unwrap() {
        "terminal/create" => json!({"terminalId": "t1"}),
        "terminal/wait_for_exit" => json!({"exitCode": null, "signal": "SIGKILL"}),
        "terminal/output" => json!({"output": "bye", "truncated": false}),
        _ => json!({}),
    });
    assert_eq!(ran.text(), "terminal: exit null signal \"SIGKILL\" output bye");
    assert_eq!(ran.requests("terminal/create")[0]["params"]["args"], json!(["5"]));
    for method in ["terminal/kill", "terminal/release"] {
        assert_eq!(ran.requests(method)[0]["params"]["terminalId"], "t1", "{method}");
    }
    assert_eq!(run("elicit", |_| json!({"action": "decline"})).text(), r#"elicit: {"action":"decline"}"#);
    assert_eq!(run("ext ;; notify", |_| json!({"a": 1})).text(), r#"ext: {"a":1}"#);
}

#[test]
fn an_error_from_the_client_is_said() {
    let (mut agent, session) = ready(&[]);
    let id = agent.start_prompt(&session, "read secret");
    let request = loop {
        let message = agent.message().unwrap();
        if message["method"] == "fs/read_text_file" {
            break message;
        }
    };
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32600, "message": "no"}})).unwrap();
    assert_eq!(agent.finish(id, |_| json!({})).text(), "read error -32600: no");
}

#[test]
fn a_cancel_ends_what_waits() {
    for waiting in ["wait-cancel", "sleep 600000", "until /no/such/path", "permission x", "chunks 1000 delay 600000"] {
        let (mut agent, session) = ready(&[]);
        let id = agent.start_prompt(&session, waiting);
        agent.notify("session/cancel", &json!({"sessionId": session}));
        let response = loop {
            let message = agent.message().unwrap();
            if message["id"] == id && message.get("method").is_none() {
                break message;
            }
        };
        assert_eq!(response["result"], json!({"stopReason": "cancelled"}), "{waiting}");
        assert_eq!(agent.prompt(&session, "say next").text(), "next", "{waiting}");
    }
    let (mut agent, session) = ready(&[]);
    let id = agent.start_prompt(&session, "wait-cancel");
    agent.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(agent.finish(id, |_| json!({})).response["error"]["code"], -32800);
}

#[test]
fn a_busy_session_refuses_a_second_prompt_but_another_session_runs() {
    let (mut agent, first) = ready(&[]);
    let second = agent.open_session("/other");
    let waiting = agent.start_prompt(&first, "wait-cancel");
    assert_eq!(agent.prompt(&first, "say no").response["error"]["code"], -32600);
    assert_eq!(agent.prompt(&second, "say yes").text(), "yes");
    agent.notify("session/cancel", &json!({"sessionId": first}));
    assert_eq!(agent.finish(waiting, |_| json!({})).response["result"]["stopReason"], "cancelled");
}

#[test]
fn sessions_are_listed_loaded_resumed_closed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let state = ["--state", folder.path().to_str().unwrap()];
    let (mut agent, session) = ready(&state);
    agent.prompt(&session, "say kept");
    drop(agent);

    let mut agent = RawAcp::fake(&state);
    agent.initialize();
    let listed = agent.call("session/list", &json!({})).response;
    assert_eq!(listed["result"]["sessions"], json!([{"sessionId": session, "cwd": "/folder"}]));
    let reopen = json!({"sessionId": session, "cwd": "/folder", "mcpServers": []});
    let loaded = agent.call("session/load", &reopen);
    assert_eq!(kinds(&loaded), ["user_message_chunk", "agent_message_chunk"]);
    assert_eq!(loaded.text(), "kept");
    assert_eq!(loaded.response["result"]["modes"]["currentModeId"], "default");
    assert!(agent.call("session/resume", &reopen).response["result"].is_object());
    let named = json!({"sessionId": session});
    assert_eq!(agent.call("session/close", &named).response["result"], json!({}));
    assert_eq!(agent.prompt(&session, "say no").response["error"]["code"], -32602);
    assert_eq!(agent.call("session/delete", &named).response["result"], json!({}));
    assert_eq!(agent.call("session/load", &reopen).response["error"]["code"], -32002);
}

#[test]
fn modes_models_and_options_are_set() {
    let (mut agent, session) = ready(&[]);
    assert_eq!(
        agent.call("session/set_mode", &json!({"sessionId": session, "modeId": "plan"})).response["result"],
        json!({})
    );
    assert_eq!(
        agent.call("session/set_mode", &json!({"sessionId": session, "modeId": "x"})).response["error"]["code"],
        -32602
    );
    assert_eq!(
        agent.call("session/set_model", &json!({"sessionId": session, "modelId": "fake-tiny"})).response["result"],
        json!({})
    );
    let set = json!({"sessionId": session, "configId": "verbose", "value": true});
    let options = agent.call("session/set_config_option", &set).response["result"]["configOptions"].clone();
    assert_eq!((&options[0]["currentValue"], &options[1]["currentValue"]), (&json!("fake-tiny"), &json!(true)));
}

#[test]
fn what_is_left_out_is_neither_offered_nor_answered() {
    let mut agent = RawAcp::fake(&["--without", "load,close,models"]);
    let capabilities = agent.initialize()["result"]["agentCapabilities"].clone();
    assert_eq!(capabilities["loadSession"], false);
    assert_eq!(capabilities["sessionCapabilities"], json!({"list": {}, "resume": {}, "delete": {}}));
    let opened = agent.call("session/new", &json!({"cwd": "/", "mcpServers": []})).response["result"].clone();
    assert!(opened.get("models").is_none() && opened.get("modes").is_some());
    for method in ["session/load", "session/close", "session/set_model", "session/fork"] {
        assert_eq!(
            agent.call(method, &json!({"sessionId": opened["sessionId"]})).response["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

#[test]
fn quirks_change_what_they_name() {
    let (mut agent, session) = ready(&["--quirk", "no-tool-call-before-permission"]);
    for (option, expected) in
        [("proceed_once", vec!["tool_call_update", "agent_message_chunk"]), ("cancel", vec!["agent_message_chunk"])]
    {
        let id = agent.start_prompt(&session, "permission x");
        assert_eq!(kinds(&agent.finish(id, choose(option))), expected, "{option}");
    }

    let (mut agent, session) = ready(&["--quirk", "mode-update-text"]);
    assert_eq!(agent.prompt(&session, "mode plan").text(), "[MODE_UPDATE] plan");

    let (mut agent, session) = ready(&["--quirk", "straddling-load"]);
    agent.prompt(&session, "say a ;; say b");
    let loaded = agent.call("session/load", &json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    assert_eq!(kinds(&loaded), ["user_message_chunk"]);
    assert_eq!(agent.message().unwrap()["params"]["update"]["content"]["text"], "a");

    let (mut agent, session) = ready(&["--quirk", "second-prompt-cancels-first"]);
    let first = agent.start_prompt(&session, "wait-cancel");
    let second = agent.start_prompt(&session, "say second");
    let responses: Vec<Value> = std::iter::from_fn(|| agent.message())
        .filter(|message| message["result"]["stopReason"].is_string())
        .take(2)
        .collect();
    for (id, reason) in [(first, "cancelled"), (second, "end_turn")] {
        let response = responses.iter().find(|response| response["id"] == id).unwrap();
        assert_eq!(response["result"]["stopReason"], reason);
    }

    let (mut agent, session) = ready(&["--quirk", "error-on-cancel"]);
    let id = agent.start_prompt(&session, "wait-cancel");
    agent.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(agent.finish(id, |_| json!({})).response["error"]["code"], -32603);
}

#[test]
fn a_cancel_can_wait_for_its_permission() {
    let (mut agent, session) = ready(&["--quirk", "cancel-waits-for-permission"]);
    let id = agent.start_prompt(&session, "permission x");
    let request = loop {
        let message = agent.message().unwrap();
        if message["method"] == "session/request_permission" {
            break message;
        }
    };
    agent.notify("session/cancel", &json!({"sessionId": session}));
    let listed = agent.call("session/list", &json!({}));
    assert!(listed.before.iter().all(|message| message["id"] != id), "the prompt ended before its permission");
    agent
        .send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": {"outcome": "cancelled"}}}))
        .unwrap();
    assert_eq!(agent.finish(id, |_| json!({})).response["result"]["stopReason"], "cancelled");
}
