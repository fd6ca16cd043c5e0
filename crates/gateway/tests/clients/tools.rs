//! Tools and answers in a given form, through the libraries that programs use for them.

use std::thread;

use serde_json::Value;

use crate::everyday::gemini;
use crate::support::home::Home;
use crate::support::script::Script;

const PYTHON: [&str; 2] = ["openai_tools.py", "langchain_tools.py"];
const NODE: [&str; 2] = ["openai-tools.mjs", "ai-sdk-tools.mjs"];

#[test]
fn tools_and_forms_work_in_python_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    for script in PYTHON {
        Script::python(script).succeeds(&gateway, "demo");
    }
}

#[test]
fn tools_and_forms_work_in_javascript_with_the_demo_agent() {
    let gateway = Home::for_serving().serve();
    for script in NODE {
        Script::node(script).succeeds(&gateway, "demo");
    }
}

/// The scripts make the model refuse a request whose functions are not declared by their schemas, or whose results are not
/// in the conversation that made the call.
#[test]
fn tools_and_forms_work_with_the_real_gemini_cli_in_one_conversation_of_the_model() {
    let (api, gateway) = gemini();
    thread::scope(|scope| {
        scope.spawn(|| {
            for script in PYTHON {
                Script::python(script).succeeds(&gateway, "gemini");
            }
        });
        for script in NODE {
            Script::node(script).succeeds(&gateway, "gemini");
        }
    });
    let calls = api.fake.model_calls();
    let returned = |body: &Value| body.to_string().contains("functionResponse");
    assert!(calls.iter().filter(|call| returned(&call.body)).count() >= 20, "results reached the model");
    for call in &calls {
        assert!(!call.body.to_string().contains("[Tool]"), "no transcript was told again: {}", call.body);
        let own = |name: &String| name.starts_with("mcp_host-tools_");
        assert!(call.declared_tools().iter().all(own), "{:?}", call.declared_tools());
    }
}
