//! What each word shows: the kinds of updates, the stop reason and the text.

use serde_json::json;

use crate::agent::Agent;

const TEXT: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";
const CALL: &str = "tool_call";
const CALL_UPDATE: &str = "tool_call_update";
const USAGE: &str = "usage_update";

/// Plays a prompt in a session of its own.
fn check(prompt: &str, kinds: &[&str], stop_reason: &str, text: &str) {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, prompt);
    assert_eq!(turn.kinds(), kinds, "kinds of {prompt:?}");
    assert_eq!(turn.stop_reason(), stop_reason, "stop reason of {prompt:?}");
    assert!(turn.text().contains(text), "text of {prompt:?} is {:?}", turn.text());
}

#[test]
fn each_word_shows_its_updates_and_ends_with_its_stop_reason() {
    let talk = [TEXT, USAGE];
    let tool = [CALL, CALL_UPDATE, TEXT, USAGE];
    check("hello there", &talk, "end_turn", "hello there");
    check("help", &talk, "end_turn", "| `chunks N [size S]` |");
    check("/help", &talk, "end_turn", "| `help` |");
    check("think about tea", &[THOUGHT, TEXT, USAGE], "end_turn", "about tea");
    check("story 3", &talk, "end_turn", "3. ");
    check("long 4", &talk, "end_turn", "4. ");
    check("slow 3 1 ms", &talk, "end_turn", "word-1 word-2 word-3 ");
    check("chunks 3 size 5", &talk, "end_turn", "1... 2... 3... ");
    check("tool", &tool, "end_turn", "README.md");
    check("edit", &tool, "end_turn", "no file was touched");
    check("diff", &tool, "end_turn", "no file was touched");
    check("plan", &["plan", TEXT, USAGE], "end_turn", "done");
    check("image", &talk, "end_turn", "16 by 16");
    check("markdown", &talk, "end_turn", "|:-----|------:|");
    check("markdown hostile", &talk, "end_turn", "<script>");
    check("unicode", &talk, "end_turn", "👩‍👩‍👧‍👦");
    check("json {\"a\": [1]}", &talk, "end_turn", "{\"a\": [1]}");
    check("refuse", &talk, "refusal", "refuse");
    check("max_tokens", &talk, "max_tokens", "tokens");
    check("max_turns", &talk, "max_turn_requests", "requests");
    check("usage", &talk, "end_turn", "0 words in");
    check("tools", &talk, "end_turn", "no MCP servers");
    check("call nothing", &talk, "end_turn", "no tool `nothing`");
    check("call x {broken", &talk, "end_turn", "not JSON");
    check("read a.txt", &talk, "end_turn", "does not offer");
    check("write a.txt b", &talk, "end_turn", "does not offer");
    check("terminal ls", &talk, "end_turn", "does not offer");
    check("elicit", &talk, "end_turn", "does not offer");
    check("history", &talk, "end_turn", "first prompt");
    check("count", &talk, "end_turn", "turn 1 ");
    check("think\ntool\nrefuse\ncount", &[THOUGHT, TEXT, CALL, CALL_UPDATE, TEXT, USAGE], "refusal", "refuse");
    check("[System]\ntool\n[User]\ncount", &talk, "end_turn", "turn 1 ");
}

#[test]
fn a_plain_answer_is_streamed_in_words_and_says_that_it_is_a_demo() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, "two\n\nlines");
    assert!(turn.text().contains("demo agent, not a model"));
    assert!(turn.text().contains("two\n\nlines"));
    assert!(turn.updates.len() > 20, "{} updates", turn.updates.len());
}

#[test]
fn a_plain_answer_names_what_came_beside_the_text() {
    let mut agent = Agent::start();
    let session = agent.session();
    let prompt = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "four"}},
    ]);
    let id = agent.send("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    let text = agent.finish(id, |_| json!({})).text();
    assert!(text.contains("image (image/png), 4 characters"), "{text}");
    assert!(text.contains("resource_link `file:///a.txt`"), "{text}");
    assert!(text.contains("resource `file:///b.txt`, 4 bytes of text"), "{text}");
}

#[test]
fn a_tool_call_goes_from_pending_to_completed_with_content_and_location() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, "edit");
    assert_eq!(turn.statuses(), ["pending", "in_progress", "completed"]);
    let call = turn.of_kind("tool_call").next().unwrap();
    assert_eq!(call["kind"], "edit");
    assert_eq!(call["locations"][0]["path"], "/somewhere/src/greeting.txt");
    let last = turn.of_kind("tool_call_update").last().unwrap();
    assert_eq!(last["toolCallId"], call["toolCallId"]);
    assert_eq!(last["content"][0]["type"], "diff");
    assert_ne!(last["content"][0]["oldText"], last["content"][0]["newText"]);
}

#[test]
fn a_plan_progresses_to_its_end() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, "plan");
    let plans: Vec<_> = turn.of_kind("plan").collect();
    let done = |plan: &serde_json::Value| {
        plan["entries"].as_array().unwrap().iter().filter(|entry| entry["status"] == "completed").count()
    };
    assert_eq!(plans.iter().map(|plan| done(plan)).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn an_image_is_a_png() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, "image");
    let content = &turn.updates[0]["content"];
    assert_eq!((&content["type"], &content["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(content["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
}

#[test]
fn words_are_counted_as_tokens_in_the_answer_and_the_usage_update() {
    let mut agent = Agent::start();
    let session = agent.session();
    let turn = agent.prompt(&session, "think of tea");
    let usage = turn.outcome.as_ref().unwrap()["usage"].clone();
    let words = |text: String| text.split_ascii_whitespace().count();
    assert_eq!(usage["inputTokens"], 3);
    assert_eq!(usage["outputTokens"], words(turn.text()));
    assert_eq!(usage["thoughtTokens"], words(turn.text_of("agent_thought_chunk")));
    let first = turn.of_kind("usage_update").last().unwrap()["used"].as_u64().unwrap();
    assert_eq!(usage["totalTokens"], first);
    let turn = agent.prompt(&session, "usage");
    assert!(turn.text().contains(&format!("{first} in all")), "{}", turn.text());
    assert!(turn.of_kind("usage_update").last().unwrap()["used"].as_u64().unwrap() > first);
}

#[test]
fn an_error_is_a_json_rpc_error_with_its_code_and_text() {
    let mut agent = Agent::start();
    let session = agent.session();
    let error = agent.prompt(&session, "error 429 slow down").outcome.unwrap_err();
    assert_eq!(error, json!({"code": 429, "message": "slow down"}));
    assert_eq!(agent.prompt(&session, "error").outcome.unwrap_err()["code"], -32603);
    assert_eq!(agent.prompt(&session, "count").stop_reason(), "end_turn");
}

#[test]
fn a_crash_ends_the_process_in_the_middle_of_the_turn() {
    let mut agent = Agent::start();
    let session = agent.session();
    agent.send_prompt(&session, "crash 7");
    let mut text = String::new();
    while let Some(message) = agent.next_or_end() {
        assert_eq!(message["method"], "session/update", "the turn was answered");
        text.push_str(crate::agent::chunk_text(&message));
    }
    assert!(text.contains("code 7"), "{text}");
    assert_eq!(agent.wait().code(), Some(7));
}
