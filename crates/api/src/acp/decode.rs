//! Outside → core: parameters by method, the blocks of prompts, answers to questions, and the query of the address.

mod query;

use bytes::Bytes;
use gembridge_core::model::{Answer, AskBody, Content, Opaque, Prompt, SessionId, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::Refusal;
use super::wire;

pub use query::query;

/// The most blocks of one prompt.
const MOST_BLOCKS: usize = 64;

/// The parameters of a request; none is the same as none of them.
pub fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Refusal> {
    let text = params.map_or("{}", |params| params.get());
    if text.starts_with('[') {
        return Err(Refusal::params("`params` must be an object: parameters have names here".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| Refusal::params(format!("the parameters cannot be read: {error}")))
}

/// The session that a request is for.
pub fn session(params: Option<&RawValue>) -> Result<SessionId, Refusal> {
    let named: wire::ForSession = self::params(params)?;
    named.session_id.parse().map_err(|_| Refusal::session(&named.session_id))
}

pub fn wishes(params: Option<&RawValue>) -> Result<wire::Wishes, Refusal> {
    self::params::<wire::WithWishes>(params).map(wire::WithWishes::wishes)
}

pub fn prompt(params: Option<&RawValue>) -> Result<Prompt, Refusal> {
    let request: wire::Prompt<'_> = self::params(params)?;
    if request.prompt.len() > MOST_BLOCKS {
        return Err(Refusal::params(format!("a prompt has at most {MOST_BLOCKS} blocks")));
    }
    let content = request.prompt.into_iter().map(block).collect::<Result<_, _>>()?;
    Ok(Prompt::new(content))
}

/// The folder in which the session of a first prompt shall work. Nearly no prompt names one, so it is looked for before the
/// prompt is read a second time.
pub fn work_in(params: Option<&RawValue>) -> Option<String> {
    let text = params?.get();
    memchr::memmem::find(text.as_bytes(), b"\"work_in\"")?;
    self::params::<wire::WithWorkIn>(params).ok()?.meta?.gembridge?.work_in
}

fn block(raw: &RawValue) -> Result<Content, Refusal> {
    let unread = |error: serde_json::Error| Refusal::params(format!("a block of `prompt` cannot be read: {error}"));
    let block: wire::Block = serde_json::from_str(raw.get()).map_err(unread)?;
    let missing = |field: &str| {
        let kind: String = block.kind.chars().take(32).flat_map(char::escape_default).collect();
        Refusal::params(format!("a block of type `{kind}` needs `{field}`"))
    };
    let mime = || block.mime_type.as_deref().map(Into::into);
    Ok(match block.kind.as_str() {
        "text" => Content::Text(Text::plain(block.text.clone().ok_or_else(|| missing("text"))?)),
        "image" => Content::Image {
            mime: mime().ok_or_else(|| missing("mimeType"))?,
            data: Text::plain(block.data.clone().ok_or_else(|| missing("data"))?),
            uri: block.uri.as_deref().map(Into::into),
        },
        "audio" => Content::Audio {
            mime: mime().ok_or_else(|| missing("mimeType"))?,
            data: Text::plain(block.data.clone().ok_or_else(|| missing("data"))?),
        },
        "resource_link" => Content::Link {
            uri: block.uri.as_deref().ok_or_else(|| missing("uri"))?.into(),
            name: block.name.as_deref().unwrap_or_default().into(),
            mime: mime(),
        },
        "resource" => {
            let resource = block.resource.as_ref().ok_or_else(|| missing("resource"))?;
            let (uri, mime) = (resource.uri.as_str().into(), resource.mime_type.as_deref().map(Into::into));
            match (&resource.text, &resource.blob) {
                (Some(text), _) => Content::Document { uri, mime, text: Text::plain(text.clone()) },
                (None, Some(blob)) => Content::Blob { uri, mime, data: Text::plain(blob.clone()) },
                (None, None) => return Err(missing("resource.text")),
            }
        }
        other => Content::Other { kind: other.into(), body: opaque(raw) },
    })
}

/// What a client answers to a question, in the core's words.
pub fn answer(body: &AskBody, result: &RawValue) -> Result<Answer, Refusal> {
    match body {
        AskBody::Permission { .. } => {
            let permission: wire::Permission = serde_json::from_str(result.get())
                .map_err(|error| Refusal::params(format!("the answer cannot be read: {error}")))?;
            Ok(match permission.outcome {
                wire::Outcome::Selected { option_id } => Answer::Option(option_id.into()),
                wire::Outcome::Cancelled => Answer::Cancelled,
            })
        }
        AskBody::Form { .. } | AskBody::Extension { .. } => Ok(Answer::Result(opaque(result))),
    }
}

pub fn opaque(raw: &RawValue) -> Opaque {
    Opaque(Bytes::copy_from_slice(raw.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Prompt, Refusal> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        prompt(Some(&raw))
    }

    #[test]
    fn blocks_of_every_kind_are_read_and_unknown_ones_kept_whole() {
        let read = read(
            r#"{"prompt":[{"type":"text","text":"a\nb"},{"type":"image","mimeType":"image/png","data":"AA=="},
            {"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"u","text":"t"}},
            {"type":"hologram","depth":3}]}"#,
        );
        let content = read.unwrap().content;
        assert_eq!(content[0], Content::text("a\nb"));
        assert!(matches!(&content[1], Content::Image { mime, .. } if &**mime == "image/png"));
        assert!(matches!(&content[2], Content::Link { .. }) && matches!(&content[3], Content::Document { .. }));
        assert!(
            matches!(&content[4], Content::Other { kind, body } if &**kind == "hologram" && body.0.ends_with(b"3}"))
        );
    }

    #[test]
    fn what_is_missing_in_a_prompt_is_named() {
        for (text, named) in [
            ("{}", "prompt"),
            (r#"{"prompt":[{"type":"text"}]}"#, "text"),
            (r#"{"prompt":[{"type":"image","data":"x"}]}"#, "mimeType"),
            (r#"{"prompt":[{}]}"#, "type"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.message.contains(named) && refusal.code == -32602, "{text}: {refusal:?}");
        }
    }
}
