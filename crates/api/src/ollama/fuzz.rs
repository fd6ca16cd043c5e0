//! What clients of Ollama may send, mutated: nothing panics.

use gembridge_core::exchange::for_prompts;
use gembridge_core::model::PromptAbilities;
use gembridge_testkit::fuzz::{Fuzz, signature};

use super::decode::{self, Kinds, conversation, generation};
use super::wire::Ask;
use crate::dialect::Source;

const WORDS: &[&str] = &[
    "\"model\":\"demo:latest\",",
    "\"messages\":[",
    "{\"role\":\"System\",\"content\":\"\"},",
    "{\"role\":\"user\",\"content\":\"a\",\"images\":[\"iVBORw0=\"]},",
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{}}}]},",
    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"tool_name\":\"f\",\"content\":\"\"},",
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],",
    "\"prompt\":\"a\",\"system\":\"b\",",
    "\"format\":\"json\",",
    "\"format\":{\"type\":\"object\"},",
    "\"think\":\"low\",",
    "\"options\":{\"stop\":[\"a\"],\"num_predict\":-1,\"temperature\":null},",
    "\"keep_alive\":\"5m\",",
    "\"stream\":false,",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_ollama_request() {
    Fuzz::named("ollama-request").words(WORDS).check(|input| {
        let body = bytes::Bytes::copy_from_slice(input);
        let request: Ask<'_> = match decode::parse(&body) {
            Ok(request) => request,
            Err(problem) => return signature(&(1, problem.param)),
        };
        let loads = decode::load(&request, Kinds::Chat);
        let options = decode::options(&request, Kinds::Chat).map(|options| options.ignored);
        drop(generation(&request, Source(&body)));
        let said = match conversation(&request, Source(&body)) {
            Ok(said) => said,
            Err(problem) => return signature(&(2, problem.param, options.is_ok())),
        };
        for able in [true, false] {
            let can = PromptAbilities { image: able, audio: able, embedded: able };
            drop(for_prompts(&said.messages, can));
        }
        let ignored = options.map_err(|problem| problem.param);
        signature(&(3, said.messages.len(), said.follow_up.is_some(), loads, ignored))
    });
}
