//! OpenAI's responses.

use serde_json::{Value, json};

use super::script::{Act, Call, Said, text_of};

/// A tool of the API itself: the agent looks for tools that it has not declared.
const TOOL_SEARCH: &str = "tool_search";

pub fn conversation(body: &Value) -> Vec<Said> {
    let items = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = items.iter().filter_map(|item| match (item["type"].as_str(), item["role"].as_str()) {
        (_, Some("user")) => Some(Said::User(text_of(&item["content"]))),
        (_, Some("assistant")) | (Some("reasoning" | "function_call" | "custom_tool_call" | "tool_search_call"), _) => {
            Some(Said::Model)
        }
        (Some("function_call_output" | "custom_tool_call_output"), _) => Some(Said::Result(text_of(&item["output"]))),
        (Some("tool_search_output"), _) => Some(Said::Result(item["tools"].to_string())),
        _ => None,
    });
    said.collect()
}

pub fn stream(acts: &[Act]) -> String {
    let answer = super::answer_number();
    let response = |status: &str, output: &[Value]| {
        let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15});
        json!({"id": format!("resp_{answer}"), "object": "response", "created_at": 1, "model": "fake", "status": status,
            "output": output, "usage": usage})
    };
    let mut events = Events::default();
    events.add("response.created", json!({"response": response("in_progress", &[])}));
    let items: Vec<_> = acts.iter().enumerate().map(|(index, act)| item(&format!("{answer}_{index}"), act)).collect();
    for (index, (act, item)) in acts.iter().zip(&items).enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        match act {
            Act::Text(_) => begun["content"] = json!([]),
            Act::Call(Call { name, .. }) if name == TOOL_SEARCH => begun["arguments"] = json!({}),
            Act::Call(_) => begun["arguments"] = json!(""),
        }
        events.add("response.output_item.added", json!({"output_index": index, "item": begun}));
        if let Act::Text(text) = act {
            let delta = json!({"item_id": item["id"], "output_index": index, "content_index": 0, "delta": text});
            events.add("response.output_text.delta", delta);
        }
        events.add("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    events.add("response.completed", json!({"response": response("completed", &items)}));
    events.text
}

fn item(number: &str, act: &Act) -> Value {
    match act {
        Act::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
                "content": content})
        }
        Act::Call(Call { name, args, .. }) if name == TOOL_SEARCH => json!({"type": "tool_search_call",
            "id": format!("ts_{number}"), "call_id": format!("call_{number}"), "execution": "client", "arguments": args,
            "status": "completed"}),
        Act::Call(Call { name, namespace, args }) => {
            let mut call = json!({"type": "function_call", "id": format!("fc_{number}"),
                "call_id": format!("call_{number}"), "name": name, "arguments": args.to_string(), "status": "completed"});
            if let Some(namespace) = namespace {
                call["namespace"] = json!(namespace);
            }
            call
        }
    }
}

#[derive(Default)]
struct Events {
    text: String,
    count: u64,
}

impl Events {
    fn add(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.count);
        self.count += 1;
        self.text.extend(["event: ", name, "\ndata: ", &data.to_string(), "\n\n"]);
    }
}
