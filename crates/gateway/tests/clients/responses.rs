//! Clients of the Responses API.

use std::thread;

use crate::everyday::gemini;
use crate::support::home::Home;
use crate::support::script::Script;

#[test]
fn openai_python_and_langchain_speak_responses_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    Script::python("openai_responses.py").succeeds(&gateway, "demo");
    Script::python("openai_agents.py").succeeds(&gateway, "demo");
}

#[test]
fn openai_node_speaks_responses_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    Script::node("openai-responses.mjs").succeeds(&gateway, "demo");
    Script::node("openai-agents.mjs").succeeds(&gateway, "demo");
}

#[test]
fn litellm_speaks_every_dialect_with_the_demo_agent() {
    Script::litellm("litellm_dialects.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn clients_of_responses_work_with_the_real_gemini_cli_and_nothing_is_told_twice() {
    let (api, gateway) = gemini();
    thread::scope(|scope| {
        scope.spawn(|| Script::python("openai_responses.py").succeeds(&gateway, "gemini"));
        Script::node("openai-responses.mjs").succeeds(&gateway, "gemini");
    });
    for call in api.fake.model_calls() {
        assert!(!call.body.to_string().contains("[Tool]"), "no transcript was told again: {}", call.body);
    }
}
