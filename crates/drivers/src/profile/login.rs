//! Which login an agent will use, told from names alone: variables that are set, files that exist. No login file is ever opened.

use std::path::Path;

use serde::Deserialize;

use super::Environment;

/// One way of being logged in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The agent's own word for it, and the method of `authenticate` where there is one.
    pub kind: String,
    /// What people call it.
    pub title: String,
    /// All of these hold: `NAME` is set and not empty, `NAME=value` is set to that value.
    #[serde(default)]
    pub when: Vec<String>,
    /// This file of the home exists, such as `.agent/login.json`.
    pub file: Option<String>,
    /// Nothing of the operator's home is needed, so the agent gets one of its own.
    #[serde(default)]
    pub private_home: bool,
    /// It is the login of one person and serves nobody else.
    #[serde(default)]
    pub personal: bool,
    /// A word to the operator who uses it.
    pub advice: Option<String>,
}

/// The login that was found, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFound {
    pub kind: String,
    pub title: String,
    /// The variables or the file that told: names only.
    pub source: String,
    pub private_home: bool,
    pub personal: bool,
    pub advice: Option<String>,
}

pub(super) fn find(logins: &[Login], environment: &Environment, exists: &dyn Fn(&Path) -> bool) -> Option<LoginFound> {
    logins.iter().find_map(|login| {
        let source = login.source(environment, exists)?;
        Some(LoginFound {
            kind: login.kind.clone(),
            title: login.title.clone(),
            source,
            private_home: login.private_home,
            personal: login.personal,
            advice: login.advice.clone(),
        })
    })
}

impl Login {
    fn source(&self, environment: &Environment, exists: &dyn Fn(&Path) -> bool) -> Option<String> {
        if !self.when.iter().all(|condition| holds(condition, environment)) {
            return None;
        }
        let mut sources: Vec<String> = self.when.iter().map(|condition| format!("`{condition}`")).collect();
        if let Some(file) = &self.file {
            let home = environment.get("HOME").filter(|home| !home.is_empty())?;
            if !exists(&Path::new(home).join(file)) {
                return None;
            }
            sources.push(format!("`~/{file}`"));
        }
        if sources.is_empty() { Some("always".to_owned()) } else { Some(sources.join(", ")) }
    }
}

fn holds(condition: &str, environment: &Environment) -> bool {
    match condition.split_once('=') {
        Some((name, wanted)) => environment.get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted)),
        None => environment.get(condition).is_some_and(|value| !value.is_empty()),
    }
}
