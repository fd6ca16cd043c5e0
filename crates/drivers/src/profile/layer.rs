//! A layer: what one circumstance (chat, a trusted folder, a private home) adds to a launch.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Execution, ProfileError, template};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layer {
    pub args: Vec<String>,
    pub set: BTreeMap<String, String>,
    /// Variables of the layers before that are not passed on here.
    pub unset: Vec<String>,
    pub file: Vec<FileTemplate>,
    /// `_meta` of `session/new`, for what an agent lets a client choose per session.
    pub session_meta: Map<String, Value>,
}

/// A file written before the start, for the owner only. Each part of its content comes with the circumstance it is for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileTemplate {
    /// Under `{state}` or `{private}`.
    pub path: String,
    #[serde(default)]
    pub content: String,
    /// Instead of `content` in chat.
    pub content_in_chat: Option<String>,
    /// Appended when some of the agent's own tools are turned off.
    #[serde(default)]
    pub content_if_denied: String,
    /// Appended when the operator left some of the agent's own tools on.
    #[serde(default)]
    pub content_if_native: String,
}

impl Layer {
    pub(super) fn check(&self, agent: &str) -> Result<(), ProfileError> {
        for text in self.args.iter().chain(self.set.values()) {
            template::check(agent, text)?;
        }
        for file in &self.file {
            file.check(agent)?;
        }
        Ok(())
    }
}

impl FileTemplate {
    pub(super) fn content_in(&self, execution: Execution) -> &str {
        match (execution, &self.content_in_chat) {
            (Execution::Chat, Some(content)) => content,
            (Execution::Chat | Execution::Agent, _) => &self.content,
        }
    }

    fn check(&self, agent: &str) -> Result<(), ProfileError> {
        let texts = [&self.path, &self.content, &self.content_if_denied, &self.content_if_native];
        for text in texts.into_iter().chain(&self.content_in_chat) {
            template::check(agent, text)?;
        }
        let inside = ["{state}/", "{private}/"].iter().any(|root| self.path.starts_with(root));
        if !inside || self.path.split('/').any(|part| part == "..") {
            return Err(ProfileError::FileOutside { agent: agent.to_owned(), path: self.path.clone() });
        }
        Ok(())
    }
}
