//! Whatever an answer is made of: the lines of the stream add up to the whole answer.

use bytes::Bytes;
use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{CallId, ClientCall, Opaque, SessionId, Text, TurnId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Clock, Head, Lines, Shape, WholeAnswer};
use crate::dialect::{StreamEncoder as _, Thoughts, WholeEncoder as _};

fn head(shape: Shape, thoughts: Thoughts) -> Head {
    Head { model: "m".into(), created_at: "t".into(), shape, thoughts, clock: Clock::started() }
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

/// What the lines add up to, without the times.
fn folded(lines: &[u8]) -> Value {
    let mut whole = Value::Null;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut line: Value = serde_json::from_slice(line).unwrap();
        for place in ["/message/content", "/message/thinking", "/response", "/thinking"] {
            let before = whole.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
            let now = line.pointer(place).and_then(Value::as_str).unwrap_or_default();
            let sum = before + now;
            if line.pointer(place).is_some() || !sum.is_empty() {
                let (parent, field) = place.rsplit_once('/').unwrap();
                line.pointer_mut(parent).unwrap()[field] = json!(sum);
            }
        }
        let mut calls = whole["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        calls.extend(line["message"]["tool_calls"].as_array().cloned().unwrap_or_default());
        if !calls.is_empty() {
            line["message"]["tool_calls"] = json!(calls);
        }
        whole = line;
    }
    timeless(whole)
}

fn timeless(mut whole: Value) -> Value {
    for time in ["total_duration", "prompt_eval_duration", "eval_duration"] {
        assert!(whole[time].is_u64(), "{whole}");
        whole[time] = json!(0);
    }
    whole
}

proptest! {
    #[test]
    fn folding_the_lines_gives_the_whole_answer(
        steps in steps(),
        calls in 0_u64..4,
        is_chat in any::<bool>(),
        thinks in any::<bool>(),
        finish in prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::ContentFilter]),
    ) {
        let shape = if is_chat { Shape::Chat } else { Shape::Generate };
        let thoughts = if thinks { Thoughts::Shown } else { Thoughts::LeftOut };
        let call = |number| ClientCall {
            id: CallId::new(SessionId::new(), TurnId(1), number),
            tool: "tool".into(),
            arguments: Opaque(Bytes::from_static(b"{\"a\": \"b\\n\"}")),
        };
        // Only a chat has tools.
        let calls: Vec<ClientCall> = (0..if is_chat { calls } else { 0 }).map(call).collect();
        let (mut whole, mut lines) = (WholeAnswer::new(head(shape, thoughts)), Lines::new(head(shape, thoughts)));
        play(&mut whole, &steps, &calls, finish);
        play(&mut lines, &steps, &calls, finish);
        lines.keep_alive();
        lines.end(TokenCount::default());
        let whole: Value = serde_json::from_slice(&whole.encode(TokenCount::default()).unwrap()).unwrap();
        prop_assert_eq!(folded(lines.out()), timeless(whole));
    }
}
