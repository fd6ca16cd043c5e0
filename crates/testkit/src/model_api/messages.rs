//! Anthropic's messages.

use serde_json::{Value, json};

use super::script::{Act, Call, Said, text_of};

/// A message of the user may hold results of tools, and notes of the agent behind them.
pub fn conversation(body: &Value) -> Vec<Said> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = messages.iter().flat_map(|message| match message["role"].as_str() {
        Some("assistant") => vec![Said::Model],
        Some("user") => match results(&message["content"]) {
            results if results.is_empty() => vec![Said::User(text_of(&message["content"]))],
            results => results,
        },
        _ => Vec::new(),
    });
    said.collect()
}

fn results(content: &Value) -> Vec<Said> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let results = parts.iter().filter(|part| part["type"] == "tool_result");
    results.map(|result| Said::Result(text_of(&result["content"]))).collect()
}

pub fn stream(acts: &[Act]) -> String {
    let answer = super::answer_number();
    let message = json!({"id": format!("msg_{answer}"), "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1}});
    let mut events = event("message_start", json!({"message": message}));
    for (index, act) in acts.iter().enumerate() {
        let (block, delta) = match act {
            Act::Text(text) => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
            Act::Call(Call { name, args, .. }) => {
                let id = format!("toolu_{answer}_{}", index + 1);
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                (block, json!({"type": "input_json_delta", "partial_json": args.to_string()}))
            }
        };
        events.push_str(&event("content_block_start", json!({"index": index, "content_block": block})));
        events.push_str(&event("content_block_delta", json!({"index": index, "delta": delta})));
        events.push_str(&event("content_block_stop", json!({"index": index})));
    }
    let calls = acts.iter().any(|act| matches!(act, Act::Call(_)));
    let delta = json!({"stop_reason": if calls { "tool_use" } else { "end_turn" }, "stop_sequence": null});
    events.push_str(&event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 5}})));
    events.push_str(&event("message_stop", json!({})));
    events
}

/// Clients skip an event without a name.
fn event(name: &str, mut data: Value) -> String {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}
