//! What was said, as a front end reads it: borrowed, so that a long history costs no copies.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::model::{Content, Text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    /// What a tool of the client gave back.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub struct Said<'a> {
    pub role: Role,
    pub words: Words<'a>,
}

#[derive(Clone, Debug)]
pub enum Words<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Clone, Debug)]
pub enum Part<'a> {
    Text(&'a str),
    Media(Media<'a>),
    /// The speaker called a tool of the client.
    Call {
        call: CallName<'a>,
        arguments: &'a str,
    },
    /// What follows came of this call.
    ResultOf(CallName<'a>),
}

/// A call as the agent reads of it: by the tool's name, and by its place where several were made at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallName<'a> {
    pub tool: &'a str,
    /// From 1, among the calls of its message. `None`: it was the only one.
    pub place: Option<usize>,
}

impl fmt::Display for CallName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{} (call {place})", self.tool),
            None => f.write_str(self.tool),
        }
    }
}

/// Something that is not text. `data` is base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media<'a> {
    pub kind: MediaKind,
    pub mime: &'a str,
    pub name: Option<&'a str>,
    pub data: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    Image,
    Audio,
    File,
}

impl<'a> Said<'a> {
    pub fn text(role: Role, text: &'a str) -> Self {
        Self { role, words: Words::Text(text) }
    }

    pub fn parts(&self) -> impl Iterator<Item = Part<'a>> + '_ {
        let (text, parts) = match &self.words {
            Words::Text(text) => (Some(Part::Text(text)), &[][..]),
            Words::Parts(parts) => (None, parts.as_slice()),
        };
        text.into_iter().chain(parts.iter().cloned())
    }

    /// The bytes that it takes in a prompt.
    pub fn len(&self) -> usize {
        self.parts().map(|part| part.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Media(media) => media.data.len(),
            Self::Call { call, arguments } => call.tool.len() + arguments.len(),
            Self::ResultOf(call) => call.tool.len(),
        }
    }
}

impl Media<'_> {
    /// The same as a block of a prompt.
    pub fn to_content(self) -> Content {
        // Types mean the same in any case; not every agent knows that.
        let (mime, data): (Arc<str>, Text) = (self.mime.to_ascii_lowercase().into(), Text::plain(self.data));
        match self.kind {
            MediaKind::Image => Content::Image { mime, data, uri: None },
            MediaKind::Audio => Content::Audio { mime, data },
            MediaKind::File => {
                let uri = file_uri(self.name.unwrap_or_default()).into();
                Content::Blob { uri, mime: Some(mime), data }
            }
        }
    }
}

/// The address of a file by its own name: of a path only the end, and nothing that means something in an address.
fn file_uri(name: &str) -> String {
    let own = match name.rsplit(['/', '\\']).next() {
        None | Some("" | "." | "..") => "file",
        Some(own) => own,
    };
    let mut uri = String::from("file:///");
    for byte in own.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_an_address_whatever_its_name() {
        for (name, uri) in [
            ("notes.pdf", "file:///notes.pdf"),
            ("", "file:///file"),
            ("../../etc/passwd", "file:///passwd"),
            ("C:\\temp\\a b.txt", "file:///a%20b.txt"),
            ("..", "file:///file"),
            ("é?#%\n.md", "file:///%C3%A9%3F%23%25%0A.md"),
        ] {
            assert_eq!(file_uri(name), uri, "{name}");
        }
    }
}
