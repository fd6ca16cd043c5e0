//! Whether fields that have no effect have the form that they must have, by name.

use crate::openai::wire::{ChatRequest, Skipped};
use crate::problem::Problem;

/// Fields that are accepted without effect are still what they are.
pub(super) fn check(request: &ChatRequest<'_>) -> Result<(), Problem> {
    let numbers = [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("seed", request.seed),
        ("presence_penalty", request.presence_penalty),
        ("frequency_penalty", request.frequency_penalty),
    ];
    let texts = [
        ("reasoning_effort", request.reasoning_effort),
        ("verbosity", request.verbosity),
        ("user", request.user),
        ("prompt_cache_key", request.prompt_cache_key),
        ("safety_identifier", request.safety_identifier),
    ];
    let objects = [("logit_bias", request.logit_bias), ("metadata", request.metadata)];
    all_are(&numbers, "a number", |value| matches!(value, Skipped::Number))?;
    all_are(&texts, "a text", |value| matches!(value, Skipped::Text))?;
    all_are(&objects, "an object", |value| matches!(value, Skipped::Object))?;
    let is_switch = |value| matches!(value, Skipped::True | Skipped::False);
    all_are(&[("store", request.store)], "`true` or `false`", is_switch)
}

fn all_are(fields: &[(&str, Option<Skipped>)], form: &str, has_form: impl Fn(Skipped) -> bool) -> Result<(), Problem> {
    let is_wrong = |value: Skipped| value != Skipped::Null && !has_form(value);
    match fields.iter().find(|(_, value)| value.is_some_and(&is_wrong)) {
        Some((field, _)) => Err(Problem::invalid(*field, format!("`{field}` must be {form}"))),
        None => Ok(()),
    }
}
