//! Where Gemini CLI keeps its sessions, and in which folder each was begun.
//!
//! `tmp/<project>/chats/session-….json[l]`, where the project is the hash of its path (until 0.28) or a short name
//! (since 0.29); subagents in `chats/<session>/<subagent>.jsonl`. No session file names its folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::render::workspace_of_context;
use crate::agent::Agent;
use crate::blocks;
use crate::files;
use crate::json::Json;
use crate::session::{Located, Source};

/// The sessions below the folder of Gemini CLI (`~/.gemini`) or of a program that comes from it. `known` are folders
/// that may be projects: the hash of a path leads back to it only if the path is known.
pub(crate) fn sessions(agent: Agent, root: &Path, known: &[PathBuf]) -> Vec<Located> {
    let projects = Projects::of(root, known);
    let mut found: Vec<Located> = Vec::new();
    for folder in files::folders(&root.join("tmp")) {
        let chats = folder.join("chats");
        for path in files::regular_files(&chats) {
            found.extend(session(agent, &path, &projects, &folder, None));
        }
        for parent in files::folders(&chats) {
            let of = files::name(&parent).to_owned();
            for path in files::regular_files(&parent) {
                found.extend(session(agent, &path, &projects, &folder, Some(of.clone())));
            }
        }
    }
    joined(found)
}

/// Sessions with one id are one session.
fn joined(found: Vec<Located>) -> Vec<Located> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut sessions: Vec<Located> = Vec::new();
    for session in found {
        let Some(place) = places.get(&session.id) else {
            places.insert(session.id.clone(), sessions.len());
            sessions.push(session);
            continue;
        };
        let known = &mut sessions[*place];
        known.modified = known.modified.max(session.modified);
        known.project = known.project.take().or(session.project);
        known.parent = known.parent.take().or(session.parent);
        if let (Source::Files(paths), Source::Files(more)) = (&mut known.source, session.source) {
            paths.extend(more);
        }
    }
    sessions
}

fn session(agent: Agent, path: &Path, projects: &Projects, folder: &Path, parent: Option<String>) -> Option<Located> {
    let extension = path.extension()?.to_str()?;
    if !matches!(extension, "json" | "jsonl") {
        return None;
    }
    let head = Head::of(path, extension);
    // A damaged file is still a session: whoever reads it hears what is wrong.
    let id = head.id.unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    let project = projects.of_folder(folder).or_else(|| projects.of_hash(head.hash.as_deref()?)).or(head.folder);
    let source = Source::Files(vec![path.to_owned()]);
    Some(Located { parent, project, ..Located::new(agent, id, files::modified(path), source) })
}

/// What the beginning of a file tells.
#[derive(Default)]
struct Head {
    id: Option<String>,
    hash: Option<String>,
    folder: Option<PathBuf>,
}

impl Head {
    fn of(path: &Path, extension: &str) -> Self {
        let mut head = Self::default();
        let mut left = 8;
        let mut look = |record: &Value| {
            head.look(record);
            left -= 1;
            (left == 0 || head.folder.is_some()).then_some(())
        };
        if extension == "jsonl" {
            files::look_at_head(path, look);
        } else if let Some(object) = files::open(path).ok().and_then(|file| serde_json::from_reader(file).ok()) {
            look(&object);
        }
        head
    }

    fn look(&mut self, record: &Value) {
        let text = |field: &Value| field.as_str().map(str::to_owned);
        if record.get("projectHash").is_some() {
            self.id = self.id.take().or_else(|| text(&record["sessionId"]));
            self.hash = self.hash.take().or_else(|| text(&record["projectHash"]));
            self.folder = text(&record["directories"][0]).map(PathBuf::from);
        }
        let messages = [&record["messages"], &record["$set"]["messages"]].into_iter().find_map(Value::as_array);
        if let Some(first) = messages.and_then(|messages| messages.first())
            && let Some(folder) = workspace_of_context(&blocks::text(&Json::from(&first["content"])))
        {
            self.folder = Some(folder.into());
        }
    }
}

/// Which folder a project of Gemini CLI is.
struct Projects {
    root: PathBuf,
    by_name: HashMap<String, PathBuf>,
    by_hash: HashMap<String, PathBuf>,
}

impl Projects {
    fn of(root: &Path, known: &[PathBuf]) -> Self {
        let list = files::small_text(&root.join("projects.json"));
        let list: Value = list.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let named = list["projects"].as_object().into_iter().flatten();
        let by_name: HashMap<_, _> =
            named.filter_map(|(path, name)| Some((name.as_str()?.to_owned(), PathBuf::from(path)))).collect();
        let roots = files::folders(&root.join("tmp")).into_iter().filter_map(|folder| project_root(&folder));
        let paths: Vec<_> = by_name.values().cloned().chain(roots).chain(known.iter().cloned()).collect();
        let by_hash = paths.into_iter().map(|path| (hash(&path), path)).collect();
        Self { root: root.to_owned(), by_name, by_hash }
    }

    fn of_folder(&self, folder: &Path) -> Option<PathBuf> {
        let name = files::name(folder);
        project_root(folder)
            .or_else(|| project_root(&self.root.join("history").join(name)))
            .or_else(|| self.by_name.get(name).cloned())
            .or_else(|| self.of_hash(name))
    }

    fn of_hash(&self, hash: &str) -> Option<PathBuf> {
        self.by_hash.get(hash).cloned()
    }
}

/// The path that a project's folder names in plain text.
fn project_root(folder: &Path) -> Option<PathBuf> {
    let text = files::small_text(&folder.join(".project_root"))?;
    let path = Path::new(text.trim());
    path.is_absolute().then(|| path.to_owned())
}

fn hash(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        use std::fmt::Write as _;
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_sha256_of_its_path() {
        assert_eq!(hash(Path::new("/workspace")), "c52ddf65534b7b46035084358ab7902be4bfef220bdb503ac7039cc861905b05");
    }
}
