//! What clients and agents may send, mutated: nothing panics, and what goes out is JSON under the right id.

use bytes::{Bytes, BytesMut};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AskBody, ClientId, Dialect, Event, Frame, Seq, SessionId, Text, Timestamp, TurnId};
use gembridge_testkit::fuzz::{Fuzz, signature};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::encode::{SessionName, Template, View};
use super::error::Refusal;
use super::tap::{session_of, split_frame};
use super::{decode, encode, methods, wire};
use crate::jsonrpc::{self, Incoming};

const METHODS: &[&str] = &[
    "initialize",
    "session/new",
    "session/load",
    "session/prompt",
    "session/list",
    "session/set_mode",
    "session/set_model",
    "session/set_config_option",
    "session/close",
    "_gembridge/rename",
    "_gembridge/attach",
    "_agent/own",
];

const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\",",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"result\":",
    "\"error\":",
    "\"sessionId\":\"0199f3c4-7d1e-7000-8000-000000000001\"",
    "\"_meta\":{\"gembridge\":{\"after\":1}}",
    "\"prompt\":[",
    "{\"type\":\"text\",\"text\":\"\"}",
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"\"}}",
    "\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"a\"}",
    "\"mcpServers\":[]",
    "session/prompt",
    "session/set_config_option",
    "_gembridge/attach",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_jsonrpc_in() {
    Fuzz::named("jsonrpc-in").words(WORDS).check(|input| {
        // A WebSocket has no other texts.
        let Ok(text) = std::str::from_utf8(input) else { return 0 };
        drop(decode::query(text));
        let session = session_of(text);
        let kind = match jsonrpc::read(text) {
            Err(malformed) => return signature(&format!("{malformed:?}")),
            Ok(Incoming::Request { id, method, params }) => {
                answered(id);
                (1, read_as_every_method(&method, params))
            }
            Ok(Incoming::Notification { method, params }) => (2, read_as_every_method(&method, params)),
            Ok(Incoming::Response { id, result }) => {
                answered(id);
                let form = AskBody::Form { message: "m".into() };
                let read = result.map(|result| decode::answer(&form, result).is_ok());
                (3, vec![read.map_or(-1, i64::from)])
            }
        };
        signature(&(kind, session.is_some()))
    });
}

/// The answers to a request are messages with its id.
fn answered(id: &RawValue) {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let mut out = BytesMut::new();
    encode::result(&mut out, id, &json!({ "a": 1 }));
    encode::error(&mut out, id, &Refusal::params("no".to_owned()));
    let (first, rest) = split_frame(&out).expect("a frame");
    let (second, _) = split_frame(rest).expect("another");
    for message in [first, second] {
        let answer: Answer<'_> = serde_json::from_slice(message).expect("a message");
        assert_eq!(answer.id.get(), id.get());
    }
}

/// How the parameters are taken, whichever method they were meant for.
fn read_as_every_method(method: &str, params: Option<&RawValue>) -> Vec<i64> {
    let mut taken = vec![
        outcome(decode::session(params)),
        outcome(decode::wishes(params)),
        outcome(decode::params::<wire::Initialize>(params)),
        outcome(decode::params::<wire::NewSession>(params)),
        outcome(decode::params::<wire::ListSessions>(params)),
        outcome(decode::params::<wire::SessionsWish>(params)),
        outcome(decode::params::<wire::CancelRequest<'_>>(params)),
    ];
    taken.extend(METHODS.iter().map(|known| outcome(methods::order(known, params))));
    taken.push(i64::from(METHODS.contains(&method)));
    if let Ok(prompt) = decode::prompt(params) {
        taken.push(i64::try_from(prompt.content.len()).unwrap_or(i64::MAX));
        shown(Event::Prompted { prompt, by: ClientId(1) }, None);
    }
    taken
}

fn outcome<T>(read: Result<T, Refusal>) -> i64 {
    read.map_or_else(|refusal| refusal.code, |_| 0)
}

/// What a client is shown of an entry: messages of JSON.
fn shown(event: Event, frame: Option<&[u8]>) -> usize {
    let frame = frame.map(|bytes| Frame { dialect: Dialect::Acp, bytes: Bytes::copy_from_slice(bytes) });
    let entry = LogEntry { seq: Seq(1), at: Timestamp(2), turn: Some(TurnId(3)), event, frame };
    let is_sound = entry.frame.as_ref().is_none_or(|frame| serde_json::from_slice::<&RawValue>(&frame.bytes).is_ok());
    let mut out = BytesMut::new();
    let session = SessionName::new(SessionId::new());
    encode::entry(&mut out, &session, &mut Template::default(), &entry, View::Replay);
    let (mut rest, mut messages) = (&out[..], 0);
    while let Some((message, following)) = split_frame(rest) {
        // A frame of the agent's is passed on as it came, and it was read as JSON before.
        if is_sound {
            serde_json::from_slice::<&RawValue>(message).expect("JSON");
        }
        (rest, messages) = (following, messages + 1);
    }
    messages
}

#[test]
fn s31_fuzz_jsonrpc_shown() {
    Fuzz::named("jsonrpc-shown").words(WORDS).check(|input| {
        let other = shown(Event::Other { kind: "session/update".into() }, Some(input));
        let text = Text::escaped(Bytes::copy_from_slice(b"text"));
        let text = shown(Event::Text(text), Some(input));
        signature(&(other, text, input.first(), input.last(), input.len().checked_ilog2()))
    });
}
