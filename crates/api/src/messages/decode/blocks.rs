//! Blocks of a message: text, and what is not text.

use gembridge_core::model::Content;

use crate::dialect::media::{self, DataUri};
use crate::dialect::{Source, brief};
use crate::json::{OneOrMany, WordOr};
use crate::messages::wire::{self, Block, BlockSource};
use crate::problem::Problem;

/// What a string or a list of blocks says. `place` names it in an error.
pub(super) fn contents(content: &wire::Content<'_>, body: Source<'_>, place: &str) -> Result<Vec<Content>, Problem> {
    match content {
        OneOrMany::One(text) => Ok(vec![Content::Text(body.text(text))]),
        OneOrMany::Many(blocks) => {
            let mut contents = Vec::with_capacity(blocks.len());
            for (number, block) in blocks.iter().enumerate() {
                contents.extend(content_of(block, body, || format!("{place}[{number}]"))?);
            }
            Ok(contents)
        }
    }
}

/// What one block says. `None`: nothing that an agent is told.
pub(super) fn content_of(
    block: &Block<'_>,
    body: Source<'_>,
    place: impl Fn() -> String,
) -> Result<Option<Content>, Problem> {
    let text = |text: &str| Ok(Some(Content::Text(body.text(text))));
    match block.kind.as_deref() {
        Some("text") => text(block.text.as_deref().unwrap_or_default()),
        // Thoughts are the model's own; its session has them.
        Some("thinking" | "redacted_thinking") => Ok(None),
        Some("image") => image(source(block, &place)?, body, &place()).map(Some),
        Some("document") => document(block, source(block, &place)?, body, &place()).map(Some),
        Some("search_result") => {
            let said = said_in(block.content.as_ref(), body, &place())?;
            let title = block.title.as_deref().unwrap_or_default();
            let address = match &block.source {
                Some(WordOr::Word(address)) => &**address,
                Some(WordOr::Object(_)) | None => "",
            };
            text(&format!("{title}\n{address}\n\n{said}"))
        }
        Some("tool_reference") => {
            let name = block.tool_name.as_deref().or(block.name.as_deref()).unwrap_or_default();
            text(&format!("The tool `{name}` can be called."))
        }
        other => {
            let kind = brief(other.unwrap_or_default());
            let message = format!("`{kind}` is no kind of block here; use `text`, `image` or `document`");
            Err(Problem::invalid(format!("{}.type", place()), message))
        }
    }
}

fn source<'b>(block: &'b Block<'_>, place: impl Fn() -> String) -> Result<&'b BlockSource<'b>, Problem> {
    match &block.source {
        Some(WordOr::Object(source)) => Ok(source),
        Some(WordOr::Word(_)) | None => {
            Err(Problem::invalid(format!("{}.source", place()), "a block has no `source`; give it one"))
        }
    }
}

fn image(source: &BlockSource<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    match source.kind.as_deref() {
        Some("base64") => {
            let (kind, data) = (source.media_type.as_deref(), source.data.as_deref());
            media::image(kind.unwrap_or_default(), data.unwrap_or_default(), body, &format!("{place}.source"))
        }
        other => Err(foreign(other, place)),
    }
}

fn document(block: &Block<'_>, source: &BlockSource<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let title = block.title.as_deref().filter(|title| !title.is_empty());
    let data = source.data.as_deref().unwrap_or_default();
    let titled = |text: &str| match title {
        Some(title) => Content::text(format!("{title}\n\n{text}")),
        None => Content::Text(body.text(text)),
    };
    match source.kind.as_deref() {
        Some("base64") => {
            let uri = DataUri { mime: source.media_type.as_deref().unwrap_or("application/pdf"), data };
            media::file(title.unwrap_or("document.pdf"), &uri, body, &format!("{place}.source"))
        }
        Some("text") => Ok(titled(data)),
        Some("content") => Ok(titled(&said_in(source.content.as_ref(), body, place)?)),
        other => Err(foreign(other, place)),
    }
}

/// The text of blocks within a block.
fn said_in(content: Option<&wire::Content<'_>>, body: Source<'_>, place: &str) -> Result<String, Problem> {
    let contents = content.map(|content| contents(content, body, &format!("{place}.content"))).transpose()?;
    let texts = contents.unwrap_or_default().into_iter().map(|content| match content {
        Content::Text(text) => Ok(text.to_str().into_owned()),
        _ => Err(Problem::invalid(place, "only text can stand within this block")),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn foreign(kind: Option<&str>, place: &str) -> Problem {
    let kind = brief(kind.unwrap_or_default());
    let message = format!("a source of type `{kind}` is not fetched; send the data itself, as `base64` or `text`");
    Problem::invalid(format!("{place}.source.type"), message)
}
