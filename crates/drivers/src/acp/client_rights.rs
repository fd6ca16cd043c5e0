//! What a client may change about a session, by who the sessions of this driver are for and whether the folder is trusted.
//!
//! Guests are the keys that are not the operator's. An agent does what its client says: a mode that asks for nothing, an
//! option, or a method that names a command would make a guest's word the operator's. So guests have lists of what is
//! allowed, and everything else is refused before it reaches the agent.

use std::sync::Arc;

use gembridge_core::driver::Change;
use gembridge_core::model::{Failure, FailureKind, Opaque, SessionFacts};
use serde_json::Value;

use super::wire;
use crate::profile::{Profile, Trust};
use crate::setup::{Audience, DriverSetup};

pub(super) struct ClientRights {
    agent: Arc<str>,
    audience: Audience,
    modes: Modes,
    extensions: Vec<String>,
}

/// Which modes of the agent a client may choose.
enum Modes {
    All,
    /// Only these: the ones that the profile lists and does not call privileged.
    Listed(Vec<Arc<str>>),
}

/// A configuration option of a session, as far as the rights to it depend on it.
#[derive(Clone)]
pub(super) struct KnownOption {
    id: Arc<str>,
    category: Option<Arc<str>>,
}

impl KnownOption {
    pub(super) fn of(option: &wire::ConfigOption) -> Self {
        Self { id: option.id.as_str().into(), category: option.category.as_deref().map(Into::into) }
    }

    fn is_of(&self, category: &str) -> bool {
        self.category.as_deref() == Some(category)
    }
}

/// Categories of options that change how the model answers, and nothing that it may do.
const FREE_CATEGORIES: [&str; 2] = ["model", "thought_level"];

/// Names of parameters by which agents take commands, folders or servers, whatever the method.
const REFUSED_PARAMETERS: [&str; 9] = [
    "mcpservers",
    "mcp_servers",
    "command",
    "cwd",
    "env",
    "additionaldirectories",
    "additional_directories",
    "workspace",
    "roots",
];

impl ClientRights {
    pub(super) fn of(setup: &DriverSetup) -> Self {
        let modes = match (setup.audience, setup.trust) {
            (Audience::Operators, Trust::Trusted) => Modes::All,
            (Audience::Guests, _) | (_, Trust::Untrusted) => Modes::Listed(unprivileged(&setup.profile)),
        };
        Self {
            agent: setup.profile.name.as_str().into(),
            audience: setup.audience,
            modes,
            extensions: setup.profile.extensions.clone(),
        }
    }

    pub(super) fn check(&self, change: &Change, options: &[KnownOption]) -> Result<(), Failure> {
        match change {
            Change::Model(_) => Ok(()),
            Change::Mode(mode) => self.check_mode(mode),
            Change::Option { id, value } => self.check_option(id, value, options),
            Change::Extension { method, params } => self.check_extension(method, params),
        }
    }

    pub(super) fn allows_mode(&self, mode: &str) -> bool {
        match &self.modes {
            Modes::All => true,
            Modes::Listed(listed) => listed.iter().any(|known| **known == *mode),
        }
    }

    /// Leaves only the modes that may be chosen.
    pub(super) fn limit(&self, facts: &mut SessionFacts) {
        facts.modes = facts.modes.iter().filter(|mode| self.allows_mode(&mode.id)).cloned().collect();
    }

    fn check_mode(&self, mode: &str) -> Result<(), Failure> {
        if self.allows_mode(mode) {
            return Ok(());
        }
        let listed = match &self.modes {
            Modes::Listed(listed) if !listed.is_empty() => format!("; allowed here: `{}`", listed.join("`, `")),
            _ => String::new(),
        };
        let shown = shown(mode);
        Err(self.forbidden(&format!("mode `{shown}` needs an admin key and a trusted folder{listed}")))
    }

    fn check_option(&self, id: &str, value: &Opaque, options: &[KnownOption]) -> Result<(), Failure> {
        if matches!(self.modes, Modes::All) {
            return Ok(());
        }
        let option = options.iter().find(|option| *option.id == *id);
        match option {
            Some(option) if FREE_CATEGORIES.iter().any(|category| option.is_of(category)) => Ok(()),
            Some(option) if option.is_of("mode") => {
                let mode: String = serde_json::from_slice(&value.0).unwrap_or_default();
                self.check_mode(&mode)
            }
            _ => Err(self.forbidden(&format!("option `{}` needs an admin key and a trusted folder", shown(id)))),
        }
    }

    fn check_extension(&self, method: &str, params: &Opaque) -> Result<(), Failure> {
        let is_listed = self.extensions.iter().any(|listed| listed == method);
        if self.audience == Audience::Guests || !is_listed {
            let (agent, method) = (&self.agent, shown(method));
            let why = format!("method `{method}` is not one that clients may send to agent `{agent}`");
            return Err(Failure::new(FailureKind::Unsupported, why));
        }
        let params: Value = serde_json::from_slice(&params.0).unwrap_or_default();
        match refused_parameter(&params) {
            None => Ok(()),
            Some(name) => Err(self.forbidden(&format!("parameter `{}` is never passed on", shown(name)))),
        }
    }

    fn forbidden(&self, why: &str) -> Failure {
        Failure::new(FailureKind::Forbidden, format!("agent `{}`: {why}", self.agent))
    }
}

fn unprivileged(profile: &Profile) -> Vec<Arc<str>> {
    profile.modes.values().filter(|mode| !mode.privileged).map(|mode| mode.id.as_str().into()).collect()
}

/// The first parameter, at any depth, that would name a command, a folder or a server.
fn refused_parameter(value: &Value) -> Option<&str> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let is_refused = REFUSED_PARAMETERS.contains(&name.to_ascii_lowercase().as_str());
            if is_refused { Some(name.as_str()) } else { refused_parameter(value) }
        }),
        Value::Array(values) => values.iter().find_map(refused_parameter),
        _ => None,
    }
}

/// A name that came from outside, fit for a message.
fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
