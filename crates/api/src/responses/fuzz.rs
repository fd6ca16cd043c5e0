//! What clients of the Responses API may send, mutated: nothing panics.

use gembridge_testkit::fuzz::{Fuzz, signature};

use super::decode;

const WORDS: &[&str] = &[
    "\"model\":\"demo\",",
    "\"input\":[",
    "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"\"}]},",
    "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,AAAA\"}",
    "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"namespace\":\"n\",\"arguments\":\"{}\"},",
    "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"\"},",
    "{\"type\":\"compaction\",\"encrypted_content\":\"W10\"},",
    "{\"type\":\"additional_tools\",\"tools\":[]},",
    "\"tools\":[{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"custom\",\"name\":\"f\"}]}],",
    "\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]},",
    "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{}}},",
    "\"metadata\":{\"a\":\"b\"},",
    "\"max_output_tokens\":",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_responses_request() {
    Fuzz::named("responses-request").words(WORDS).check(|input| {
        let understood = decode::understand(&bytes::Bytes::copy_from_slice(input));
        signature(&understood.map_err(|problem| problem.param))
    });
}
