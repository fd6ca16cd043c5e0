//! Which login an agent will use, told from names alone: variables that are set, files that exist. No login file is ever opened.

use std::path::{Path, PathBuf};

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

/// Folders of a home that a variable may have moved elsewhere.
const MOVED: &[(&str, &str)] =
    &[(".config", "XDG_CONFIG_HOME"), (".local/share", "XDG_DATA_HOME"), (".local/state", "XDG_STATE_HOME")];

/// `passed` are the variables that the agent gets: one that it does not get moves nothing.
pub(super) fn find(
    logins: &[Login],
    environment: &Environment,
    passed: &[String],
    exists: &dyn Fn(&Path) -> bool,
) -> Option<LoginFound> {
    logins.iter().find_map(|login| {
        let source = login.source(environment, passed, exists)?;
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
    fn source(&self, environment: &Environment, passed: &[String], exists: &dyn Fn(&Path) -> bool) -> Option<String> {
        if !self.when.iter().all(|condition| holds(condition, environment)) {
            return None;
        }
        let mut sources: Vec<String> = self.when.iter().map(|condition| format!("`{condition}`")).collect();
        if let Some(file) = &self.file {
            let (path, shown) = place(file, environment, passed)?;
            if !exists(&path) {
                return None;
            }
            sources.push(format!("`{shown}`"));
        }
        if sources.is_empty() { Some("always".to_owned()) } else { Some(sources.join(", ")) }
    }
}

/// Where a file of the home is, and how people write that.
fn place(file: &str, environment: &Environment, passed: &[String]) -> Option<(PathBuf, String)> {
    for (folder, variable) in MOVED {
        let below = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let moved = environment.get(*variable).filter(|_| passed.iter().any(|name| name == variable));
        if let (Some(below), Some(moved)) = (below, moved.filter(|path| path.starts_with('/'))) {
            return Some((Path::new(moved).join(below), format!("${variable}/{below}")));
        }
    }
    let home = environment.get("HOME").filter(|home| !home.is_empty())?;
    Some((Path::new(home).join(file), format!("~/{file}")))
}

fn holds(condition: &str, environment: &Environment) -> bool {
    match condition.split_once('=') {
        Some((name, wanted)) => environment.get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted)),
        None => environment.get(condition).is_some_and(|value| !value.is_empty()),
    }
}
