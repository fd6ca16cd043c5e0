//! What a tool returned, as agents read it.

use gembridge_core::model::{Content, ReturnOutcome, ToolReturn};
use rmcp::model::{
    CallToolResult, ContentBlock, RequestId, Resource, ResourceContents, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use serde_json::{Value, json};

pub fn result(returned: ToolReturn) -> CallToolResult {
    let structured = returned.content.first().and_then(structured);
    let content = returned.content.into_iter().map(block).collect();
    let mut result = match returned.outcome {
        ReturnOutcome::Done => CallToolResult::success(content),
        ReturnOutcome::Failed => CallToolResult::error(content),
    };
    result.structured_content = structured;
    result
}

/// Some agents read a text that is JSON as the structured result, and refuse it where it is no object: those get one.
fn structured(first: &Content) -> Option<Value> {
    let Content::Text(text) = first else { return None };
    let text = text.to_str();
    let may_be_json = text.trim_start().starts_with(|first: char| first.is_ascii_digit() || "-[\"tfn".contains(first));
    let value: Value = may_be_json.then(|| serde_json::from_str(&text).ok()).flatten()?;
    Some(json!({ "result": value }))
}

pub fn failure(message: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// The answer to the request that made the call.
pub fn as_message(mut result: CallToolResult, request: RequestId) -> ServerSseMessage {
    // Only versions that we do not speak know this field.
    result.result_type = None;
    ServerSseMessage::from_message(ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), request))
}

fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text.to_str()),
        Content::Image { mime, data, uri: _ } => ContentBlock::image(data.to_str(), mime.as_ref()),
        Content::Audio { mime, data } => ContentBlock::audio(data.to_str(), mime.as_ref()),
        Content::Link { uri, name, mime } => {
            let link = Resource::new(uri.as_ref(), name.as_ref());
            ContentBlock::resource_link(match mime {
                Some(mime) => link.with_mime_type(mime.as_ref()),
                None => link,
            })
        }
        Content::Document { uri, mime, text } => embedded(ResourceContents::text(text.to_str(), uri.as_ref()), mime),
        Content::Blob { uri, mime, data } => embedded(ResourceContents::blob(data.to_str(), uri.as_ref()), mime),
        // A kind that has no name here is still worth reading.
        Content::Other { kind: _, body } => ContentBlock::text(String::from_utf8_lossy(&body.0)),
    }
}

fn embedded(resource: ResourceContents, mime: Option<std::sync::Arc<str>>) -> ContentBlock {
    ContentBlock::resource(match mime {
        Some(mime) => resource.with_mime_type(mime.as_ref()),
        None => resource,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use gembridge_core::model::{Opaque, Text};

    #[test]
    fn every_kind_of_content_has_its_shape() {
        let mime = || Some("text/csv".into());
        let content = vec![
            Content::text("a \"quoted\"\nline"),
            Content::Text(Text::escaped(Bytes::from_static(b"caf\\u00e9"))),
            Content::Image { mime: "image/png".into(), data: "aGk=".into(), uri: None },
            Content::Audio { mime: "audio/wav".into(), data: "aGk=".into() },
            Content::Link { uri: "file:///a".into(), name: "a".into(), mime: mime() },
            Content::Document { uri: "file:///b".into(), mime: mime(), text: "1,2".into() },
            Content::Blob { uri: "file:///c".into(), mime: None, data: "aGk=".into() },
            Content::Other { kind: "odd".into(), body: Opaque(Bytes::from_static(b"{\"x\":1}")) },
        ];
        let result = result(ToolReturn { outcome: ReturnOutcome::Done, content });
        assert_eq!(
            serde_json::to_value(&result.content).unwrap(),
            json!([
                {"type": "text", "text": "a \"quoted\"\nline"},
                {"type": "text", "text": "café"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/csv"},
                {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/csv", "text": "1,2"}},
                {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk="}},
                {"type": "text", "text": "{\"x\":1}"},
            ])
        );
        assert_ne!(result.is_error, Some(true));
    }

    #[test]
    fn a_text_that_is_json_and_no_object_comes_as_a_member_of_one_too() {
        let structured = |text: &str| {
            let content = vec![Content::text(text)];
            result(ToolReturn { outcome: ReturnOutcome::Done, content }).structured_content
        };
        assert_eq!(structured("42"), Some(json!({"result": 42})));
        assert_eq!(structured(" [1, 2]"), Some(json!({"result": [1, 2]})));
        assert_eq!(structured("\"x\""), Some(json!({"result": "x"})));
        assert_eq!(structured("null"), Some(json!({"result": null})));
        for other in ["{\"a\":1}", "12 degrees", "sunny", "", "- a list"] {
            assert_eq!(structured(other), None, "{other}");
        }
    }

    #[test]
    fn a_failure_stays_a_failure() {
        assert_eq!(super::result(ToolReturn::failed("no such city")).is_error, Some(true));
    }
}
