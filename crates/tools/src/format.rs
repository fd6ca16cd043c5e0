//! Answers in a given form: the tool by which an agent delivers one, and the check of what it delivers.

mod find;
mod weight;

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::Opaque;
use gembridge_core::tool_host::{Format, FormatSpec};
use jsonschema::{PatternOptions, Validator};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Map, Value, json};

use crate::list::without_additions;

/// The tool by which an agent delivers its answer.
pub const ANSWER: &str = "structured_output";
/// Where the answer stands among the arguments when it is no object itself.
const DATA: &str = "data";
/// What an agent gets to read of what is wrong.
const COMPLAINTS: usize = 8;
const COMPLAINT_LENGTH: usize = 400;
/// Steps that a pattern may take back on one text.
const BACKTRACKING: usize = 10_000;

/// A form given by a JSON schema, or any JSON object.
#[derive(Debug)]
pub struct JsonFormat {
    spec: FormatSpec,
    validator: Option<Checked>,
    carriage: Carriage,
    schema: Arc<JsonObject>,
}

/// A schema that answers are checked against.
#[derive(Debug)]
struct Checked {
    written: Value,
    validator: Validator,
}

/// How an answer travels as the arguments of a tool, which are always an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carriage {
    /// The arguments are the answer.
    Whole,
    /// The answer is one argument.
    Wrapped,
}

impl JsonFormat {
    /// The message says what is wrong with the schema.
    pub fn new(spec: &FormatSpec) -> Result<Self, String> {
        let Some(written) = &spec.schema else {
            let schema = Arc::new(JsonObject::from_iter([("type".to_owned(), "object".into())]));
            return Ok(Self { spec: spec.clone(), validator: None, carriage: Carriage::Whole, schema });
        };
        let schema: Value =
            serde_json::from_slice(&written.0).map_err(|error| format!("the schema is not JSON: {error}"))?;
        let unusable = |why: String| format!("the schema cannot be used: {}", shortened(&why));
        weight::of_schema(&schema).map_err(|error| unusable(error.to_string()))?;
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING))
            .build(&schema)
            .map_err(|error| unusable(error.to_string()))?;
        let checked = Checked { written: schema.clone(), validator };
        let (carriage, schema) = match schema {
            Value::Object(schema) if schema.get("type").and_then(Value::as_str) == Some("object") => {
                (Carriage::Whole, schema)
            }
            other => (Carriage::Wrapped, wrapped(other)),
        };
        Ok(Self { spec: spec.clone(), validator: Some(checked), carriage, schema: Arc::new(schema) })
    }

    /// The tool as agents see it.
    pub fn tool(&self) -> Tool {
        let what = match (&self.spec.name, &self.spec.description) {
            (Some(name), Some(description)) => format!(" `{name}`: {description}"),
            (Some(name), None) => format!(" `{name}`."),
            (None, Some(description)) => format!(" {description}"),
            (None, None) => String::new(),
        };
        let description = format!("Delivers the final answer to the user.{what}");
        Tool::new(ANSWER, description, self.schema.clone())
    }

    /// Checks what an agent delivered by the tool.
    pub fn deliver(&self, arguments: JsonObject) -> Result<Opaque, String> {
        let mut arguments = without_additions(arguments, &self.schema);
        let answer = match self.carriage {
            Carriage::Whole => Value::Object(arguments),
            Carriage::Wrapped => arguments
                .shift_remove(DATA)
                .ok_or_else(|| format!("the answer is missing: pass it as the argument `{DATA}`"))?,
        };
        self.check(&answer)?;
        serde_json::to_vec(&answer).map(|bytes| Opaque(Bytes::from(bytes))).map_err(|error| error.to_string())
    }

    fn check(&self, answer: &Value) -> Result<(), String> {
        let Some(Checked { written, validator }) = &self.validator else {
            return if answer.is_object() { Ok(()) } else { Err("the answer is not a JSON object".to_owned()) };
        };
        if weight::of_answer(written, answer).is_err() {
            return Err("the answer is nested too deeply to be checked; make it flatter".to_owned());
        }
        let complaints: Vec<_> = validator
            .iter_errors(answer)
            .take(COMPLAINTS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the answer" } else { &place };
                format!("at {place}: {}", shortened(&error.to_string()))
            })
            .collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    }
}

impl Format for JsonFormat {
    fn spec(&self) -> Option<&FormatSpec> {
        Some(&self.spec)
    }

    fn find_in(&self, text: &str) -> Result<Opaque, String> {
        let mut first_complaint = None;
        for found in find::candidates(text) {
            match self.check(&found.value) {
                Ok(()) => return Ok(Opaque(Bytes::copy_from_slice(found.text.as_bytes()))),
                Err(complaint) => first_complaint = first_complaint.or(Some(complaint)),
            }
        }
        Err(first_complaint.unwrap_or_else(|| "there is no JSON in the answer".to_owned()))
    }

    fn instruction(&self) -> String {
        let how = match self.carriage {
            Carriage::Whole => "with the answer as its arguments".to_owned(),
            Carriage::Wrapped => format!("with the answer as its argument `{DATA}`"),
        };
        format!(
            "Deliver your final answer by calling the tool `{ANSWER}` {how}. What its schema asks for is all that the \
             user reads; do not repeat the answer as text."
        )
    }
}

/// An object schema with the form as its only property. What the form refers to inside of itself is still found.
fn wrapped(mut schema: Value) -> Map<String, Value> {
    let mut outer = Map::new();
    if let Value::Object(inner) = &mut schema {
        for shared in ["$schema", "$defs", "definitions"] {
            if let Some(taken) = inner.shift_remove(shared) {
                outer.insert(shared.to_owned(), taken);
            }
        }
    }
    let prefix = format!("#/properties/{DATA}");
    point_into(&mut schema, &prefix);
    outer.values_mut().for_each(|shared| point_into(shared, &prefix));
    outer.insert("type".to_owned(), "object".into());
    outer.insert("properties".to_owned(), json!({ DATA: schema }));
    outer.insert("required".to_owned(), json!([DATA]));
    outer.insert("additionalProperties".to_owned(), false.into());
    outer
}

/// Lets references to the former root point to where it stands now.
fn point_into(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(schema) => {
            for (key, value) in schema.iter_mut() {
                match value {
                    Value::String(target) if key == "$ref" => {
                        let shared = target.starts_with("#/$defs/") || target.starts_with("#/definitions/");
                        if let Some(rest) = target.strip_prefix('#').filter(|_| !shared)
                            && (rest.is_empty() || rest.starts_with('/'))
                        {
                            *target = format!("{prefix}{rest}");
                        }
                    }
                    other => point_into(other, prefix),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| point_into(schema, prefix)),
        _ => {}
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(COMPLAINT_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
