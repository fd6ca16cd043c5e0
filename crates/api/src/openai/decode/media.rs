//! Parts of a message: text, and what is not text.

use gembridge_core::model::Content;

use crate::dialect::media::{base64, data_uri, file, image_of_uri};
use crate::dialect::{Source, brief};
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
            image_of_uri(image.ok_or_else(|| missing("image_url"))?, body, &format!("{}.image_url", place()))
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

fn file_part(file_part: &wire::File<'_>, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    let uri = file_part.file_data.as_deref().and_then(data_uri).ok_or_else(|| {
        let message = "a file must come as `file_data`, a data URI (`data:application/pdf;base64,…`)";
        Problem::invalid(place, message)
    })?;
    file(file_part.filename.as_deref().unwrap_or_default(), &uri, body, place)
}
