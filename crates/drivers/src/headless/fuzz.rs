//! What headless programs may write, mutated: nothing panics, and no line becomes an event without being its frame.

use bytes::Bytes;
use gembridge_testkit::fuzz::{Fuzz, signature};

use super::decode::Decoder;
use super::extract::extract_json;
use crate::profile::StreamFormat;

const WORDS: &[&str] = &[
    "\n",
    "\"type\":\"result\"",
    "\"type\":\"tool_use\"",
    "\"type\":\"stream_event\"",
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}",
    "\"status\":\"error\"",
    "\"parent_tool_use_id\":null",
    "18446744073709551615",
    "```json",
    "\\ud83d",
    "null",
];

fn check(name: &'static str, format: StreamFormat) {
    Fuzz::named(name).words(WORDS).check(move |input| {
        let mut decoder = Decoder::new(format);
        let mut kinds = Vec::new();
        for line in input.split(|byte| *byte == b'\n') {
            let line = Bytes::copy_from_slice(line);
            for update in decoder.line(&line) {
                assert!(update.frame.is_some_and(|frame| frame.bytes == line));
                kinds.push(std::mem::discriminant(&update.event));
            }
        }
        let data = extract_json(&String::from_utf8_lossy(input)).is_some();
        signature(&(kinds, decoder.verdict.is_some(), decoder.usage.is_some(), data))
    });
}

#[test]
fn s31_fuzz_headless_gemini() {
    check("headless-gemini", StreamFormat::Gemini);
}

#[test]
fn s31_fuzz_headless_claude() {
    check("headless-claude", StreamFormat::Claude);
}
