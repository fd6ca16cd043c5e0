//! Whatever an answer is made of: the chunks of the stream add up to the whole answer.

use bytes::Bytes;
use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{CallId, ClientCall, Opaque, SessionId, Text, TurnId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Chunks, Head, WholeBody};
use crate::dialect::{StreamEncoder as _, WholeEncoder as _};
use crate::openai::decode::Wording;

fn head(wording: Wording) -> Head {
    Head { id: "id".into(), created: 0, model: "m".into(), system_fingerprint: "fp".into(), wording }
}

#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thought(String),
    Refusal(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => "[a{é\n\" ]{1,6}".prop_map(Step::Text),
        2 => "[aé]{1,4}".prop_map(Step::Thought),
        1 => "[aé]{1,4}".prop_map(Step::Refusal),
    ];
    prop::collection::vec(step, 0..12)
}

/// Says the same to any sink.
fn play(sink: &mut impl AnswerSink, steps: &[Step], calls: &[ClientCall], finish: Finish) {
    for step in steps {
        let (Step::Text(text) | Step::Thought(text) | Step::Refusal(text)) = step;
        let text = Text::plain(text.as_str());
        let escaped = text.to_escaped();
        match step {
            Step::Text(_) => sink.text(0, &escaped),
            Step::Thought(_) => sink.thought(0, &escaped),
            Step::Refusal(_) => sink.refusal(0, &escaped),
        }
    }
    for (number, call) in calls.iter().enumerate() {
        sink.call(0, number, call);
    }
    sink.finish(0, finish);
}

/// The choice that the chunks add up to.
fn folded(stream: &[u8]) -> Value {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    let mut message = json!({"role": "assistant", "content": "", "refusal": null});
    let mut reason = Value::Null;
    for event in text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")) {
        let Ok(chunk) = serde_json::from_str::<Value>(event) else { continue };
        let choice = &chunk["choices"][0];
        for field in ["content", "reasoning_content", "refusal"] {
            if let Some(more) = choice["delta"][field].as_str() {
                message[field] = json!(message[field].as_str().unwrap_or_default().to_owned() + more);
            }
        }
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let mut call = call.clone();
            let at = call.as_object_mut().unwrap().remove("index").unwrap();
            let calls = message.as_object_mut().unwrap().entry("tool_calls").or_insert(json!([]));
            assert_eq!(at, calls.as_array().unwrap().len());
            calls.as_array_mut().unwrap().push(call);
        }
        if !choice["delta"]["function_call"].is_null() {
            message["function_call"] = choice["delta"]["function_call"].clone();
        }
        if !choice["finish_reason"].is_null() {
            reason = choice["finish_reason"].clone();
        }
    }
    let other = ["tool_calls", "function_call", "refusal"].iter().any(|way| !message[way].is_null());
    if other && message["content"] == "" {
        message["content"] = Value::Null;
    }
    json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason})
}

proptest! {
    #[test]
    fn folding_the_stream_gives_the_whole_answer(
        steps in steps(),
        calls in 0_u64..4,
        wording in prop::sample::select(vec![Wording::Tools, Wording::Functions]),
        finish in prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::ContentFilter]),
    ) {
        // Clients of the older wording get one call.
        let calls = if wording == Wording::Functions { calls.min(1) } else { calls };
        let session = SessionId::new();
        let arguments = Opaque(Bytes::from_static(b"{\"a\": \"b\\n\"}"));
        let call = |number| ClientCall {
            id: CallId::new(session, TurnId(1), number),
            tool: "tool".into(),
            arguments: arguments.clone(),
        };
        let calls: Vec<ClientCall> = (0..calls).map(call).collect();
        let finish = if calls.is_empty() { finish } else { Finish::ToolCalls };
        let (mut whole, mut chunks) = (WholeBody::new(head(wording), 1), Chunks::new(head(wording), 1, false));
        play(&mut whole, &steps, &calls, finish);
        play(&mut chunks, &steps, &calls, finish);
        let whole: Value = serde_json::from_slice(&whole.encode(TokenCount::default()).unwrap()).unwrap();
        prop_assert_eq!(folded(chunks.out()), whole["choices"][0].clone());
    }
}
