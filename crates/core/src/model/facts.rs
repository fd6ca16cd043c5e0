//! What an agent says about itself and about a session, in our words.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Content, Event, Opaque};

/// What the agent said in its handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    pub name: Option<Arc<str>>,
    pub version: Option<Arc<str>>,
    pub prompt: PromptAbilities,
    pub load_session: bool,
    pub mcp_http: bool,
    /// The whole handshake answer in the agent's dialect.
    pub handshake: Option<Opaque>,
}

/// The kinds of content a prompt may carry beside text and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptAbilities {
    pub image: bool,
    pub audio: bool,
    pub embedded: bool,
}

impl PromptAbilities {
    /// Whether the agent takes this in a prompt.
    pub fn takes(self, content: &Content) -> bool {
        match content {
            Content::Image { .. } => self.image,
            Content::Audio { .. } => self.audio,
            Content::Blob { .. } | Content::Document { .. } => self.embedded,
            Content::Text(_) | Content::Link { .. } | Content::Other { .. } => true,
        }
    }
}

/// What is true of a session now; it changes as the agent reports changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    pub modes: Arc<[Mode]>,
    pub mode: Option<Arc<str>>,
    pub models: Arc<[Model]>,
    pub model: Option<Arc<str>>,
    pub commands: Arc<[Command]>,
    /// Configuration options in the agent's dialect, where it has them.
    pub options: Option<Opaque>,
    pub title: Option<Arc<str>>,
}

impl SessionFacts {
    /// Follows a change.
    pub fn learn(&mut self, event: &Event) {
        match event {
            Event::Mode(mode) => self.mode = Some(Arc::clone(mode)),
            Event::Model(model) => self.model = Some(Arc::clone(model)),
            Event::Commands(commands) => self.commands = Arc::clone(commands),
            Event::Options(options) => self.options = Some(options.clone()),
            Event::Title(title) => self.title = Some(Arc::clone(title)),
            _ => {}
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub description: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub description: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub hint: Option<Arc<str>>,
}
