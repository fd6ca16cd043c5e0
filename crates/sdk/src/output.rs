//! Answers of a type.

use bytes::Bytes;
use gembridge_core::model::Opaque;
use gembridge_core::tool_host::FormatSpec;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::error::{ErrorKind, EvaluateError, Phase};
use crate::reply::{Evaluated, Reply, Stop};

/// The form that an answer of this type has.
pub(crate) fn form_of<T: JsonSchema>() -> FormatSpec {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let description = schema.get("description").and_then(|text| text.as_str()).map(Into::into);
    FormatSpec {
        name: Some(T::schema_name().as_ref().into()),
        description,
        schema: Some(Opaque(Bytes::from(schema.to_value().to_string()))),
    }
}

/// The value of an answer that was checked against the schema already.
pub(crate) fn typed<T: DeserializeOwned>(reply: Reply) -> Result<Evaluated<T>, EvaluateError> {
    let error = |message: String| {
        let said = cut(&reply.text);
        EvaluateError::new(Phase::Response, ErrorKind::Output { said }, message)
    };
    if reply.stop == Stop::Refusal {
        return Err(error(format!("structured output is required, but the agent refused: {}", cut(&reply.text))));
    }
    let mut json = serde_json::Deserializer::from_str(&reply.text);
    match serde_path_to_error::deserialize(&mut json) {
        Ok(value) => Ok(Evaluated { value, reply }),
        // The schema says less than the type does.
        Err(wrong) => Err(error(format!(
            "structured output is required, but the answer fits the schema and not the type: {wrong}; say it in the schema too"
        ))),
    }
}

/// As much of a text as an error carries.
const BRIEF: usize = 2_000;

pub(crate) fn cut(text: &str) -> String {
    text.chars().take(BRIEF).collect()
}
