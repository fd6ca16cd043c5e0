//! Whatever an agent does, and however its text comes in pieces: the answer is the same, and keeps to what was asked.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::calls::CallOptions;
use super::ending::Ending;
use super::request::{AtOnce, CallIds, Counts, TokenLimit, ToolChoice};
use super::required_output::RequiredOutput;
use super::sink::{AnswerPieces, Piece, PieceQueue};
use super::turn_reader::{ReaderOptions, TurnReader};
use crate::model::{CallId, ClientCall, ClientTool, Event, Opaque, Outcome, SessionId, Stop, TurnId};
use crate::tool_host::Format;

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

/// What an agent does, and in the end it stops.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let session = SessionId::new();
    let id = move |number: u64| CallId::new(session, TurnId(1), number);
    let call = move |number| ClientCall { id: id(number), tool: "tool".into(), arguments: opaque("{}") };
    let event = prop_oneof![
        4 => "[a{é\n\" ]{0,6}".prop_map(|text| Event::Text(text.as_str().into())),
        2 => "[aé]{0,4}".prop_map(|text| Event::Thought(text.as_str().into())),
        2 => (1_u64..4).prop_map(move |number| Event::Called(Box::new(call(number)))),
        1 => prop::collection::vec((1_u64..4).prop_map(id), 1..3).prop_map(Event::Parked),
        1 => "[ab]{0,3}".prop_map(|text| Event::Output(opaque(&format!("{{{text}}}")))),
    ];
    let end = prop::sample::select(vec![Stop::EndTurn, Stop::Refusal, Stop::MaxTokens]);
    let end = end.prop_map(|stop| Event::Ended(Outcome::Finished(stop)));
    (prop::collection::vec(event, 0..12), end).prop_map(|(mut events, end)| {
        events.push(end);
        events
    })
}

fn options() -> impl Strategy<Value = ReaderOptions> {
    let required = vec![RequiredOutput::Nothing, RequiredOutput::Call, RequiredOutput::Output(Arc::new(Braces))];
    let ids = prop::sample::select(vec![CallIds::Told, CallIds::Missing]);
    let limit = prop::option::of((1_u64..6).prop_map(|tokens| TokenLimit { tokens, counts: Counts::Text }));
    (prop::sample::select(required), ids, limit, any::<bool>()).prop_map(|(required, ids, limit, many)| {
        let at_once = if many && ids == CallIds::Told { AtOnce::Many } else { AtOnce::One };
        let offered = Arc::new([ClientTool { name: "tool".into(), description: None, schema: None }]);
        let calls = CallOptions { choice: ToolChoice::Auto, offered, ids, at_once, strict: None };
        ReaderOptions { stop: vec!["aa".into()], limit, show_tools: false, calls, required, request: 0 }
    })
}

/// The answer that a turn gives: its text, its thoughts, its calls, and how it ended.
fn answer(options: ReaderOptions, events: &[Event]) -> (String, String, Vec<ClientCall>, Option<Ending>) {
    let (mut reader, mut queue) = (TurnReader::new(options, None), PieceQueue::default());
    let mut pieces = AnswerPieces { sink: &mut queue, answer: 0 };
    let ending = events.iter().find_map(|event| reader.event(event, &mut pieces));
    let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for (_, piece) in queue.pieces {
        match piece {
            Piece::Text(more) | Piece::Refusal(more) => text.push_str(&more.to_str()),
            Piece::Thought(more) => thought.push_str(&more.to_str()),
            Piece::Call(call) => calls.push(call),
            Piece::Begun { .. } | Piece::Ended(_) | Piece::Done(_) | Piece::Failed(_) => {}
        }
    }
    (text, thought, calls, ending)
}

/// The same with every character of a text in a piece of its own.
fn in_characters(events: &[Event]) -> Vec<Event> {
    let split = |event: &Event| match event {
        Event::Text(text) => text.to_str().chars().map(|character| Event::Text(character.to_string().into())).collect(),
        other => vec![other.clone()],
    };
    events.iter().flat_map(split).collect()
}

proptest! {
    #[test]
    fn an_answer_does_not_depend_on_how_its_text_came_in_pieces(options in options(), events in events()) {
        let whole = answer(options.clone(), &events);
        prop_assert_eq!(&whole, &answer(options.clone(), &in_characters(&events)));
        let (text, _, calls, ending) = whole;
        prop_assert!(ending.is_some(), "a turn ends");
        if matches!(options.required, RequiredOutput::Nothing) {
            prop_assert!(!text.contains("aa"), "nothing goes out behind a stop sequence: {text}");
        }
        prop_assert!(options.calls.at_once == AtOnce::Many || calls.len() <= 1);
    }
}
