//! What is not text in a conversation: images, audio and files that come inside the request.

use gembridge_core::model::{Content, Message, Part, PromptAbilities, Role, Text};

use super::{Source, brief};
use crate::problem::Problem;

/// `data:` with its type and its base64.
pub(crate) struct DataUri<'a> {
    pub mime: &'a str,
    pub data: &'a str,
}

/// Scheme, type and encoding may stand in any case.
pub(crate) fn data_uri(uri: &str) -> Option<DataUri<'_>> {
    let (head, data) = strip_prefix(uri, "data:")?.split_once(',')?;
    let (head, _) = head.rsplit_once(';').filter(|(_, encoding)| encoding.eq_ignore_ascii_case("base64"))?;
    let mime = head.split(';').next().unwrap_or_default();
    is_mime(mime).then_some(DataUri { mime, data })
}

fn is_mime(mime: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+' | b'-' | b'.' | b'_');
    mime.contains('/') && mime.len() <= 127 && mime.bytes().all(plain)
}

/// An image whose address is a data URI.
pub(crate) fn image_of_uri(url: &str, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let uri = data_uri(url).ok_or_else(|| {
        let message = "an image must be a data URI (`data:image/png;base64,…`); addresses are not fetched";
        Problem::invalid(place, message)
    })?;
    image(uri.mime, uri.data, body, place)
}

/// An image in base64, of this type.
pub(crate) fn image(mime: &str, data: &str, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    if strip_prefix(mime, "image/").is_none() || !is_mime(mime) {
        return Err(Problem::invalid(place, format!("`{}` is no type of image", brief(mime))));
    }
    let data = base64(data, body, place)?;
    Ok(Content::Image { mime: mime.to_ascii_lowercase().into(), data, uri: None })
}

/// A file in base64, of this type.
pub(crate) fn file(name: &str, uri: &DataUri<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let data = base64(uri.data, body, place)?;
    Ok(Content::file(name, &uri.mime.to_ascii_lowercase(), data))
}

/// The data must be what it says.
pub(crate) fn base64(data: &str, body: Source<'_>, place: &str) -> Result<Text, Problem> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err(Problem::invalid(place, "the data is not base64"));
    }
    Ok(body.text(data))
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Refuses what the agent cannot take in a prompt. `place` names the content of the message with this number.
pub(crate) fn check_abilities(
    conversation: &[Message],
    abilities: PromptAbilities,
    agent: &str,
    place: impl Fn(usize) -> String,
) -> Result<(), Problem> {
    // A tool's results reach the agent by its tool server, which takes every kind.
    let prompted = conversation.iter().enumerate().filter(|(_, message)| message.role != Role::Tool);
    for (at, message) in prompted {
        if let Some(foreign) = message.content().find(|content| !abilities.takes(content)) {
            let what = kind(foreign);
            let message = format!("agent `{agent}` takes no {what} in a prompt; leave them out or name another");
            return Err(Problem::invalid(place(at), message));
        }
    }
    Ok(())
}

fn kind(content: &Content) -> &'static str {
    match content {
        Content::Image { .. } => "images",
        Content::Audio { .. } => "audio",
        Content::Blob { .. } | Content::Document { .. } => "files",
        Content::Text(_) | Content::Link { .. } | Content::Other { .. } => "blocks of this kind",
    }
}

/// A user's message without a word and without anything else.
pub(crate) fn says_nothing(message: &Message) -> bool {
    let is_blank = |part: &Part| matches!(part, Part::Content(Content::Text(text)) if text.to_str().trim().is_empty());
    message.role == Role::User && message.parts.iter().all(is_blank)
}
