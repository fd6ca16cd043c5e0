//! The form of an answer that a client asks for.

use gembridge_core::tool_host::FormatSpec;

use crate::dialect::{self, LARGEST_SCHEMA, brief};
use crate::openai::wire::ResponseFormat;
use crate::problem::Problem;

/// `None`: text.
pub(super) fn format(format: Option<&ResponseFormat<'_>>) -> Result<Option<FormatSpec>, Problem> {
    let Some(format) = format else { return Ok(None) };
    match (format.kind.as_deref(), &format.json_schema) {
        (None | Some("text"), _) => Ok(None),
        (Some("json_object"), _) => Ok(Some(FormatSpec { name: None, description: None, schema: None })),
        (Some("json_schema"), Some(wanted)) => {
            let schema = wanted.schema.map(|raw| {
                if raw.text.len() > LARGEST_SCHEMA {
                    let message = format!("the schema has {} bytes; {LARGEST_SCHEMA} is the most", raw.text.len());
                    return Err(Problem::invalid(PLACE, message));
                }
                dialect::schema(raw, || PLACE.to_owned())
            });
            Ok(Some(FormatSpec {
                name: wanted.name.as_deref().map(Into::into),
                description: wanted.description.as_deref().map(Into::into),
                schema: schema.transpose()?,
            }))
        }
        (Some("json_schema"), None) => {
            let message = "`response_format` of type `json_schema` needs `json_schema` with a `schema`";
            Err(Problem::invalid("response_format.json_schema", message))
        }
        (Some(other), _) => {
            let message =
                format!("`{}` is no form of an answer; use `text`, `json_object` or `json_schema`", brief(other));
            Err(Problem::invalid("response_format.type", message))
        }
    }
}

/// Where the schema stands in a request.
pub(in crate::openai) const PLACE: &str = "response_format.json_schema.schema";
