//! What the agent says about itself and about a session.

use bytes::Bytes;
use gembridge_core::model::{AgentFacts, Mode, Model, Opaque, PromptAbilities, SessionFacts};
use serde_json::value::RawValue;

use super::update::opaque;
use crate::acp::wire;

pub(in crate::acp) fn agent_facts(initialized: &wire::Initialized, raw: &Bytes) -> AgentFacts {
    let info = initialized.agent_info.as_ref();
    let abilities = &initialized.agent_capabilities;
    AgentFacts {
        name: info.and_then(|info| info.name.as_deref()).map(Into::into),
        version: info.and_then(|info| info.version.as_deref()).map(Into::into),
        prompt: PromptAbilities {
            image: abilities.prompt_capabilities.image,
            audio: abilities.prompt_capabilities.audio,
            embedded: abilities.prompt_capabilities.embedded_context,
        },
        load_session: abilities.load_session,
        mcp_http: abilities.mcp_capabilities.http,
        handshake: Some(Opaque(raw.clone())),
    }
}

/// Modes and models, from the fields that have them or from the options that stand for them.
pub(in crate::acp) fn session_facts(opened: &wire::SessionOpened<'_>, options: &[wire::ConfigOption]) -> SessionFacts {
    let mut facts = SessionFacts { options: opened.config_options.map(opaque), ..SessionFacts::default() };
    if let Some(modes) = &opened.modes {
        facts.mode = modes.current_mode_id.as_deref().map(Into::into);
        facts.modes = modes.available_modes.iter().map(mode).collect();
    } else if let Some(option) = of_category(options, "mode") {
        facts.mode = current(option).map(Into::into);
        facts.modes = values(option)
            .map(|(id, value)| Mode { id: id.into(), name: name(value, id).into(), description: described(value) })
            .collect();
    }
    if let Some(models) = &opened.models {
        facts.model = models.current_model_id.as_deref().map(Into::into);
        facts.models = models.available_models.iter().map(model).collect();
    } else if let Some(option) = of_category(options, "model") {
        facts.model = current(option).map(Into::into);
        facts.models = values(option)
            .map(|(id, value)| Model { id: id.into(), name: name(value, id).into(), description: described(value) })
            .collect();
    }
    facts
}

pub(in crate::acp) fn config_options(raw: &RawValue) -> Vec<wire::ConfigOption> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn of_category<'a>(options: &'a [wire::ConfigOption], category: &str) -> Option<&'a wire::ConfigOption> {
    options.iter().find(|option| option.category.as_deref() == Some(category))
}

fn current(option: &wire::ConfigOption) -> Option<&str> {
    option.current_value.as_ref()?.as_str()
}

/// The values of an option, those in groups too.
fn values(option: &wire::ConfigOption) -> impl Iterator<Item = (&str, &wire::ConfigValue)> {
    let grouped = option.options.iter().flat_map(|value| &value.options);
    option.options.iter().chain(grouped).filter_map(|value| Some((value.value.as_deref()?, value)))
}

fn name<'a>(value: &'a wire::ConfigValue, id: &'a str) -> &'a str {
    value.name.as_deref().unwrap_or(id)
}

fn described(value: &wire::ConfigValue) -> Option<std::sync::Arc<str>> {
    value.description.as_deref().map(Into::into)
}

fn mode(mode: &wire::Mode) -> Mode {
    Mode {
        id: mode.id.as_str().into(),
        name: mode.name.as_deref().unwrap_or(&mode.id).into(),
        description: mode.description.as_deref().map(Into::into),
    }
}

fn model(model: &wire::Model) -> Model {
    Model {
        id: model.id.as_str().into(),
        name: model.name.as_deref().unwrap_or(&model.id).into(),
        description: model.description.as_deref().map(Into::into),
    }
}
