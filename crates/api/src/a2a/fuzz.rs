//! What other agents may send, mutated: nothing panics, whichever the version.

use gembridge_core::model::PromptAbilities;
use gembridge_testkit::fuzz::{Fuzz, signature};

use super::methods::{confirm, content};
use super::rpc;
use super::wire::{Call, Version};
use crate::jsonrpc::Incoming;

const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\",",
    "\"id\":1,",
    "\"method\":\"message/send\",",
    "\"method\":\"SendMessage\",",
    "\"method\":\"tasks/list\",",
    "\"method\":\"ListTasks\",",
    "\"method\":\"inject_result\",",
    "\"params\":{",
    "\"message\":{\"messageId\":\"m\",\"role\":\"user\",\"parts\":[",
    "\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[",
    "{\"kind\":\"text\",\"text\":\"\"},",
    "{\"kind\":\"file\",\"file\":{\"bytes\":\"AAAA\",\"mimeType\":\"image/png\"}},",
    "{\"raw\":\"AAAA\",\"mediaType\":\"image/png\"},",
    "{\"data\":{\"callId\":\"c\",\"outcome\":\"inject_result\",\"functionResponse\":{\"name\":\"n\",\"response\":[]}}},",
    "{\"data\":{\"callId\":\"c\",\"outcome\":\"proceed_once\"}},",
    "\"configuration\":{\"historyLength\":-1},",
    "\"statusTimestampAfter\":\"2026-01-31T12:00:00Z\",",
    "\"pageSize\":",
    "null",
    "\\ud83d",
];

#[test]
fn s31_fuzz_a2a_request() {
    Fuzz::named("a2a-request").words(WORDS).check(|input| {
        let Ok(text) = std::str::from_utf8(input) else { return signature(&0) };
        let (method, params) = match rpc::read(text) {
            Ok(Incoming::Request { method, params, .. } | Incoming::Notification { method, params }) => {
                (method, params)
            }
            Ok(Incoming::Response { .. }) => return signature(&1),
            Err(fault) => return signature(&(2, fault.reason.code())),
        };
        let outcomes = [Version::V03, Version::V10].map(|version| match version.decode(&method, params) {
            Err(fault) => {
                version.error(&fault);
                fault.reason.code()
            }
            Ok(Call::Send(request) | Call::Stream(request) | Call::Inject(request)) => {
                let parts = &request.message.parts;
                for able in [true, false] {
                    drop(content::contents(parts, Some(PromptAbilities { image: able, audio: able, embedded: able })));
                }
                let decided = confirm::decisions(parts).map(|decisions| confirm::in_words(&decisions).is_some());
                i64::from(decided.is_ok_and(|words| words))
            }
            Ok(_) => 2,
        });
        signature(&(3, outcomes))
    });
}
