//! Where OpenCode keeps its sessions: a database, and the folders that it replaced.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::database;
use crate::agent::Agent;
use crate::damage::Damage;
use crate::files;
use crate::session::{Located, Source};

/// A session that was moved to the database is read from there.
pub(crate) fn sessions(root: &Path, damages: &mut Vec<Damage>) -> Vec<Located> {
    let mut found = Vec::new();
    let path = root.join("opencode.db");
    if files::regular_files(root).contains(&path) {
        match database::sessions(&path) {
            Ok(sessions) => found.extend(sessions.into_iter().map(|session| Located {
                parent: session.parent,
                project: Some(session.directory),
                ..Located::new(Agent::OpenCode, session.id, session.updated, Source::Database(path.clone()))
            })),
            Err(error) => damages.push(Damage { path, line: None, reason: error.to_string() }),
        }
    }
    let known: HashSet<_> = found.iter().map(|session| session.id.clone()).collect();
    let storage = root.join("storage");
    for project in files::folders(&storage.join("session")) {
        let sessions = files::regular_files(&project).into_iter().filter_map(|path| in_folder(&path, &storage));
        found.extend(sessions.filter(|session| !known.contains(&session.id)));
    }
    found
}

fn in_folder(path: &Path, storage: &Path) -> Option<Located> {
    if path.extension()? != "json" {
        return None;
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let session: Value = files::small_text(path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let updated = session["time"]["updated"].as_u64();
    let modified = updated.unwrap_or_else(|| files::modified(path));
    Some(Located {
        parent: session["parentID"].as_str().map(str::to_owned),
        project: session["directory"].as_str().map(PathBuf::from),
        ..Located::new(Agent::OpenCode, id, modified, Source::Folder(storage.to_owned()))
    })
}
