//! Whose session it is.

use gembridge_unified::tool_names::ToolFamily;
use serde::{Deserialize, Serialize};

/// An agent whose session files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    OpenCode,
    Qwen,
    /// The gateway itself. Its sessions lie in its store, and come through a [`Supplier`](crate::Supplier).
    Gembridge,
}

impl Agent {
    /// Those that keep their sessions in files of their own.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode, Self::Qwen];

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Gembridge]).find(|agent| agent.name() == name)
    }

    /// Its name in `gembridge agents`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
            Self::Gembridge => "gembridge",
        }
    }

    pub(crate) fn tools(self) -> ToolFamily {
        match self {
            Self::Claude | Self::Gembridge => ToolFamily::Claude,
            Self::Codex => ToolFamily::Codex,
            Self::Gemini => ToolFamily::Gemini,
            Self::OpenCode => ToolFamily::OpenCode,
            Self::Qwen => ToolFamily::Qwen,
        }
    }
}
