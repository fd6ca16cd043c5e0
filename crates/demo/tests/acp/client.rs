//! What the agent asks of its client: permissions, files, terminals, forms.

use serde_json::{Value, json};

use crate::agent::{Agent, Turn};

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Answers the permission request of one prompt with the option.
fn permit(agent: &mut Agent, session: &str, prompt: &str, option: &str) -> Turn {
    let mut asked = 0;
    let turn = agent.prompt_answering(session, prompt, |question| {
        asked += 1;
        let params = &question["params"];
        assert_eq!(question["method"], "session/request_permission");
        assert_eq!(params["sessionId"], session);
        let kinds: Vec<_> = params["options"].as_array().unwrap().iter().map(|option| option["kind"].clone()).collect();
        assert_eq!(kinds, ["allow_always", "allow_once", "reject_once", "reject_always"]);
        selected(option)
    });
    assert_eq!(asked, 1, "{prompt}");
    turn
}

#[test]
fn an_allowed_command_completes_and_a_rejected_one_fails() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = permit(&mut agent, &session, "run make it so", "allow-once");
    assert_eq!(turn.statuses(), ["pending", "in_progress", "completed"]);
    assert!(turn.text().contains("Allowed") && turn.text().contains("Nothing was executed"));
    assert_eq!(turn.of_kind("tool_call").next().unwrap()["rawInput"]["command"], "make it so");

    let turn = permit(&mut agent, &session, "permission", "reject-once");
    assert_eq!(turn.statuses(), ["pending", "failed"]);
    assert!(turn.text().contains("Rejected"));
    assert_eq!(turn.stop_reason(), "end_turn");
}

#[test]
fn a_cancelled_permission_cancels_the_turn() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt_answering(&session, "permission", |_| json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(turn.stop_reason(), "cancelled");
    assert_eq!(turn.statuses(), ["pending", "failed"]);
}

#[test]
fn an_answer_that_is_no_option_is_a_rejection() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = permit(&mut agent, &session, "permission", "proceed");
    assert_eq!(turn.statuses(), ["pending", "failed"]);
}

#[test]
fn always_is_remembered_for_the_command_and_the_session() {
    let mut agent = Agent::start();
    let session = agent.session();
    permit(&mut agent, &session, "run a", "allow-always");
    assert!(agent.prompt(&session, "run a").text().contains("Allowed"));
    permit(&mut agent, &session, "run b", "reject-always");
    assert!(agent.prompt(&session, "run b").text().contains("Rejected"));
    let other = agent.session();
    permit(&mut agent, &other, "run a", "allow-once");
}

#[test]
fn yolo_does_not_ask_and_plan_refuses() {
    let mut agent = Agent::start();
    let session = agent.session();
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "yolo"})).unwrap();
    assert_eq!(agent.prompt(&session, "permission").statuses(), ["pending", "in_progress", "completed"]);
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).unwrap();
    assert_eq!(agent.prompt(&session, "permission").statuses(), ["pending", "failed"]);
}

#[test]
fn files_are_read_and_written_through_the_client() {
    let mut agent = Agent::start_with(&[], json!({"fs": {"readTextFile": true, "writeTextFile": true}}));
    let session = agent.session();
    let turn = agent.prompt_answering(&session, "read notes/a.txt 2 5", |question| {
        assert_eq!(question["method"], "fs/read_text_file");
        let expected = json!({"sessionId": session, "path": "/somewhere/notes/a.txt", "line": 2, "limit": 5});
        assert_eq!(question["params"], expected);
        json!({"content": "the second line\n"})
    });
    assert!(turn.text().ends_with("the second line\n"));
    assert_eq!(turn.statuses(), ["pending", "in_progress", "completed"]);

    let turn = agent.prompt_answering(&session, "write /tmp/b.txt some text", |question| {
        assert_eq!(question["method"], "fs/write_text_file");
        assert_eq!(question["params"], json!({"sessionId": session, "path": "/tmp/b.txt", "content": "some text"}));
        Value::Null
    });
    assert!(turn.text().contains("9 bytes"));
    assert_eq!(turn.of_kind("tool_call").next().unwrap()["content"][0]["newText"], "some text");
}

#[test]
fn a_clients_error_fails_the_call_and_is_told() {
    let mut agent = Agent::start_with(&[], json!({"fs": {"readTextFile": true}}));
    let session = agent.session();
    let id = agent.send_prompt(&session, "read gone.txt");
    let question = agent.next_where(|message| message["method"] == "fs/read_text_file");
    let error = json!({"code": -32002, "message": "no such file"});
    agent.write(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string());
    let turn = agent.finish(id, |_| Value::Null);
    assert_eq!(turn.statuses(), ["failed"]);
    assert!(turn.text().contains("no such file"));
}

fn terminal(question: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "terminal/create" => {
            assert_eq!(question["params"]["command"], "sh");
            assert_eq!(question["params"]["args"], json!(["-c", "exit 3"]));
            json!({"terminalId": "t-1"})
        }
        "terminal/wait_for_exit" => json!({"exitCode": 3, "signal": null}),
        "terminal/output" => json!({"output": "all of it", "truncated": false}),
        other => panic!("unexpected {other}"),
    }
}

#[test]
fn a_command_runs_in_a_terminal_of_the_client_which_is_released() {
    let mut agent = Agent::start_with(&[], json!({"terminal": true}));
    let session = agent.session();
    let id = agent.send_prompt(&session, "terminal sh -c 'exit 3'");
    let mut released = 0;
    let turn = agent.finish(id, |question| {
        if question["method"] == "terminal/release" {
            released += 1;
            return Value::Null;
        }
        terminal(question)
    });
    if released == 0 {
        let release = agent.next();
        assert_eq!(release["method"], "terminal/release");
        assert_eq!(release["params"]["terminalId"], "t-1");
    }
    assert!(turn.text().contains("exit code 3") && turn.text().contains("all of it"), "{}", turn.text());
    let shown = turn.of_kind("tool_call_update").next().unwrap();
    assert_eq!(shown["content"], json!([{"type": "terminal", "terminalId": "t-1"}]));
}

#[test]
fn a_cancelled_terminal_is_released() {
    let mut agent = Agent::start_with(&[], json!({"terminal": true}));
    let session = agent.session();
    agent.send_prompt(&session, "terminal sh -c 'exit 3'");
    let create = agent.next_where(|message| message["method"] == "terminal/create");
    let result = terminal(&create);
    agent.answer(&create, result);
    agent.next_where(|message| message["method"] == "terminal/wait_for_exit");
    agent.notify("session/cancel", json!({"sessionId": session}));
    let release = agent.next_where(|message| message["method"] == "terminal/release");
    assert_eq!(release["params"]["terminalId"], "t-1");
}

#[test]
fn a_form_is_shown_and_its_answer_told() {
    let mut agent = Agent::start_with(&[], json!({"elicitation": {"form": {}}}));
    let session = agent.session();
    let turn = agent.prompt_answering(&session, "elicit", |question| {
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["mode"], "form");
        assert_eq!(question["params"]["requestedSchema"]["type"], "object");
        json!({"action": "accept", "content": {"name": "Ada"}})
    });
    assert!(turn.text().contains("`accept`") && turn.text().contains("Ada"), "{}", turn.text());
}
