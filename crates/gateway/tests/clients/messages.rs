//! Clients of the Messages API.

use std::thread;

use crate::everyday::gemini;
use crate::support::home::Home;
use crate::support::script::Script;

#[test]
fn anthropic_python_and_langchain_work_with_the_demo_agent() {
    Script::python("anthropic_messages.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn anthropic_javascript_works_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    Script::node("anthropic-messages.mjs").succeeds(&gateway, "demo");
    // The AI SDK has a provider for this dialect, and one for Ollama's.
    Script::node("ai-sdk-dialects.mjs").succeeds(&gateway, "demo");
}

#[test]
fn clients_of_messages_work_with_the_real_gemini_cli_in_one_conversation_of_the_model() {
    let (api, gateway) = gemini();
    thread::scope(|scope| {
        scope.spawn(|| Script::python("anthropic_messages.py").succeeds(&gateway, "gemini"));
        Script::node("anthropic-messages.mjs").succeeds(&gateway, "gemini");
        Script::node("ai-sdk-dialects.mjs").succeeds(&gateway, "gemini");
    });
    for call in api.fake.model_calls() {
        assert!(!call.body.to_string().contains("[Tool]"), "no transcript was told again: {}", call.body);
    }
}
