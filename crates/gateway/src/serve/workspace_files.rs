//! The names of files in folders that agents work in. A folder is opened from the one above it and links are not followed, so
//! that no name comes from outside, whatever changes meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gembridge_api::admin::agent_sessions::Reading;
use gembridge_api::admin::workspace_files::{Files, Place, WorkspaceFiles};
use gembridge_api::problem::{Kind, Problem};
use gembridge_core::session::Sessions;
use gembridge_drivers::profile::Execution;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use tokio::sync::Semaphore;

use super::agents::Served;

/// Calls that look through folders at once; others wait for them.
const AT_ONCE: usize = 2;
/// Names that are looked at.
const MOST_NAMES: usize = 50_000;
/// Folders in folders.
const DEEPEST: usize = 24;
/// Files that are told.
const SHOWN: usize = 20;
/// What programs fill and people do not write about.
const PASSED_OVER: [&str; 6] = [".git", "node_modules", "target", ".venv", "__pycache__", "dist"];

pub struct Workspaces {
    sessions: Arc<Sessions>,
    /// The folders of agents that work in one, by the agent's name.
    agents: Vec<(String, PathBuf)>,
    permits: Arc<Semaphore>,
}

impl Workspaces {
    pub fn new(served: &[Served], sessions: &Arc<Sessions>) -> Self {
        let folder = |served: &Served| {
            let chosen = &served.agent.profile.chosen;
            let folder = chosen.workspace.clone().filter(|_| chosen.execution == Execution::Agent)?;
            Some((served.name.as_str().to_owned(), folder))
        };
        Self {
            sessions: Arc::clone(sessions),
            agents: served.iter().filter_map(folder).collect(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    async fn folder(&self, place: &Place) -> Result<Option<PathBuf>, Problem> {
        let unknown = || Problem::new(Kind::NotFound, "there is no such session");
        match place {
            Place::Agent(name) => Ok(self.folder_of(name)),
            Place::Session(id) => {
                let id = id.parse().map_err(|_| unknown())?;
                let record = self.sessions.store().record(id).await.map_err(|_| unknown())?;
                Ok(record.workspace.or_else(|| self.folder_of(record.agent.as_str())))
            }
        }
    }

    fn folder_of(&self, agent: &str) -> Option<PathBuf> {
        self.agents.iter().find(|(name, _)| name == agent).map(|(_, folder)| folder.clone())
    }
}

impl WorkspaceFiles for Workspaces {
    fn find(self: Arc<Self>, place: Place, words: String) -> Reading<Files> {
        Box::pin(async move {
            let Some(folder) = self.folder(&place).await? else { return Ok(Files::default()) };
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let search = move || {
                let files = files_of(&folder, &words);
                drop(permit);
                files
            };
            let files = tokio::task::spawn_blocking(search).await.unwrap_or_default();
            Ok(Files { files })
        })
    }
}

/// The files below a folder that fit, the best first.
fn files_of(folder: &Path, words: &str) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The folder itself may be reached by links: the operator named it.
    let Ok(root) = openat(CWD, folder, flags, Mode::empty()) else { return Vec::new() };
    let mut found = Search { words: words.to_lowercase(), left: MOST_NAMES, found: Vec::new() };
    found.look_into(&root, "", DEEPEST);
    found.found.sort();
    found.found.truncate(SHOWN);
    found.found.into_iter().map(|(_, path)| path).collect()
}

struct Search {
    words: String,
    /// Names that may still be looked at.
    left: usize,
    found: Vec<(Rank, String)>,
}

/// Smaller is better: how it fits, then how long it is.
type Rank = (u8, usize);

impl Search {
    fn look_into(&mut self, folder: &OwnedFd, path: &str, depth: usize) {
        let Ok(entries) = Dir::read_from(folder) else { return };
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || PASSED_OVER.contains(&name) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            match kind(folder, &entry) {
                FileType::RegularFile => self.found.extend(self.rank(&path).map(|rank| (rank, path))),
                FileType::Directory if depth > 0 => folders.push((name.to_owned(), path)),
                _ => {}
            }
        }
        // The files of a folder come before those of the folders in it, so that what is near is found first.
        for (name, path) in folders {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(below) = openat(folder, &*name, flags, Mode::empty()) {
                self.look_into(&below, &path, depth - 1);
            }
        }
    }

    fn rank(&self, path: &str) -> Option<Rank> {
        let lower = path.to_lowercase();
        let name = lower.rsplit('/').next().unwrap_or(&lower);
        let class = match &*self.words {
            words if name.starts_with(words) => 0,
            words if name.contains(words) => 1,
            words if lower.contains(words) => 2,
            words if is_subsequence(words, &lower) => 3,
            _ => return None,
        };
        Some((class, path.len()))
    }
}

/// Some file systems do not tell the kind with the name.
fn kind(folder: &OwnedFd, entry: &rustix::fs::DirEntry) -> FileType {
    if entry.file_type() != FileType::Unknown {
        return entry.file_type();
    }
    let looked = rustix::fs::statat(folder.as_fd(), entry.file_name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    looked.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
}

fn is_subsequence(letters: &str, text: &str) -> bool {
    let mut rest = text.chars();
    letters.chars().all(|letter| rest.any(|other| other == letter))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_found_by_parts_of_their_path_the_best_first() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/domain/mail.rs", "README.md", "target/main.o", ".git/main"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |words: &str| files_of(folder.path(), words);
        assert_eq!(found("main"), ["src/main.rs", "src/domain/mail.rs"]);
        assert_eq!(found("MAI"), ["src/main.rs", "src/domain/mail.rs"]);
        assert_eq!(found("sdm"), ["src/domain/mail.rs"]);
        assert_eq!(found("").len(), 3);
        assert_eq!(found("nothing-of-it"), [] as [&str; 0]);
        assert_eq!(files_of(&folder.path().join("gone"), ""), [] as [&str; 0]);
    }

    #[test]
    fn s13_links_lead_nowhere_and_a_large_folder_is_looked_at_in_part() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret-name"), "").unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        symlink(outside.path().join("secret-name"), folder.path().join("secret-link")).unwrap();
        symlink(folder.path(), folder.path().join("loop")).unwrap();
        assert_eq!(files_of(folder.path(), ""), [] as [&str; 0]);
        for number in 0..SHOWN + 5 {
            fs::write(folder.path().join(format!("file-{number}")), "").unwrap();
        }
        assert_eq!(files_of(folder.path(), "file").len(), SHOWN);
        let mut search = Search { words: String::new(), left: 3, found: Vec::new() };
        let root = openat(CWD, folder.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        search.look_into(&root, "", DEEPEST);
        assert!(search.found.len() <= 3);
    }
}
