//! What agents and sessions are, for clients that choose among them.

use gembridge_core::model::{Mode, Model, SessionFacts};
use gembridge_core::session::{SessionStatus, SessionView, TurnState};
use serde_json::{Value, json};

use crate::acp::{AgentCard, Execution};
use crate::iso_time::iso;

/// The members of a `session/new` result that tell what the session can be.
pub fn new_session(result: &mut Value, facts: &SessionFacts) {
    if !facts.modes.is_empty() {
        let modes: Vec<_> = facts.modes.iter().map(mode).collect();
        let current = facts.mode.as_ref().or(facts.modes.first().map(|mode| &mode.id));
        result["modes"] = json!({ "currentModeId": current, "availableModes": modes });
    }
    if !facts.models.is_empty() {
        let models =
            facts.models.iter().map(|model| described("modelId", &model.id, &model.name, model.description.as_deref()));
        let current = facts.model.as_ref().or(facts.models.first().map(|model| &model.id));
        result["models"] = json!({ "currentModelId": current, "availableModels": models.collect::<Vec<_>>() });
    }
    if let Some(options) = &facts.options {
        result["configOptions"] = serde_json::from_slice(&options.0).unwrap_or(Value::Null);
    }
}

fn mode(mode: &Mode) -> Value {
    described("id", &mode.id, &mode.name, mode.description.as_deref())
}

fn model(model: &Model) -> Value {
    described("id", &model.id, &model.name, model.description.as_deref())
}

fn described(id_name: &str, id: &str, name: &str, description: Option<&str>) -> Value {
    let mut value = json!({ id_name: id, "name": name });
    if let Some(description) = description {
        value["description"] = json!(description);
    }
    value
}

/// One agent of `_gembridge/agents`.
pub fn agent_entry(card: &AgentCard, version: Option<&str>, offers: Option<&SessionFacts>, is_default: bool) -> Value {
    let known = offers.map(|offers| (offers.models.iter().map(model), offers.modes.iter().map(mode)));
    let (offered, ways): (Vec<_>, Vec<_>) =
        known.map(|(models, ways)| (models.collect(), ways.collect())).unwrap_or_default();
    json!({
        "name": card.name.as_str(),
        "title": card.title,
        "version": version,
        "isDefault": is_default,
        "isDemo": card.is_demo,
        "mode": execution(card.execution),
        "models": offered,
        "modes": ways,
    })
}

pub fn execution(execution: Execution) -> &'static str {
    match execution {
        Execution::Chat => "chat",
        Execution::Agent => "agent",
    }
}

/// One session of `_gembridge/sessions`.
pub fn session_entry(view: &SessionView) -> Value {
    let record = &view.record;
    let (state, queued, open_asks) = match view.status {
        SessionStatus::Stored => ("stored", 0, 0),
        SessionStatus::Live { turn, queued, open_asks, .. } => {
            let state = match turn {
                _ if view.status.is_waiting() => "waiting",
                TurnState::Idle => "idle",
                TurnState::Opening(_) => "opening",
                TurnState::Running(_) => "running",
            };
            (state, queued, open_asks)
        }
    };
    json!({
        "sessionId": record.id.to_string(),
        "title": record.title,
        "agent": record.agent.as_str(),
        "model": record.model,
        "mode": record.mode,
        "createdAt": iso(record.created),
        "updatedAt": iso(record.updated),
        "state": state,
        "queued": queued,
        "followers": view.watchers.count(),
        "openRequests": open_asks,
    })
}
