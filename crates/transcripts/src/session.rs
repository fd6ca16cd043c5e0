//! A session that was found, and how it is read.

use std::path::{Path, PathBuf};

use gembridge_unified::UnifiedUsage;
use serde::Serialize;

use crate::agent::Agent;
use crate::output::{Output, Piece, ReadOptions};
use crate::{claude, codex, files, gemini, opencode, qwen};

/// A session and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub agent: Agent,
    /// The agent's own id of it.
    pub id: String,
    /// The session whose subagent wrote this one.
    pub parent: Option<String>,
    /// The folder in which the agent worked.
    pub project: Option<PathBuf>,
    /// When its newest file was last written, in milliseconds since 1970.
    pub modified: u64,
    pub(crate) source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One session may be spread over several files, such as a log and the stubs that resuming it left.
    Files(Vec<PathBuf>),
    Database(PathBuf),
    /// A folder of JSON files.
    Folder(PathBuf),
}

impl Located {
    /// The session of a file that the caller has, wherever it lies. Its id is the name of the file.
    pub fn of_file(agent: Agent, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (parent, project, modified) = (None, None, files::modified(&path));
        Self { agent, id, parent, project, modified, source: Source::Files(vec![path]) }
    }

    /// The files that it is read from.
    pub fn paths(&self) -> &[PathBuf] {
        match &self.source {
            Source::Files(paths) => paths,
            Source::Database(path) | Source::Folder(path) => std::slice::from_ref(path),
        }
    }

    pub(crate) fn first_path(&self) -> &Path {
        self.paths().first().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// What a session says of itself, beside its messages. Known when all of it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// What the agent calls the session, if it gave it a title.
    pub title: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
    /// In milliseconds since 1970.
    pub started: Option<u64>,
    pub updated: Option<u64>,
    pub project: Option<PathBuf>,
    /// All tokens that were spent, also on turns that were taken back since.
    pub usage: UnifiedUsage,
}

impl Facts {
    /// Something happened at this time.
    pub(crate) fn seen_at(&mut self, time: Option<u64>) {
        let Some(time) = time else { return };
        self.started = Some(self.started.map_or(time, |started| started.min(time)));
        self.updated = Some(self.updated.map_or(time, |updated| updated.max(time)));
    }
}

/// Reads a session from its beginning. Messages come in their order; what is damaged comes as it is met.
pub fn read(session: &Located, options: ReadOptions, on: &mut dyn FnMut(Piece)) -> Facts {
    let mut out = Output::new(session.agent, options, session.first_path(), on);
    let mut facts = match session.agent {
        Agent::Gemini => gemini::read(session, &mut out),
        Agent::Claude => claude::read(session, &mut out),
        Agent::Codex => codex::read(session, &mut out),
        Agent::OpenCode => opencode::read(session, &mut out),
        Agent::Qwen => qwen::read(session, &mut out),
    };
    if session.project.is_some() {
        facts.project.clone_from(&session.project);
    }
    facts
}
