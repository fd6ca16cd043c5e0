//! Content that is not text, as one line that says what it is.

use gembridge_core::model::Content;

use crate::terminal::escape;

pub fn line(content: &Content) -> String {
    let line = match content {
        Content::Text(text) => return escape::text(&text.to_str()).into_owned(),
        Content::Image { mime, data, .. } => format!("[image {mime}, {}]", size(data.len())),
        Content::Audio { mime, data } => format!("[audio {mime}, {}]", size(data.len())),
        Content::Link { uri, name, .. } => format!("[{name}]({uri})"),
        Content::Document { uri, .. } => format!("[document {uri}]"),
        Content::Blob { uri, data, .. } => format!("[file {uri}, {}]", size(data.len())),
        Content::Other { kind, .. } => format!("[{kind}]"),
    };
    escape::line(&line).into_owned()
}

/// The size of what is carried in base64.
fn size(base64: usize) -> String {
    let bytes = base64 / 4 * 3;
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} kB", bytes / 1024) }
}
