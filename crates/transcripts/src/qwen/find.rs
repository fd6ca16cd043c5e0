//! Where Qwen Code keeps its sessions: `projects/<folder>/chats/<session>.jsonl`, subagents in
//! `projects/<folder>/subagents/<session>/agent-….jsonl`; in older versions as Gemini CLI does.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent::Agent;
use crate::files;
use crate::gemini;
use crate::session::{Located, Source};

pub(crate) fn sessions(root: &Path, known: &[PathBuf]) -> Vec<Located> {
    let mut found = gemini::find::sessions(Agent::Qwen, root, known);
    for project in files::folders(&root.join("projects")) {
        for path in files::regular_files(&project.join("chats")) {
            found.extend(session(&path, None));
        }
        for parent in files::folders(&project.join("subagents")) {
            for path in files::regular_files(&parent) {
                found.extend(session(&path, Some(files::name(&parent).to_owned())));
            }
        }
    }
    found
}

/// `tmp/<project>/chats/…`.
pub(super) fn is_of_gemini_layout(path: &Path) -> bool {
    path.ancestors().nth(3).is_some_and(|folder| files::name(folder) == "tmp")
}

fn session(path: &Path, parent: Option<String>) -> Option<Located> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let project = files::look_at_head(path, |record: &Value| record["cwd"].as_str().map(PathBuf::from));
    let source = Source::Files(vec![path.to_owned()]);
    Some(Located { parent, project, ..Located::new(Agent::Qwen, id, files::modified(path), source) })
}
