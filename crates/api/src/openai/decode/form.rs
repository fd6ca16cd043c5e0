//! Whether fields have the form that they must have, by name: the place of one that could not be read, and the kind of
//! value of those that have no effect.

use crate::openai::wire::{ChatRequest, Skipped};
use crate::problem::Problem;

/// The field that could not be read, such as `messages[0].content`. The body is read once more, with an eye on where:
/// only whoever sent a wrong one pays for it.
pub(super) fn place(body: &[u8]) -> Option<String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let error = serde_path_to_error::deserialize::<_, ChatRequest<'_>>(&mut json).err()?;
    // What is no JSON at all is no field's fault.
    let place = error.inner().is_data().then(|| error.path().to_string())?;
    (place != ".").then_some(place)
}

/// Fields that are accepted without effect are still what they are.
pub(super) fn check(request: &ChatRequest<'_>) -> Result<(), Problem> {
    let is_number = |value| matches!(value, Skipped::Number);
    let is_text = |value| matches!(value, Skipped::Text);
    let is_object = |value| matches!(value, Skipped::Object);
    let is_switch = |value| matches!(value, Skipped::True | Skipped::False);
    let all: [(&str, Option<Skipped>, &str, &dyn Fn(Skipped) -> bool); 14] = [
        ("temperature", request.temperature, "a number", &is_number),
        ("top_p", request.top_p, "a number", &is_number),
        ("seed", request.seed, "a number", &is_number),
        ("presence_penalty", request.presence_penalty, "a number", &is_number),
        ("frequency_penalty", request.frequency_penalty, "a number", &is_number),
        ("logit_bias", request.logit_bias, "an object", &is_object),
        ("metadata", request.metadata, "an object", &is_object),
        ("reasoning_effort", request.reasoning_effort, "a text", &is_text),
        ("verbosity", request.verbosity, "a text", &is_text),
        ("user", request.user, "a text", &is_text),
        ("prompt_cache_key", request.prompt_cache_key, "a text", &is_text),
        ("safety_identifier", request.safety_identifier, "a text", &is_text),
        ("service_tier", request.service_tier, "a text", &is_text),
        ("store", request.store, "`true` or `false`", &is_switch),
    ];
    for (field, value, form, has_form) in all {
        if value.is_some_and(|value| value != Skipped::Null && !has_form(value)) {
            return Err(Problem::invalid(field, format!("`{field}` must be {form}")));
        }
    }
    Ok(())
}
