//! Agents that these tests play, with modes, models and a version.

use std::sync::Arc;

use gembridge_core::driver::Signal;
use gembridge_core::model::{AgentFacts, Mode, Model, PromptAbilities, SessionFacts};
pub use gembridge_core::test_support::{Order, PATIENCE, ScriptedAgents};

/// Answers each prompt by a script.
pub fn scripted(script: impl Fn(&str) -> Vec<Signal> + Send + Sync + 'static) -> Arc<ScriptedAgents> {
    let batches = move |answer: Vec<Signal>| if answer.is_empty() { Vec::new() } else { vec![answer] };
    ScriptedAgents::new(move |prompted| batches(script(&prompted.prompt))).with_facts(agent_facts(), session_facts())
}

/// Does nothing by itself.
pub fn silent() -> Arc<ScriptedAgents> {
    scripted(|_| Vec::new())
}

/// Says the prompt back.
pub fn echo() -> Arc<ScriptedAgents> {
    scripted(|prompt| vec![super::text(&format!("you said {prompt}")), super::done()])
}

fn agent_facts() -> AgentFacts {
    let prompt = PromptAbilities { image: true, audio: false, embedded: true };
    AgentFacts { name: Some("played".into()), version: Some("1.2".into()), prompt, ..AgentFacts::default() }
}

fn session_facts() -> SessionFacts {
    let mode = |id: &str| Mode { id: id.into(), name: id.into(), description: None };
    SessionFacts {
        modes: [mode("default"), mode("plan")].into(),
        mode: Some("default".into()),
        models: [Model { id: "m1".into(), name: "One".into(), description: Some("the first".into()) }].into(),
        model: Some("m1".into()),
        ..SessionFacts::default()
    }
}
