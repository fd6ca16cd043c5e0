//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::script::{Act, Call, Said, text_of};

pub fn conversation(body: &Value) -> Vec<Said> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = messages.iter().filter_map(|message| match message["role"].as_str()? {
        "user" => Some(Said::User(text_of(&message["content"]))),
        "assistant" => Some(Said::Model),
        "tool" => Some(Said::Result(text_of(&message["content"]))),
        _ => None,
    });
    said.collect()
}

pub fn stream(acts: &[Act]) -> String {
    let mut events = String::new();
    let mut called = 0;
    let answer = super::answer_number();
    for act in acts {
        let delta = match act {
            Act::Text(text) => json!({"role": "assistant", "content": text}),
            Act::Call(Call { name, args, .. }) => {
                called += 1;
                let function = json!({"name": name, "arguments": args.to_string()});
                let id = format!("call_{answer}_{called}");
                json!({"tool_calls": [{"index": called - 1, "id": id, "type": "function", "function": function}]})
            }
        };
        events.push_str(&event(&delta, &Value::Null));
    }
    events.push_str(&event(&json!({}), &json!(if called > 0 { "tool_calls" } else { "stop" })));
    events.push_str("data: [DONE]\n\n");
    events
}

fn event(delta: &Value, finish: &Value) -> String {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "fake", "object": "chat.completion.chunk", "created": 1, "model": "fake",
        "choices": [choice], "usage": usage});
    format!("data: {chunk}\n\n")
}
