//! What clients of the Messages API may send, mutated: nothing panics.

use gembridge_core::exchange::for_prompts;
use gembridge_core::model::PromptAbilities;
use gembridge_testkit::fuzz::{Fuzz, signature};

use super::decode::{self, ThreadWish, conversation};
use crate::dialect::Source;

const WORDS: &[&str] = &[
    "\"model\":\"demo\",\"max_tokens\":100,",
    "\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: a\"}],",
    "\"messages\":[",
    "{\"role\":\"system\",\"content\":\"\"},",
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\",\"cache_control\":{}}]},",
    "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"AAAA\"}}",
    "{\"type\":\"document\",\"source\":{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}",
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}]},",
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"is_error\":true,\"content\":\"\"}]},",
    "\"tools\":[{\"name\":\"f\",\"input_schema\":{}},{\"type\":\"web_search_20250305\",\"name\":\"w\"}],",
    "\"tool_choice\":{\"type\":\"tool\",\"name\":\"f\"},",
    "\"output_config\":{\"effort\":\"low\",\"format\":{\"type\":\"json_schema\",\"schema\":{}}},",
    "\"thinking\":{\"type\":\"adaptive\",\"display\":\"omitted\"},",
    "\"thread\":{\"type\":\"continue\",\"previous_message_id\":\"msg_1\"},",
    "\"stream\":true,",
    "\"stop_sequences\":[\"a\"],",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_messages_request() {
    Fuzz::named("messages-request").words(WORDS).check(|input| {
        let body = bytes::Bytes::copy_from_slice(input);
        let request = match decode::parse(&body) {
            Ok(request) => request,
            Err(problem) => return signature(&(1, problem.param)),
        };
        let options = decode::options(&request).map(|options| options.ignored);
        drop(conversation(&request, Some(&ThreadWish::Continue("msg_1".into())), Source(&body)));
        let said = match conversation(&request, None, Source(&body)) {
            Ok(said) => said,
            Err(problem) => return signature(&(2, problem.param, options.is_ok())),
        };
        for able in [true, false] {
            let can = PromptAbilities { image: able, audio: able, embedded: able };
            drop(for_prompts(&said.messages, can));
        }
        let ignored = options.map_err(|problem| problem.param);
        signature(&(3, said.messages.len(), said.follow_up.is_some(), ignored))
    });
}
