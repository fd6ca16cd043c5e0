//! Parts in the form of the Gemini API, which Gemini CLI and Qwen Code write, as blocks.

use gembridge_unified::{Block, Body, Source};
use serde_json::Value;

use crate::json::Json;
use crate::output::Output;

/// One part of a content.
pub(crate) enum Part<'a> {
    Text(&'a str),
    Thought(&'a str),
    /// A call; `id` is absent in the oldest files.
    Call {
        id: Option<&'a str>,
        name: &'a str,
        args: &'a Json<'a>,
    },
    Response {
        id: &'a str,
        response: &'a Json<'a>,
    },
    /// Anything else, whole.
    Other(&'a Json<'a>),
}

/// The parts of a `PartListUnion`: a text, a part, or an array of both.
pub(crate) fn parts<'a>(content: &'a Json<'a>) -> Vec<Part<'a>> {
    match content {
        Json::List(list) => list.iter().filter_map(part).collect(),
        single => part(single).into_iter().collect(),
    }
}

fn part<'a>(part: &'a Json<'a>) -> Option<Part<'a>> {
    if let Some(text) = part.as_str() {
        return Some(Part::Text(text));
    }
    if let Some(call) = part.get("functionCall") {
        let name = call["name"].as_str().unwrap_or("tool");
        return Some(Part::Call { id: call["id"].as_str(), name, args: &call["args"] });
    }
    if let Some(answer) = part.get("functionResponse") {
        let id = answer["id"].as_str().or_else(|| answer["name"].as_str()).unwrap_or_default();
        return Some(Part::Response { id, response: &answer["response"] });
    }
    if let Some(text) = part.get("text").and_then(Json::as_str) {
        let is_thought = part["thought"].is_true();
        return Some(if is_thought { Part::Thought(text) } else { Part::Text(text) });
    }
    matches!(part, Json::Object(fields) if !fields.is_empty()).then_some(Part::Other(part))
}

/// A part that is neither text, nor a thought, nor a call, nor a response.
pub(crate) fn other(part: &Json<'_>) -> Block {
    let text = |value: &Json<'_>| value.as_str().unwrap_or_default().to_owned();
    if let Some(data) = part.get("inlineData") {
        let media_type = text(&data["mimeType"]);
        let is_image = media_type.starts_with("image/");
        let source = Source::Base64 { media_type, data: text(&data["data"]) };
        return if is_image { Block::Image { source } } else { Block::Document { source, title: String::new() } };
    }
    if let Some(file) = part.get("fileData") {
        return Block::ResourceLink { uri: text(&file["fileUri"]), name: text(&file["mimeType"]) };
    }
    let kind = match part {
        Json::Object(fields) => fields.first().map(|(name, _)| name.to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    Block::Other { kind, body: part.clone().into() }
}

/// Whether a call went wrong, as its agent says beside the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Only the response tells.
    Untold,
    Failed,
}

/// The result of a call from its response and the parts beside it.
pub(crate) fn tool_result(id: &str, response: &Json<'_>, beside: &[&Json<'_>], verdict: Verdict) -> Block {
    let failure = response.get("error").filter(|error| !matches!(error, Json::Null));
    let said = failure.or_else(|| response.get("output")).unwrap_or(response);
    let text = match said {
        Json::Text(text) => text.to_string(),
        Json::Null => String::new(),
        structured => structured.to_string(),
    };
    let exit_code = exit_code(&text);
    let mut blocks = vec![Block::Text { text }];
    blocks.extend(beside.iter().map(|part| other(part)));
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: Body::plain_where_possible(blocks),
        is_error: verdict == Verdict::Failed || failure.is_some(),
        exit_code,
    }
}

/// A shell command that failed is a success of its tool: the code stands in a line of the output only.
fn exit_code(output: &str) -> Option<i64> {
    output.lines().rev().find_map(|line| line.trim().strip_prefix("Exit Code: ")?.trim().parse().ok())
}

/// Text parts of a content, one after another.
pub(crate) fn text(content: &Json<'_>) -> String {
    let parts = parts(content);
    parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(*text) } else { None }).collect()
}

/// A part as a block where it stands alone: the order of the parts is the order of the blocks.
pub(crate) fn block(part: &Part<'_>, out: &Output<'_>) -> Option<Block> {
    match part {
        Part::Text("") | Part::Thought("") => None,
        Part::Text(text) => Some(Block::Text { text: (*text).to_owned() }),
        Part::Thought(text) => Some(Block::Thinking { thinking: (*text).to_owned() }),
        Part::Call { id, name, args } => Some(out.tool_use(id.unwrap_or(name), name, &Value::from((*args).clone()))),
        Part::Response { id, response } => Some(tool_result(id, response, &[], Verdict::Untold)),
        Part::Other(part) => Some(other(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_read_from_its_own_line_only() {
        for (output, code) in [
            ("Output: x\nExit Code: 3\nProcess Group PGID: 1", Some(3)),
            ("<untrusted_context>\nOutput: x\nExit Code: 127\n</untrusted_context>", Some(127)),
            ("Output: the Exit Code: 3 is a lie", None),
            ("Exit Code: (none)", None),
            ("", None),
        ] {
            assert_eq!(exit_code(output), code, "{output}");
        }
    }
}
