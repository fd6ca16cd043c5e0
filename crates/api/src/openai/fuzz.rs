//! What clients of the OpenAI API may send, mutated: nothing panics.

use gembridge_core::exchange::for_prompts;
use gembridge_core::model::PromptAbilities;
use gembridge_testkit::fuzz::{Fuzz, signature};

use super::decode::{self, check_abilities, conversation, follow_up};
use crate::dialect::Source;

const WORDS: &[&str] = &[
    "\"model\":\"demo\",",
    "\"messages\":[",
    "{\"role\":\"system\",\"content\":\"\"},",
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]},",
    "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}}",
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},",
    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"\"},",
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],",
    "\"tool_choice\":\"required\",",
    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{}}},",
    "\"stream\":true,",
    "\"stream_options\":{\"include_usage\":true},",
    "\"stop\":[\"a\"],",
    "\"max_tokens\":",
    "\"n\":",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_openai_request() {
    Fuzz::named("openai-request").words(WORDS).check(|input| {
        let body = bytes::Bytes::copy_from_slice(input);
        let request = match decode::parse(&body) {
            Ok(request) => request,
            Err(problem) => return signature(&(1, problem.param)),
        };
        let options = decode::options(&request);
        let said = match conversation(&request, Source(&body)) {
            Ok(said) => said,
            Err(problem) => return signature(&(2, problem.param, options.is_ok())),
        };
        for able in [true, false] {
            let can = PromptAbilities { image: able, audio: able, embedded: able };
            drop(check_abilities(&said, can, "demo"));
            drop(for_prompts(&said, can));
        }
        let follows = follow_up(&request, &said).map(|follows| follows.is_some());
        let ignored = options.map(|options| options.ignored).map_err(|problem| problem.param);
        signature(&(3, said.len(), follows.ok(), ignored))
    });
}
