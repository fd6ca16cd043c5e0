//! Libraries of other agents.

use crate::everyday::gemini;
use crate::support::home::Home;
use crate::support::script::Script;

#[test]
fn a2a_sdk_for_python_works_with_the_demo_agent_in_both_versions() {
    Script::python("a2a_sdk.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn a2a_sdks_for_javascript_work_with_the_demo_agent_in_both_versions() {
    Script::node("a2a.mjs").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn a2a_sdks_work_with_the_real_gemini_cli_in_both_versions() {
    let (_api, gateway) = gemini();
    Script::python("a2a_sdk.py").succeeds(&gateway, "gemini");
    Script::node("a2a.mjs").succeeds(&gateway, "gemini");
}
