//! Parts of a message: text, and what is not text.

use gembridge_core::session::conversation::{Media, MediaKind, Part};

use super::brief;
use crate::openai::wire;
use crate::problem::Problem;

/// One part. `place` names it in an error.
pub(super) fn part<'a>(part: &'a wire::Part<'_>, place: impl Fn() -> String) -> Result<Part<'a>, Problem> {
    let missing =
        |field: &str| Problem::invalid(format!("{}.{field}", place()), format!("a part has no `{field}`; give it one"));
    match part.kind.as_deref() {
        Some("text") => part.text.as_deref().map(Part::Text).ok_or_else(|| missing("text")),
        Some("refusal") => part.refusal.as_deref().map(Part::Text).ok_or_else(|| missing("refusal")),
        Some("image_url") => {
            let image = part.image_url.as_deref().and_then(|image| image.url.as_deref());
            image_part(image.ok_or_else(|| missing("image_url"))?, &format!("{}.image_url", place()))
        }
        Some("input_audio") => {
            let audio = part.input_audio.as_deref().ok_or_else(|| missing("input_audio"))?;
            audio_part(audio, &format!("{}.input_audio", place()))
        }
        Some("file") => file_part(part.file.as_deref().ok_or_else(|| missing("file"))?, &format!("{}.file", place())),
        other => {
            let kind = brief(other.unwrap_or_default());
            let message = format!("`{kind}` is no kind of part; use `text`, `image_url`, `input_audio` or `file`");
            Err(Problem::invalid(format!("{}.type", place()), message))
        }
    }
}

fn image_part<'a>(url: &'a str, place: &str) -> Result<Part<'a>, Problem> {
    let uri = data_uri(url).ok_or_else(|| {
        let message = "an image must be a data URI (`data:image/png;base64,…`); addresses are not fetched";
        Problem::invalid(place, message)
    })?;
    if strip_prefix(uri.mime, "image/").is_none() {
        return Err(Problem::invalid(place, format!("`{}` is no type of image", brief(uri.mime))));
    }
    media(MediaKind::Image, uri.mime, None, uri.data, place)
}

fn audio_part<'a>(audio: &'a wire::InputAudio<'_>, place: &str) -> Result<Part<'a>, Problem> {
    let mime = match audio.format.as_deref() {
        Some("wav") => "audio/wav",
        Some("mp3") => "audio/mpeg",
        other => {
            let message =
                format!("`{}` is no format of audio here; use `wav` or `mp3`", brief(other.unwrap_or_default()));
            return Err(Problem::invalid(format!("{place}.format"), message));
        }
    };
    media(MediaKind::Audio, mime, None, audio.data.as_deref().unwrap_or_default(), place)
}

fn file_part<'a>(file: &'a wire::File<'_>, place: &str) -> Result<Part<'a>, Problem> {
    let uri = file.file_data.as_deref().and_then(data_uri).ok_or_else(|| {
        let message = "a file must come as `file_data`, a data URI (`data:application/pdf;base64,…`)";
        Problem::invalid(place, message)
    })?;
    media(MediaKind::File, uri.mime, file.filename.as_deref(), uri.data, place)
}

fn media<'a>(
    kind: MediaKind,
    mime: &'a str,
    name: Option<&'a str>,
    data: &'a str,
    place: &str,
) -> Result<Part<'a>, Problem> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err(Problem::invalid(place, "the data is not base64"));
    }
    Ok(Part::Media(Media { kind, mime, name, data }))
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
