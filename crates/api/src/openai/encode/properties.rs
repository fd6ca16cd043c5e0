//! Whatever an agent does: the pieces of the stream add up to the whole answer.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{CallId, ClientCall, ClientTool, Event, Opaque, Outcome, SessionId, Stop, TurnId};
use gembridge_core::session::demand::Demand;
use gembridge_core::tool_host::Format;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CallOptions, Chunks, Ending, Head, Reading, ReadingOptions, Wholes};
use crate::openai::decode::{AtOnce, Choice, Counts, TokenLimit, Wording};

/// An answer counts if it begins like an object.
#[derive(Debug)]
struct Braces;

impl Format for Braces {
    fn find_in(&self, text: &str) -> Result<Opaque, String> {
        if text.starts_with('{') { Ok(opaque(text)) } else { Err("no".into()) }
    }

    fn instruction(&self) -> String {
        String::new()
    }
}

fn opaque(text: &str) -> Opaque {
    Opaque(Bytes::copy_from_slice(text.as_bytes()))
}

fn head() -> Head {
    Head { id: "id".into(), created: 0, model: "m".into(), system_fingerprint: "fp".into() }
}

/// What an agent does, and in the end it stops.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let session = SessionId::new();
    let id = move |number: u64| CallId::new(session, TurnId(1), number);
    let call = move |number| ClientCall { id: id(number), tool: "tool".into(), arguments: opaque("{\"a\": \"b\\n\"}") };
    let event = prop_oneof![
        4 => "[a{é\n\" ]{0,6}".prop_map(|text| Event::Text(text.as_str().into())),
        2 => "[aé]{0,4}".prop_map(|text| Event::Thought(text.as_str().into())),
        2 => (1_u64..4).prop_map(move |number| Event::Called(Box::new(call(number)))),
        1 => prop::collection::vec((1_u64..4).prop_map(id), 1..3).prop_map(Event::Parked),
        1 => "[a\"]{0,3}".prop_map(|text| Event::Output(opaque(&json!({"x": text}).to_string()))),
    ];
    let end = prop::sample::select(vec![Stop::EndTurn, Stop::Refusal, Stop::MaxTokens]);
    let end = end.prop_map(|stop| Event::Ended(Outcome::Finished(stop)));
    (prop::collection::vec(event, 0..12), end).prop_map(|(mut events, end)| {
        events.push(end);
        events
    })
}

fn options() -> impl Strategy<Value = ReadingOptions> {
    let demand = prop::sample::select(vec![Demand::Nothing, Demand::Call, Demand::Output(Arc::new(Braces))]);
    let wording = prop::sample::select(vec![Wording::Tools, Wording::Functions]);
    let limit = prop::option::of((1_u64..6).prop_map(|tokens| TokenLimit { tokens, counts: Counts::Text }));
    (demand, wording, limit, any::<bool>()).prop_map(|(demand, wording, limit, many)| {
        let many = many && wording == Wording::Tools;
        let at_once = if many { AtOnce::Many } else { AtOnce::One };
        let offered = Arc::new([ClientTool { name: "tool".into(), description: None, schema: None }]);
        let calls = CallOptions { choice: Choice::AsItLikes, offered, wording, at_once, strict: None };
        ReadingOptions { stop: vec!["aa".into()], limit, show_tools: false, calls, demand }
    })
}

fn read(reading: &mut Reading, events: &[Event], out: &mut impl super::Pieces) -> Option<Ending> {
    events.iter().find_map(|event| reading.event(event, out))
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
    fn folding_the_stream_gives_the_whole_answer(options in options(), turns in prop::collection::vec(events(), 3)) {
        let (mut wholes, mut chunks) = (Wholes::new(head(), 1), Chunks::new(head(), 1, false));
        let (mut one, mut other) = (Reading::new(options.clone(), None), Reading::new(options, None));
        for events in turns {
            let ending = read(&mut one, &events, wholes.of(0));
            let same = read(&mut other, &events, &mut chunks.of(0));
            prop_assert_eq!(&ending, &same);
            let reason = match ending.expect("a turn ends") {
                Ending::Finished(reason) | Ending::Forgotten(reason) | Ending::Cut(reason) | Ending::Parked(reason) => {
                    reason
                }
                // Another turn goes on with the same answer; nothing of the one before may be left in it.
                Ending::Again(_) => continue,
                Ending::Refused(_) | Ending::Unmet(..) | Ending::Failed(_) => return Ok(()),
            };
            wholes.finish(0, reason);
            chunks.finish(0, reason);
            let whole: Value = serde_json::from_slice(&wholes.encode(crate::openai::wire::Usage::default()).unwrap()).unwrap();
            prop_assert_eq!(folded(chunks.out()), whole["choices"][0].clone());
            return Ok(());
        }
    }
}
