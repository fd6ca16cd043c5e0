//! Content of the core as blocks. Nothing is dropped: what has no block of its own is carried whole.

use gembridge_core::model::{Content, Opaque, Text};
use serde_json::Value;

use crate::message::{Block, Source};

pub(crate) fn block(content: &Content) -> Block {
    match content {
        Content::Text(text) => Block::Text { text: owned(text) },
        Content::Image { data, uri: Some(uri), .. } if data.is_empty() => {
            Block::Image { source: Source::Url { url: uri.to_string() } }
        }
        Content::Image { mime, data, .. } => Block::Image { source: base64(mime, data) },
        Content::Audio { mime, data } => Block::Audio { source: base64(mime, data) },
        Content::Link { uri, name, .. } => Block::ResourceLink { uri: uri.to_string(), name: name.to_string() },
        Content::Document { uri, mime, text } => Block::Document {
            source: Source::Text { media_type: mime.as_deref().unwrap_or("text/plain").to_owned(), data: owned(text) },
            title: uri.to_string(),
        },
        Content::Blob { uri, mime, data } => Block::Document {
            source: base64(mime.as_deref().unwrap_or("application/octet-stream"), data),
            title: uri.to_string(),
        },
        Content::Other { kind, body } => Block::Other { kind: kind.to_string(), body: value(body) },
    }
}

/// Structured data as it is, or as text when it is not JSON.
pub(crate) fn value(opaque: &Opaque) -> Value {
    serde_json::from_slice(&opaque.0).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&opaque.0).into_owned()))
}

pub(crate) fn owned(text: &Text) -> String {
    text.to_str().into_owned()
}

fn base64(media_type: &str, data: &Text) -> Source {
    Source::Base64 { media_type: media_type.to_owned(), data: owned(data) }
}
