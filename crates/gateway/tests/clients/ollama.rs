//! Clients of Ollama.

use std::thread;

use crate::everyday::gemini;
use crate::support::home::Home;
use crate::support::script::Script;

#[test]
fn ollama_python_and_langchain_work_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    Script::python("ollama_chat.py").succeeds(&gateway, "demo");
    let log = gateway.stderr();
    assert!(log.contains("path=/api/chat") && !log.contains(&gateway.key), "no key reaches a log: {log}");
}

#[test]
fn ollama_javascript_works_with_the_demo_agent() {
    Script::node("ollama-chat.mjs").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn clients_of_ollama_work_with_the_real_gemini_cli_in_one_conversation_of_the_model() {
    let (api, gateway) = gemini();
    thread::scope(|scope| {
        scope.spawn(|| Script::python("ollama_chat.py").succeeds(&gateway, "gemini"));
        Script::node("ollama-chat.mjs").succeeds(&gateway, "gemini");
    });
    for call in api.fake.model_calls() {
        assert!(!call.body.to_string().contains("[Tool]"), "no transcript was told again: {}", call.body);
    }
}
