//! A session that was found, and how it is read.

use std::fmt::{self, Debug};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// The name under which an agent may have written the same session to its own files.
    pub written_as: Option<String>,
    pub(crate) source: Source,
}

/// Whoever has sessions in a form that this crate does not know.
pub trait Supplier: Debug + Send + Sync {
    /// Reads one of its sessions from its beginning, as [`read`] does.
    fn read(&self, id: &str, options: ReadOptions, on: &mut dyn FnMut(Piece)) -> Facts;

    /// Another number whenever the session has changed.
    fn version(&self, id: &str) -> u64;
}

/// Two are the same when they are one.
#[derive(Clone)]
pub(crate) struct Supplied(Arc<dyn Supplier>);

impl PartialEq for Supplied {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Supplied {}

impl fmt::Debug for Supplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One session may be spread over several files, such as a log and the stubs that resuming it left.
    Files(Vec<PathBuf>),
    Database(PathBuf),
    /// A folder of JSON files.
    Folder(PathBuf),
    Supplied(Supplied),
}

impl Located {
    /// The session of a file that the caller has, wherever it lies. Its id is the name of the file.
    pub fn of_file(agent: Agent, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let modified = files::modified(&path);
        Self::new(agent, id, modified, Source::Files(vec![path]))
    }

    /// A session of the gateway's own.
    pub fn supplied(id: String, modified: u64, supplier: Arc<dyn Supplier>) -> Self {
        Self::new(Agent::Gembridge, id, modified, Source::Supplied(Supplied(supplier)))
    }

    pub(crate) fn new(agent: Agent, id: String, modified: u64, source: Source) -> Self {
        Self { agent, id, parent: None, project: None, modified, written_as: None, source }
    }

    /// Another number whenever the session has changed, as far as the scan that found it can tell.
    pub fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.source {
            Source::Files(paths) => {
                for path in paths {
                    (path, files::size_and_time(path)).hash(&mut hasher);
                }
            }
            Source::Database(_) | Source::Folder(_) => self.modified.hash(&mut hasher),
            Source::Supplied(Supplied(supplier)) => supplier.version(&self.id).hash(&mut hasher),
        }
        hasher.finish()
    }

    /// What to look at for news of the session without another scan: a number that changes with it. `None` where it can
    /// only be read again.
    pub fn live_version(&self) -> Option<u64> {
        match &self.source {
            Source::Files(_) | Source::Supplied(_) => Some(self.version()),
            Source::Database(path) => {
                let mut log = path.as_os_str().to_owned();
                log.push("-wal");
                let mut hasher = DefaultHasher::new();
                [files::size_and_time(path), files::size_and_time(Path::new(&log))].hash(&mut hasher);
                Some(hasher.finish())
            }
            Source::Folder(_) => None,
        }
    }

    /// The files that it is read from.
    pub fn paths(&self) -> &[PathBuf] {
        match &self.source {
            Source::Files(paths) => paths,
            Source::Database(path) | Source::Folder(path) => std::slice::from_ref(path),
            Source::Supplied(_) => &[],
        }
    }

    /// Tells the system that the files are about to be read from beginning to end.
    pub fn fetch_ahead(&self) {
        if let Source::Files(paths) = &self.source {
            for path in paths {
                files::fetch_ahead(path);
            }
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
    if let Source::Supplied(Supplied(supplier)) = &session.source {
        return supplier.read(&session.id, options, on);
    }
    let mut out = Output::new(session.agent, options, session.first_path(), on);
    let mut facts = match session.agent {
        Agent::Gemini => gemini::read(session, &mut out),
        Agent::Claude => claude::read(session, &mut out),
        Agent::Codex => codex::read(session, &mut out),
        Agent::OpenCode => opencode::read(session, &mut out),
        Agent::Qwen => qwen::read(session, &mut out),
        Agent::Gembridge => Facts::default(),
    };
    if session.project.is_some() {
        facts.project.clone_from(&session.project);
    }
    facts
}
