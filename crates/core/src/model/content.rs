//! Content blocks, of prompts and of answers alike.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Opaque, Text};

/// One block of a message. A kind that we do not know is kept whole as [`Content::Other`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Content {
    Text(Text),
    /// `data` is base64, as every dialect carries it.
    Image {
        mime: Arc<str>,
        data: Text,
        uri: Option<Arc<str>>,
    },
    Audio {
        mime: Arc<str>,
        data: Text,
    },
    /// A resource by reference.
    Link {
        uri: Arc<str>,
        name: Arc<str>,
        mime: Option<Arc<str>>,
    },
    /// A resource with its text.
    Document {
        uri: Arc<str>,
        mime: Option<Arc<str>>,
        text: Text,
    },
    /// A resource with its bytes, in base64.
    Blob {
        uri: Arc<str>,
        mime: Option<Arc<str>>,
        data: Text,
    },
    Other {
        kind: Arc<str>,
        body: Opaque,
    },
}

impl Content {
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// A file by its own name, in base64. Of a path only the end is kept, and nothing that means something in an address.
    pub fn file(name: &str, mime: &str, data: Text) -> Self {
        Self::Blob { uri: file_uri(name).into(), mime: Some(mime.into()), data }
    }

    /// About the bytes that it takes.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } | Self::Blob { data, .. } => data.len(),
            Self::Link { uri, name, .. } => uri.len() + name.len(),
            Self::Document { uri, text, .. } => uri.len() + text.len(),
            Self::Other { body, .. } => body.0.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same with bytes of its own.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut own = self.clone();
        match &mut own {
            Self::Text(text)
            | Self::Image { data: text, .. }
            | Self::Audio { data: text, .. }
            | Self::Document { text, .. }
            | Self::Blob { data: text, .. } => *text = text.detached(),
            Self::Link { .. } | Self::Other { .. } => {}
        }
        own
    }
}

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
