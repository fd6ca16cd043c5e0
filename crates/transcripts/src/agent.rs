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
}

impl Agent {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode, Self::Qwen];

    /// Its name in `gembridge agents`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
        }
    }

    pub(crate) fn tools(self) -> ToolFamily {
        match self {
            Self::Claude => ToolFamily::Claude,
            Self::Codex => ToolFamily::Codex,
            Self::Gemini => ToolFamily::Gemini,
            Self::OpenCode => ToolFamily::OpenCode,
            Self::Qwen => ToolFamily::Qwen,
        }
    }
}
