//! The sessions of all agents below the folders that the caller names.

use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::damage::Damage;
use crate::session::Located;
use crate::{claude, codex, gemini, opencode, qwen};

/// A folder in which an agent keeps its things: `~/.claude`, `~/.codex`, `~/.gemini`, `~/.local/share/opencode`, `~/.qwen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub agent: Agent,
    pub folder: PathBuf,
}

/// Where to look for sessions.
#[derive(Clone, Debug, Default)]
pub struct Library {
    pub roots: Vec<Root>,
    /// Folders that may be projects, such as the present one. Old sessions of Gemini CLI name only the hash of theirs.
    pub known_projects: Vec<PathBuf>,
}

impl Library {
    /// Looks through all roots. Reads the beginnings of files, not their messages.
    pub fn scan(&self) -> Scan {
        let mut damages = Vec::new();
        let mut sessions = Vec::new();
        for root in &self.roots {
            let folder = &root.folder;
            sessions.extend(match root.agent {
                Agent::Claude => claude::find::sessions(folder),
                Agent::Codex => codex::find::sessions(folder),
                Agent::Gemini => gemini::find::sessions(Agent::Gemini, folder, &self.known_projects),
                Agent::OpenCode => opencode::find::sessions(folder, &mut damages),
                Agent::Qwen => qwen::find::sessions(folder, &self.known_projects),
                Agent::Gembridge => Vec::new(),
            });
        }
        let searched = self.roots.iter().map(|root| root.folder.clone()).collect();
        let mut scan = Scan { sessions, damages, searched };
        scan.sort();
        scan
    }
}

/// What was found, the most recently written first.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub sessions: Vec<Located>,
    /// What could not be looked into.
    pub damages: Vec<Damage>,
    searched: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("no session of `{}` was found in {}; `--all` lists those of every project", .project.display(), listed(.searched))]
    NoneOfProject { project: PathBuf, searched: Vec<PathBuf> },
    #[error("no session was found in {}", listed(.searched))]
    None { searched: Vec<PathBuf> },
    #[error("no session `{id}` was found in {}; `gembridge sessions list --all` lists all", listed(.searched))]
    UnknownId { id: String, searched: Vec<PathBuf> },
    #[error("`{id}` is the beginning of {} sessions ({}); give more of the id", .ids.len(), shortened(.ids))]
    AmbiguousId { id: String, ids: Vec<String> },
}

impl Scan {
    /// Adds sessions that somebody else found in `folder`.
    pub fn add(&mut self, sessions: impl IntoIterator<Item = Located>, folder: PathBuf) {
        self.sessions.extend(sessions);
        self.searched.push(folder);
        self.sort();
    }

    fn sort(&mut self) {
        self.sessions
            .sort_by(|one, other| (other.modified, one.agent, &one.id).cmp(&(one.modified, other.agent, &other.id)));
    }

    /// The sessions whose agent worked in a folder or below it.
    pub fn of_project(&self, project: &Path) -> Result<Vec<&Located>, FindError> {
        let is_in = |session: &&Located| session.project.as_ref().is_some_and(|folder| folder.starts_with(project));
        let found: Vec<_> = self.sessions.iter().filter(is_in).collect();
        if found.is_empty() {
            return Err(FindError::NoneOfProject { project: project.to_owned(), searched: self.searched.clone() });
        }
        Ok(found)
    }

    /// The session of an id, or of the beginning of one that no other session has.
    pub fn by_id(&self, id: &str) -> Result<&Located, FindError> {
        if let Some(exact) = self.sessions.iter().find(|session| session.id == id) {
            return Ok(exact);
        }
        let found: Vec<_> =
            self.sessions.iter().filter(|session| !id.is_empty() && session.id.starts_with(id)).collect();
        match found[..] {
            [session] => Ok(session),
            [] => Err(FindError::UnknownId { id: id.to_owned(), searched: self.searched.clone() }),
            _ => {
                let ids = found.iter().map(|session| session.id.clone()).collect();
                Err(FindError::AmbiguousId { id: id.to_owned(), ids })
            }
        }
    }

    /// The session that was written to last, subagents aside.
    pub fn latest(&self, project: Option<&Path>) -> Result<&Located, FindError> {
        let candidates = match project {
            Some(project) => self.of_project(project)?,
            None => self.sessions.iter().collect(),
        };
        let own = candidates.into_iter().find(|session| session.parent.is_none());
        own.ok_or_else(|| FindError::None { searched: self.searched.clone() })
    }

    /// The sessions that subagents of a session wrote.
    pub fn subagents(&self, of: &Located) -> Vec<&Located> {
        let is_child =
            |session: &&Located| session.agent == of.agent && session.parent.as_deref() == Some(of.id.as_str());
        self.sessions.iter().filter(is_child).collect()
    }
}

fn listed(folders: &[PathBuf]) -> String {
    match folders {
        [] => "no folder".to_owned(),
        folders => folders.iter().map(|folder| format!("`{}`", folder.display())).collect::<Vec<_>>().join(", "),
    }
}

fn shortened(ids: &[String]) -> String {
    let shown = ids.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 5 { format!("{shown}, …") } else { shown }
}
