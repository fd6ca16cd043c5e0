//! What goes wrong, as the libraries tell it.

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::script::Script;

/// A gateway that refuses a lot: one turn at a time, one waiter, small bodies, short silence, known models only.
fn strict() -> Gateway {
    let home = Home::for_serving();
    let further = format!(
        "limits.requests = 60\nlimits.window = '1h'\nlimits.turns = 1\nlimits.queue = 1\nlimits.body = '64kB'\n\
         turn.idle = '5s'\nopenai.strict_models = true\n\
         [agents.broken]\ncommand = {:?}\nargs = ['--mode', 'crash-start']\n",
        gembridge_testkit::fake_agent_path().to_str().unwrap()
    );
    std::fs::write(home.config("gembridge.toml"), further).unwrap();
    home.serve()
}

#[test]
fn openai_python_raises_its_own_exceptions() {
    Script::python("openai_errors.py").succeeds(&strict(), "demo");
}

#[test]
fn openai_node_raises_its_own_errors() {
    Script::node("openai-errors.mjs").succeeds(&strict(), "demo");
}
