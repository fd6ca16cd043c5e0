//! Whatever an answer is made of: the events of the stream add up to the whole answer, and no block is open beside another.

use bytes::Bytes;
use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{CallId, ClientCall, Opaque, SessionId, Text, TurnId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Events, Head, WholeBody};
use crate::dialect::{StreamEncoder as _, Thoughts, WholeEncoder as _};

fn head(thoughts: Thoughts) -> Head {
    Head { id: "msg_0".into(), model: "m".into(), input_tokens: 7, thoughts }
}

#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thought(String),
    Refusal(String),
    Silence,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => "[a{é\n\" ]{1,6}".prop_map(Step::Text),
        2 => "[aé]{1,4}".prop_map(Step::Thought),
        1 => "[aé]{1,4}".prop_map(Step::Refusal),
        1 => Just(Step::Silence),
    ];
    prop::collection::vec(step, 0..12)
}

/// Says the same to any sink.
fn play<S: AnswerSink>(sink: &mut S, silence: impl Fn(&mut S), steps: &[Step], calls: &[ClientCall], finish: Finish) {
    for step in steps {
        let escaped = |text: &String| Text::plain(text.as_str()).to_escaped().to_vec();
        match step {
            Step::Text(text) => sink.text(0, &escaped(text)),
            Step::Thought(text) => sink.thought(0, &escaped(text)),
            Step::Refusal(text) => sink.refusal(0, &escaped(text)),
            Step::Silence => silence(sink),
        }
    }
    for (number, call) in calls.iter().enumerate() {
        sink.call(0, number, call);
    }
    sink.finish(0, finish);
}

/// The message that the events add up to, as a client's library reads them.
fn folded(stream: &[u8]) -> Value {
    let text = std::str::from_utf8(stream).unwrap();
    let mut message = Value::Null;
    let (mut open, mut input) = (None, String::new());
    for event in text.split("\n\n").filter(|event| !event.is_empty()) {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        match name {
            "message_start" => message = data["message"].clone(),
            "ping" => {}
            "content_block_start" => {
                let blocks = message["content"].as_array_mut().unwrap();
                assert_eq!((open, &data["index"]), (None, &json!(blocks.len())));
                open = Some(blocks.len());
                blocks.push(data["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                let block = &mut message["content"][open.unwrap()];
                let delta = data["delta"].as_object().unwrap();
                for field in ["text", "thinking", "signature"] {
                    if let Some(more) = delta.get(field) {
                        block[field] = json!(block[field].as_str().unwrap().to_owned() + more.as_str().unwrap());
                    }
                }
                input += delta.get("partial_json").and_then(Value::as_str).unwrap_or_default();
            }
            "content_block_stop" => {
                let at = open.take().unwrap();
                assert_eq!(data["index"], at);
                if message["content"][at]["type"] == "tool_use" {
                    message["content"][at]["input"] = serde_json::from_str(&input).unwrap();
                }
            }
            "message_delta" => {
                for (field, value) in data["delta"].as_object().unwrap() {
                    message[field] = value.clone();
                }
                message["usage"] = data["usage"].clone();
            }
            "message_stop" => assert_eq!(open, None),
            other => panic!("{other}"),
        }
    }
    message
}

proptest! {
    #[test]
    fn folding_the_events_gives_the_whole_answer(
        steps in steps(),
        calls in 0_u64..4,
        thinks in any::<bool>(),
        stops in any::<bool>(),
        finish in prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::ContentFilter]),
    ) {
        let thoughts = if thinks { Thoughts::Shown } else { Thoughts::LeftOut };
        let call = |number| ClientCall {
            id: CallId::new(SessionId::new(), TurnId(1), number),
            tool: "tool".into(),
            arguments: Opaque(Bytes::from_static(b"{\"a\": \"b\\n\"}")),
        };
        let calls: Vec<ClientCall> = (0..calls).map(call).collect();
        let finish = if calls.is_empty() { finish } else { Finish::ToolCalls };
        let (mut whole, mut events) = (WholeBody::new(head(thoughts)), Events::new(head(thoughts)));
        play(&mut whole, |_| {}, &steps, &calls, finish);
        play(&mut events, Events::keep_alive, &steps, &calls, finish);
        if stops {
            whole.stop_sequence(0, "END");
            events.stop_sequence(0, "END");
        }
        let tokens = TokenCount { input: 9, output: 4, cached: 3, reasoning: 1 };
        events.end(tokens);
        let whole: Value = serde_json::from_slice(&whole.encode(tokens).unwrap()).unwrap();
        prop_assert_eq!(folded(events.out()), whole);
    }
}
