//! Content blocks.

use gembridge_core::model::Content;
use serde_json::{Value, json};

use crate::acp::wire;

pub fn block(content: &Content) -> Value {
    let some = |text: &str| Some(text.to_owned());
    let mime = |mime: &Option<std::sync::Arc<str>>| mime.as_deref().map(str::to_owned);
    let block = match content {
        Content::Text(text) => {
            wire::Block { kind: "text".into(), text: Some(text.to_str().into_owned()), ..wire::Block::default() }
        }
        Content::Image { mime, data, uri } => wire::Block {
            kind: "image".into(),
            mime_type: some(mime),
            data: Some(data.to_str().into_owned()),
            uri: uri.as_deref().map(str::to_owned),
            ..wire::Block::default()
        },
        Content::Audio { mime, data } => wire::Block {
            kind: "audio".into(),
            mime_type: some(mime),
            data: Some(data.to_str().into_owned()),
            ..wire::Block::default()
        },
        Content::Link { uri, name, mime: kind } => wire::Block {
            kind: "resource_link".into(),
            uri: some(uri),
            name: some(name),
            mime_type: mime(kind),
            ..wire::Block::default()
        },
        Content::Document { uri, mime: kind, text } => resource(wire::Resource {
            uri: uri.to_string(),
            mime_type: mime(kind),
            text: Some(text.to_str().into_owned()),
            blob: None,
        }),
        Content::Blob { uri, mime: kind, data } => resource(wire::Resource {
            uri: uri.to_string(),
            mime_type: mime(kind),
            text: None,
            blob: Some(data.to_str().into_owned()),
        }),
        Content::Other { body, .. } => return serde_json::from_slice(&body.0).unwrap_or(Value::Null),
    };
    json!(block)
}

fn resource(resource: wire::Resource) -> wire::Block {
    wire::Block { kind: "resource".into(), resource: Some(resource), ..wire::Block::default() }
}
