//! Tools that the client runs: what each must be like, in every dialect.

use std::collections::HashSet;

use bytes::Bytes;
use gembridge_core::exchange::OfferedTool;
use gembridge_core::model::{ClientTool, Opaque};
use gembridge_core::tool_host::FormatSpec;

use super::brief;
use crate::json::{Raw, Skipped};
use crate::problem::Problem;

/// A validator is made of a schema for each request.
pub(crate) const LARGEST_SCHEMA: usize = 1 << 20;

/// The most that the names, descriptions and schemas of one request may have together. A session keeps them as long as it lives.
const LARGEST_TOOLS: usize = 1 << 20;

/// Where a dialect says nothing else.
const LONGEST_NAME: usize = 64;

/// A tool as the agent is offered it. `place` names it in an error.
pub(crate) fn client_tool(
    place: &str,
    name: Option<&str>,
    description: Option<&str>,
    schema: Option<Opaque>,
    strict: bool,
) -> Result<OfferedTool, Problem> {
    client_tool_within(LONGEST_NAME, place, name, description, schema, strict)
}

/// The same in a dialect whose names may have so many characters. Agents are shown shorter ones where they must be.
pub(crate) fn client_tool_within(
    longest: usize,
    place: &str,
    name: Option<&str>,
    description: Option<&str>,
    schema: Option<Opaque>,
    strict: bool,
) -> Result<OfferedTool, Problem> {
    let name = name.unwrap_or_default();
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=longest).contains(&name.len()) || !name.bytes().all(is_sound) {
        let message = format!(
            "`{}` is no name of a tool; use letters, digits, `_` and `-`, at most {longest} of them",
            brief(name)
        );
        return Err(Problem::invalid(format!("{place}.name"), message));
    }
    let tool = ClientTool { name: name.into(), description: description.map(Into::into), schema };
    Ok(OfferedTool { tool, strict })
}

/// A schema as it was written.
pub(crate) fn schema(raw: Raw<'_>, place: impl Fn() -> String) -> Result<Opaque, Problem> {
    if raw.kind != Skipped::Object {
        return Err(Problem::invalid(place(), "a schema is an object, such as `{\"type\": \"object\"}`"));
    }
    Ok(Opaque(Bytes::copy_from_slice(raw.text.as_bytes())))
}

/// The form of an answer, by a schema.
pub(crate) fn form(raw: Raw<'_>, place: &str) -> Result<FormatSpec, Problem> {
    if raw.text.len() > LARGEST_SCHEMA {
        let message = format!("the schema has {} bytes; {LARGEST_SCHEMA} is the most", raw.text.len());
        return Err(Problem::invalid(place, message));
    }
    let schema = schema(raw, || place.to_owned())?;
    Ok(FormatSpec { name: None, description: None, schema: Some(schema) })
}

/// Refuses a name that stands twice, and more than a session may keep. `list` is the field of the tools.
pub(crate) fn check_tools(offered: &[OfferedTool], list: &str) -> Result<(), Problem> {
    let size = |tool: &ClientTool| {
        let (description, schema) = (tool.description.as_ref(), tool.schema.as_ref());
        tool.name.len() + description.map_or(0, |text| text.len()) + schema.map_or(0, |schema| schema.0.len())
    };
    let bytes: usize = offered.iter().map(|offered| size(&offered.tool)).sum();
    if bytes > LARGEST_TOOLS {
        let message = format!("the tools have {bytes} bytes together; {LARGEST_TOOLS} is the most");
        return Err(Problem::invalid(list, message));
    }
    let mut seen = HashSet::new();
    match offered.iter().position(|offered| !seen.insert(&offered.tool.name)) {
        Some(at) => {
            let message = format!("the tool `{}` stands twice; give each a name of its own", offered[at].tool.name);
            Err(Problem::invalid(format!("{list}[{at}]"), message))
        }
        None => Ok(()),
    }
}

/// Leaves only the tools with these names. `place` is where they are named.
pub(crate) fn keep<'n>(
    offered: &mut Vec<OfferedTool>,
    place: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), Problem> {
    let names: HashSet<&str> = names.into_iter().collect();
    if let Some(unknown) = names.iter().find(|name| !offered.iter().any(|offered| &*offered.tool.name == **name)) {
        let message = format!("`{}` is none of the tools of this request; name one that is", brief(unknown));
        return Err(Problem::invalid(place, message));
    }
    offered.retain(|offered| names.contains(&*offered.tool.name));
    Ok(())
}
