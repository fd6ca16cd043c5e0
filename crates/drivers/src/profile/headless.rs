//! How a program runs one turn without a protocol.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ApprovalMode, Driver, Profile, ProfileError};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headless {
    /// Whose events they are.
    pub format: StreamFormat,
    /// The program, where it is another one than for the other driver.
    #[serde(default)]
    pub names: Vec<String>,
    /// Arguments that make it read its prompt from standard input and write events.
    pub args: Vec<String>,
    /// The flag that takes a model, where the profile has none.
    pub model_flag: Option<String>,
    /// The flag that names a new session, given as `--flag=id`.
    pub begin_flag: String,
    /// The flag that goes on with a session.
    pub resume_flag: String,
    /// Arguments for each approval mode. A headless process cannot ask for permission: what the mode does not allow is refused.
    #[serde(default)]
    pub modes: BTreeMap<ApprovalMode, Vec<String>>,
    /// Added in chat.
    #[serde(default)]
    pub chat_args: Vec<String>,
    #[serde(default)]
    pub slash_commands: bool,
    #[serde(default)]
    pub web_search: bool,
    #[serde(default)]
    pub thinking: bool,
}

/// The dialect of the events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFormat {
    #[default]
    Gemini,
    Claude,
}

impl Profile {
    /// The same agent by another driver.
    pub fn with_driver(mut self, driver: Driver) -> Result<Self, ProfileError> {
        if self.driver == driver {
            return Ok(self);
        }
        let Some(headless) = self.headless.clone().filter(|_| driver == Driver::Headless) else {
            return Err(ProfileError::NoDriver { agent: self.name, driver: driver.as_str() });
        };
        self.driver = driver;
        if !headless.names.is_empty() {
            self.command.names.clone_from(&headless.names);
            self.command.variable = None;
        }
        self.command.args.clone_from(&headless.args);
        self.command.older.clear();
        self.chat.args.extend(headless.chat_args.iter().cloned());
        self.model.flag = self.model.flag.or(headless.model_flag);
        Ok(self)
    }
}
