//! Content blocks as parts and artifacts.

use std::sync::Arc;

use gembridge_core::model::{Content, Text, TurnId};
use serde_json::json;

use crate::a2a::model::{Artifact, Continuation, Part};

/// What a client said, as it is shown to it again.
pub fn parts(content: &[Content]) -> Vec<Part> {
    content.iter().map(part).collect()
}

/// A thought with its subject apart, where the agent marks one as `**subject**`.
pub fn thought(text: &Text) -> Part {
    let whole = text.to_str();
    let marked = whole.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let (subject, description) = marked.unwrap_or(("", &whole));
    Part::Data(json!({ "subject": subject, "description": description.trim_start_matches('\n') }))
}

/// A block of the answer that is no text is an artifact. Blocks of one address are pieces of one artifact.
pub fn artifact(block: &Content, known: &[Artifact], turn: TurnId) -> Option<(Artifact, Continuation)> {
    let (address, part) = match block {
        Content::Text(_) => return None,
        Content::Document { uri, mime, text } if is_json(mime.as_deref()) => {
            let data = serde_json::from_str(&text.to_str()).ok();
            (Some(uri), data.map_or_else(|| Part::Text(text.clone()), Part::Data))
        }
        Content::Document { uri, .. } | Content::Blob { uri, .. } | Content::Link { uri, .. } => {
            (Some(uri), part(block))
        }
        Content::Image { uri, .. } => (uri.as_ref(), part(block)),
        Content::Audio { .. } | Content::Other { .. } => (None, part(block)),
    };
    let name = address.map(|uri| file_name(uri));
    let id: Arc<str> = match address {
        Some(uri) => format!("{}-{uri}", turn.0).into(),
        None => format!("{}-{}", turn.0, known.len()).into(),
    };
    let is_known = known.iter().any(|artifact| artifact.id == id);
    let continuation = if is_known { Continuation::Appended } else { Continuation::First };
    Some((Artifact { id, name, parts: vec![part] }, continuation))
}

fn part(content: &Content) -> Part {
    match content {
        Content::Text(text) | Content::Document { text, .. } => Part::Text(text.clone()),
        Content::Image { mime, data, uri } => {
            Part::Raw { name: uri.as_deref().map(file_name), mime: Some(Arc::clone(mime)), data: data.clone() }
        }
        Content::Audio { mime, data } => Part::Raw { name: None, mime: Some(Arc::clone(mime)), data: data.clone() },
        Content::Blob { uri, mime, data } => {
            Part::Raw { name: Some(file_name(uri)), mime: mime.clone(), data: data.clone() }
        }
        Content::Link { uri, name, mime } => {
            Part::Url { name: Some(Arc::clone(name)), mime: mime.clone(), url: Arc::clone(uri) }
        }
        Content::Other { body, .. } => Part::Data(serde_json::from_slice(&body.0).unwrap_or_default()),
    }
}

fn is_json(mime: Option<&str>) -> bool {
    mime == Some("application/json")
}

fn file_name(uri: &str) -> Arc<str> {
    uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri).into()
}
