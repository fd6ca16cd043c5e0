//! Content blocks, of prompts and of answers alike.

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
}

/// What a client asks of the agent in one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub content: Vec<Content>,
}

impl Prompt {
    pub fn text(text: impl Into<Text>) -> Self {
        Self { content: vec![Content::text(text)] }
    }

    /// The text blocks, one after another: for titles and logs, not for the agent.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Content::Text(text) => Some(text.to_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
