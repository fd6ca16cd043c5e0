//! The traps of Gemini CLI's session files, one by one.

use gembridge_transcripts::{Agent, Located};
use gembridge_unified::{Block, Body, Role};
use serde_json::{Value, json};

use crate::home::{Content, Home, blocks};

fn recorded(name: &str) -> Content {
    Content::of_fixture(Agent::Gemini, &format!("gemini/{name}"))
}

fn header() -> Value {
    json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "2026-01-01T00:00:00Z"})
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-01T00:00:01Z", "type": "user", "content": [{"text": text}]})
}

fn agent(id: &str, content: impl Into<Value>) -> Value {
    json!({"id": id, "timestamp": "2026-01-01T00:00:02Z", "type": "gemini", "content": content.into()})
}

fn with(mut record: Value, field: &str, value: impl Into<Value>) -> Value {
    record[field] = value.into();
    record
}

fn read(lines: &[Value]) -> Content {
    Content::of_lines(Agent::Gemini, lines)
}

fn tokens(total: u64) -> Value {
    json!({"input": total, "output": 0, "cached": 0, "thoughts": 0, "tool": 0, "total": total})
}

#[test]
fn trap_1_a_record_that_is_written_three_times_is_one_message_and_is_counted_once() {
    let content = recorded("0.61.0/headless_yolo_tools_summary.jsonl");
    let totals: Vec<_> = content.messages.iter().filter_map(|message| message.usage?.total_tokens).collect();
    assert_eq!(totals, [1026, 1028, 1030]);
    assert_eq!(content.facts.usage.total(), 1026 + 1028 + 1030);
    let ids: std::collections::HashSet<_> = content.messages.iter().map(|message| &message.id).collect();
    assert_eq!(ids.len(), content.messages.len());
}

#[test]
fn a_later_version_of_a_message_keeps_the_place_of_the_first() {
    let content = read(&[header(), user("u", "hi"), agent("a", ""), user("v", "more"), agent("a", "late")]);
    let ids: Vec<_> = content.messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["u", "a", "v"]);
    assert_eq!(content.messages[1].text(), "late");
}

#[test]
fn trap_2_a_result_that_is_stored_twice_is_one_result_and_no_turn_of_the_user() {
    let content = recorded("0.61.0/headless_yolo_tools_summary.jsonl");
    assert_eq!(content.calls(), content.results());
    assert_eq!(content.calls().len(), 3);
    let typed = content.messages.iter().filter(|message| message.role == Role::User).count();
    assert_eq!(typed, 1);
}

#[test]
fn trap_3_the_context_that_the_program_adds_is_not_what_the_user_said() {
    let content = recorded("0.61.0/headless_yolo_tools_summary.jsonl");
    assert_eq!(content.messages[0].role, Role::System);
    assert!(content.messages[0].text().starts_with("<session_context>"));
    // Where it is put before a prompt, the prompt alone is the user's.
    let content = recorded("0.61.0/interactive_tool_cancelled_by_esc.jsonl");
    let typed = content.messages.iter().filter(|message| message.role == Role::User);
    assert!(typed.clone().count() > 0);
    for message in typed {
        assert!(!message.text().contains("<session_context>"), "{message:?}");
    }
}

#[test]
fn trap_4_a_resumed_session_keeps_the_tokens_models_thoughts_and_times_of_old_turns() {
    let content = recorded("0.61.0/headless_resumed_main.jsonl");
    let answers: Vec<_> = content.messages.iter().filter(|message| message.role == Role::Assistant).collect();
    assert_eq!(answers.len(), 5);
    for answer in &answers {
        assert!(answer.usage.is_some() && answer.model.is_some(), "{answer:?}");
    }
    let times: Vec<_> = content.messages.iter().map(|message| message.timestamp).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(content.facts.usage.total(), 1026 + 1028 + 1030 + 1032 + 1034);
}

#[test]
fn trap_4_calls_and_results_of_a_rebuilt_history_stand_once() {
    let response = json!([{"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "text"}}}]);
    let call = json!([{"functionCall": {"id": "c", "name": "read_file", "args": {"file_path": "f"}}}]);
    let told =
        json!([{"id": "c", "name": "read_file", "args": {"file_path": "f"}, "status": "success", "result": response}]);
    let before = with(with(agent("a", "said"), "toolCalls", told), "tokens", tokens(7));
    let rebuilt = json!({"$set": {"messages": [
        user("u", "hi"),
        with(agent("a", json!([{"text": "said"}, call[0]])), "timestamp", "2026-02-01T00:00:00Z"),
        {"id": "a_response", "timestamp": "2026-02-01T00:00:00Z", "type": "user", "content": response},
        {"id": "other", "timestamp": "2026-02-01T00:00:00Z", "type": "user", "content": response},
    ]}});
    let content = read(&[header(), user("u", "hi"), before, rebuilt]);
    assert_eq!((content.calls(), content.results()), (vec!["c"], vec!["c"]));
    assert_eq!(content.messages.len(), 2);
    assert_eq!(content.messages[1].usage.unwrap().total(), 7);
    assert_eq!(content.messages[1].timestamp, content.messages[0].timestamp + 1000);
}

#[test]
fn trap_5_the_stub_that_resuming_leaves_belongs_to_its_session() {
    let chats = ".gemini/tmp/workspace/chats";
    let home = Home::new()
        .with_fixture(&format!("{chats}/session-a.jsonl"), "gemini/0.61.0/headless_resumed_main.jsonl")
        .with_fixture(
            &format!("{chats}/session-b.jsonl"),
            "gemini/0.61.0/headless_resumed_stub_created_by_resume.jsonl",
        );
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 1);
    assert_eq!(scan.sessions[0].paths().len(), 2);
    let latest = scan.latest(None).unwrap();
    assert_eq!(Content::of(latest).facts.usage.total(), 5150);
}

#[test]
fn trap_5_a_second_header_does_not_move_the_beginning_of_a_session() {
    let content = recorded("0.61.0/headless_resumed_main.jsonl");
    let first: jiff::Timestamp = "2026-11-15T06:18:29.697Z".parse().unwrap();
    assert_eq!(content.facts.started, u64::try_from(first.as_millisecond()).ok());
}

#[test]
fn trap_6_a_content_with_thoughts_or_calls_is_the_truth() {
    let content = json!([{"text": "in content", "thought": true}, {"text": "said"},
        {"functionCall": {"id": "c", "name": "glob", "args": {}}}]);
    let record = with(agent("a", content), "thoughts", json!([{"subject": "S", "description": "beside"}]));
    let content = read(&[header(), record]);
    let written = blocks(&content.messages[0]);
    assert!(matches!(&written[0], Block::Thinking { thinking } if thinking == "in content"), "{written:?}");
    assert!(matches!(&written[1], Block::ToolUse { .. }) && matches!(&written[2], Block::Text { .. }), "{written:?}");
    assert_eq!(written.len(), 3);
}

#[test]
fn thoughts_come_first_then_each_call_with_its_result_then_the_text() {
    let content = recorded("0.61.0/headless_yolo_tools_summary.jsonl");
    let kinds: Vec<_> = blocks(&content.messages[2])
        .iter()
        .map(|block| match block {
            Block::Thinking { thinking } => format!("thinking {thinking}"),
            Block::ToolUse { name, .. } => format!("use {name}"),
            Block::ToolResult { is_error, .. } => format!("result {is_error}"),
            Block::Text { text } => format!("text {text}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["thinking T: body", "use Bash", "result false", "use Read", "result true", "text Go."]);
}

#[test]
fn trap_7_a_command_that_failed_is_a_success_with_an_exit_code() {
    let call = |output: &str| {
        let result =
            json!([{"functionResponse": {"id": "c", "name": "run_shell_command", "response": {"output": output}}}]);
        json!([{"id": "c", "name": "run_shell_command", "args": {"command": "x"}, "status": "success", "result": result}])
    };
    for output in
        ["Output: (empty)\nExit Code: 3", "<untrusted_context>\nOutput: x\nExit Code: 3\n</untrusted_context>"]
    {
        let content = read(&[header(), with(agent("a", ""), "toolCalls", call(output))]);
        let result = &blocks(&content.messages[0])[1];
        assert!(matches!(result, Block::ToolResult { is_error: false, exit_code: Some(3), .. }), "{result:?}");
    }
}

#[test]
fn errors_and_cancelled_calls_are_errors_and_running_ones_have_no_result() {
    for (status, response, expected) in [
        ("error", json!({"error": "no"}), Some(true)),
        ("success", json!({"error": "no"}), Some(true)),
        ("success", json!({"output": "yes"}), Some(false)),
        ("cancelled", json!(null), Some(true)),
        ("executing", json!(null), None),
        ("awaiting_approval", json!(null), None),
    ] {
        let result = match &response {
            Value::Null => Value::Null,
            response => json!([{"functionResponse": {"id": "c", "name": "glob", "response": response}}]),
        };
        let calls = json!([{"id": "c", "name": "glob", "args": {}, "status": status, "result": result}]);
        let content = read(&[header(), with(agent("a", ""), "toolCalls", calls)]);
        let found = blocks(&content.messages[0]).iter().find_map(|block| match block {
            Block::ToolResult { is_error, .. } => Some(*is_error),
            _ => None,
        });
        assert_eq!(found, expected, "{status} {response}");
    }
    let content = recorded("0.61.0/interactive_tool_cancelled_by_esc.jsonl");
    assert!(content.damages.is_empty());
}

#[test]
fn trap_8_results_may_be_shown_as_text_or_as_anything_and_ids_have_any_form() {
    for (id, shown) in [
        ("fc1", json!("plain")),
        ("read_file__fc1", json!({"fileDiff": "d", "fileName": "f"})),
        ("read_file-1761-hash", json!({"todos": []})),
        ("10b6#0-0", json!([[{"text": "x"}]])),
    ] {
        let calls = json!([{"id": id, "name": "read_file", "args": {}, "status": "success", "resultDisplay": shown,
            "result": [{"functionResponse": {"id": id, "name": "read_file", "response": {"output": "o"}}},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}]);
        let content = read(&[header(), with(agent("a", ""), "toolCalls", calls)]);
        assert_eq!((content.calls(), content.results()), (vec![id], vec![id]));
        let Block::ToolResult { content: Body::Blocks(parts), .. } = &blocks(&content.messages[0])[1] else {
            panic!("{content:?}")
        };
        assert!(matches!(&parts[..], [Block::Text { .. }, Block::Image { .. }]), "{parts:?}");
    }
}

#[test]
fn trap_9_a_subagent_is_linked_to_the_session_that_called_it() {
    let (parent, child) = ("e5c288ce-8cff-49d5-83ea-b25ebf4e7517", "10b6d5ca-5418-4413-8d06-cdabe67890d9");
    let chats = ".gemini/tmp/workspace/chats";
    let home = Home::new()
        .with_fixture(
            &format!("{chats}/session-2026-11-15T06-38-e5c288ce.jsonl"),
            "gemini/0.61.0/subagent_parent.jsonl",
        )
        .with_fixture(&format!("{chats}/{parent}/{child}.jsonl"), "gemini/0.61.0/subagent_child.jsonl");
    let scan = home.scan();
    let of_parent = scan.subagents(scan.by_id(parent).unwrap());
    assert_eq!(of_parent.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), [child]);
    assert_eq!(scan.latest(None).unwrap().id, parent);
}

#[test]
fn a_rewind_drops_the_message_and_all_after_it_and_an_unknown_id_drops_everything() {
    let lines = [header(), user("u", "one"), with(agent("a", "1"), "tokens", tokens(5)), user("v", "two")];
    let rewound = |to: &str| read(&[&lines[..], &[json!({"$rewindTo": to})]].concat());
    assert_eq!(rewound("v").messages.len(), 2);
    assert_eq!(rewound("a").messages.len(), 1);
    assert_eq!(rewound("nobody").messages.len(), 0);
    assert_eq!(rewound("nobody").facts.usage.total(), 5, "what was spent stays spent");
    let recorded = recorded("0.61.0/interactive_rewind.jsonl");
    let texts: Vec<_> = recorded.messages.iter().map(gembridge_unified::UnifiedMessage::text).collect();
    assert!(!texts.contains(&"second reply".to_owned()) && texts.contains(&"third reply".to_owned()), "{texts:?}");
}

#[test]
fn a_whole_object_is_read_under_the_name_of_a_log_too() {
    let whole = std::fs::read_to_string(crate::home::fixture("gemini/0.22.4/headless_session-3e1932d2.json")).unwrap();
    let as_log = Content::of_text(Agent::Gemini, &whole);
    let as_object = recorded("0.22.4/headless_session-3e1932d2.json");
    assert!(as_log.damages.is_empty(), "{:?}", as_log.damages);
    assert_eq!(as_log.messages, as_object.messages);
    // One line is how an old session is carried on.
    let object: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(Content::of_lines(Agent::Gemini, &[object]).messages, as_object.messages);
}

#[test]
fn files_that_are_no_sessions_are_left_alone() {
    let chats = ".gemini/tmp/workspace/chats";
    let session = "gemini/0.61.0/interactive_rewind.jsonl";
    let home = Home::new()
        .with_fixture(&format!("{chats}/session-a.jsonl"), session)
        .with_fixture(&format!("{chats}/session-a.jsonl.unreadable-123"), session)
        .with_fixture(&format!("{chats}/session-a.jsonl.tmp-77"), session)
        .with_fixture(".gemini/tmp/workspace/logs.json", "gemini/0.61.0/logs.json");
    assert_eq!(home.scan().sessions.len(), 1);
}

#[test]
fn a_call_that_is_told_late_is_not_told_again() {
    let content = recorded("0.61.0/acp_tools_thoughts_reject_cancel_apierror.jsonl");
    let calls = content.calls();
    let unique: std::collections::HashSet<_> = calls.iter().collect();
    assert_eq!(unique.len(), calls.len(), "{calls:?}");
    let results = content.results();
    let unique: std::collections::HashSet<_> = results.iter().collect();
    assert_eq!(unique.len(), results.len(), "{results:?}");
}

#[test]
fn a_result_that_stands_before_its_call_is_told_with_the_call() {
    let response = json!([{"functionResponse": {"id": "c", "name": "glob", "response": {"output": "o"}}}]);
    let early = json!({"id": "r", "timestamp": "2026-01-01T00:00:01Z", "type": "user", "content": response});
    let calls = json!([{"id": "c", "name": "glob", "args": {}, "status": "success", "result": response}]);
    let content = read(&[header(), user("u", "hi"), early, with(agent("a", ""), "toolCalls", calls)]);
    let ids: Vec<_> = content.messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["u", "a"]);
    assert_eq!((content.calls(), content.results()), (vec!["c"], vec!["c"]));
}

#[test]
fn a_thought_without_a_subject_is_its_description() {
    let record = with(
        agent("a", ""),
        "thoughts",
        json!([{"subject": "", "description": "d"}, {"subject": "s", "description": ""}]),
    );
    let content = read(&[header(), record]);
    let thoughts: Vec<_> = blocks(&content.messages[0]).to_vec();
    assert_eq!(thoughts, [Block::Thinking { thinking: "d".to_owned() }, Block::Thinking { thinking: "s".to_owned() }]);
}

#[test]
fn a_session_of_one_file_has_the_name_of_the_file_for_an_id() {
    assert_eq!(Located::of_file(Agent::Gemini, "/a/b.jsonl").id, "b");
}
