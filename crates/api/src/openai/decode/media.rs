//! Parts of a message: text, and what is not text.

use gembridge_core::model::{Content, Text};

use super::brief;
use super::conversation::Source;
use crate::openai::wire;
use crate::problem::Problem;

/// One part. `place` names it in an error.
pub(super) fn content(part: &wire::Part<'_>, body: Source<'_>, place: impl Fn() -> String) -> Result<Content, Problem> {
    let text = |text: &str| Content::Text(body.text(text));
    let missing =
        |field: &str| Problem::invalid(format!("{}.{field}", place()), format!("a part has no `{field}`; give it one"));
    match part.kind.as_deref() {
        Some("text") => part.text.as_deref().map(text).ok_or_else(|| missing("text")),
        Some("refusal") => part.refusal.as_deref().map(text).ok_or_else(|| missing("refusal")),
        Some("image_url") => {
            let image = part.image_url.as_deref().and_then(|image| image.url.as_deref());
            image_part(image.ok_or_else(|| missing("image_url"))?, body, &format!("{}.image_url", place()))
        }
        Some("input_audio") => {
            let audio = part.input_audio.as_deref().ok_or_else(|| missing("input_audio"))?;
            audio_part(audio, body, &format!("{}.input_audio", place()))
        }
        Some("file") => {
            let file = part.file.as_deref().ok_or_else(|| missing("file"))?;
            file_part(file, body, &format!("{}.file", place()))
        }
        other => {
            let kind = brief(other.unwrap_or_default());
            let message = format!("`{kind}` is no kind of part; use `text`, `image_url`, `input_audio` or `file`");
            Err(Problem::invalid(format!("{}.type", place()), message))
        }
    }
}

fn image_part(url: &str, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let uri = data_uri(url).ok_or_else(|| {
        let message = "an image must be a data URI (`data:image/png;base64,…`); addresses are not fetched";
        Problem::invalid(place, message)
    })?;
    if strip_prefix(uri.mime, "image/").is_none() {
        return Err(Problem::invalid(place, format!("`{}` is no type of image", brief(uri.mime))));
    }
    let data = base64(uri.data, body, place)?;
    Ok(Content::Image { mime: uri.mime.to_ascii_lowercase().into(), data, uri: None })
}

fn audio_part(audio: &wire::InputAudio<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let mime = match audio.format.as_deref() {
        Some("wav") => "audio/wav",
        Some("mp3") => "audio/mpeg",
        other => {
            let message =
                format!("`{}` is no format of audio here; use `wav` or `mp3`", brief(other.unwrap_or_default()));
            return Err(Problem::invalid(format!("{place}.format"), message));
        }
    };
    let data = base64(audio.data.as_deref().unwrap_or_default(), body, place)?;
    Ok(Content::Audio { mime: mime.into(), data })
}

fn file_part(file: &wire::File<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let uri = file.file_data.as_deref().and_then(data_uri).ok_or_else(|| {
        let message = "a file must come as `file_data`, a data URI (`data:application/pdf;base64,…`)";
        Problem::invalid(place, message)
    })?;
    let data = base64(uri.data, body, place)?;
    Ok(Content::file(file.filename.as_deref().unwrap_or_default(), &uri.mime.to_ascii_lowercase(), data))
}

/// Types mean the same in any case, which not every agent knows; the data must be what it says.
fn base64(data: &str, body: Source<'_>, place: &str) -> Result<Text, Problem> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err(Problem::invalid(place, "the data is not base64"));
    }
    Ok(body.text(data))
}

struct DataUri<'a> {
    mime: &'a str,
    data: &'a str,
}

/// Scheme, type and encoding may stand in any case.
fn data_uri(uri: &str) -> Option<DataUri<'_>> {
    let (head, data) = strip_prefix(uri, "data:")?.split_once(',')?;
    let (head, _) = head.rsplit_once(';').filter(|(_, encoding)| encoding.eq_ignore_ascii_case("base64"))?;
    let mime = head.split(';').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+' | b'-' | b'.' | b'_');
    let sound = mime.contains('/') && mime.len() <= 127 && mime.bytes().all(plain);
    sound.then_some(DataUri { mime, data })
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}
