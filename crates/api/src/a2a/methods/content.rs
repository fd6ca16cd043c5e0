//! What a client says, as content of a prompt.

use gembridge_core::model::{Content, PromptAbilities};

use crate::a2a::error::{Fault, Reason};
use crate::a2a::model::Part;

/// The parts of a message as content. Kinds that no agent reads are refused by name.
pub fn contents(parts: &[Part], abilities: Option<PromptAbilities>) -> Result<Vec<Content>, Fault> {
    let contents = parts.iter().map(|part| {
        let content = content(part)?;
        match abilities {
            Some(abilities) if !abilities.takes(&content) => Err(refused(mime(part))),
            _ => Ok(content),
        }
    });
    contents.collect()
}

fn content(part: &Part) -> Result<Content, Fault> {
    let kind = mime(part);
    Ok(match part {
        Part::Text(text) => Content::Text(text.clone()),
        Part::Data(data) => Content::text(data.to_string()),
        Part::Url { name, mime, url } => {
            let name = name.clone().unwrap_or_else(|| url.clone());
            Content::Link { uri: url.clone(), name, mime: mime.clone() }
        }
        Part::Raw { data, .. } if kind.starts_with("image/") => {
            Content::Image { mime: kind.into(), data: data.clone(), uri: None }
        }
        Part::Raw { data, .. } if kind.starts_with("audio/") => {
            Content::Audio { mime: kind.into(), data: data.clone() }
        }
        Part::Raw { name, data, .. } if is_document(kind) => {
            Content::file(name.as_deref().unwrap_or("file"), kind, data.clone())
        }
        Part::Raw { .. } => return Err(refused(kind)),
    })
}

fn mime(part: &Part) -> &str {
    match part {
        Part::Raw { mime, .. } | Part::Url { mime, .. } => mime.as_deref().unwrap_or("application/octet-stream"),
        Part::Text(_) => "text/plain",
        Part::Data(_) => "application/json",
    }
}

/// Files that are not text, and that agents read nevertheless.
const DOCUMENTS: [&str; 4] = ["application/json", "application/pdf", "application/xml", "application/octet-stream"];

fn is_document(mime: &str) -> bool {
    mime.starts_with("text/") || DOCUMENTS.contains(&mime)
}

fn refused(mime: &str) -> Fault {
    let shown: String = mime.chars().take(64).flat_map(char::escape_default).collect();
    let message = format!("the agent does not take `{shown}`; send text, or a kind that the agent card lists");
    Fault::new(Reason::ContentTypeNotSupported, message)
}
