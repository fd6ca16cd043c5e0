//! Where Codex keeps its sessions: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` and `archived_sessions/`; those that
//! were not used for a while are packed as `.jsonl.zst`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent::Agent;
use crate::files;
use crate::session::{Located, Source};

pub(crate) fn sessions(root: &Path) -> Vec<Located> {
    let days = files::folders(&root.join("sessions"))
        .into_iter()
        .flat_map(|year| files::folders(&year))
        .flat_map(|month| files::folders(&month));
    let folders = days.chain([root.join("sessions"), root.join("archived_sessions")]);
    let mut found: HashMap<String, Located> = HashMap::new();
    for path in folders.flat_map(|folder| files::regular_files(&folder)) {
        let Some(session) = session(&path) else { continue };
        // While a file is being packed both are there, with the same content.
        found.entry(session.id.clone()).or_insert(session);
    }
    found.into_values().collect()
}

fn session(path: &Path) -> Option<Located> {
    let name = files::name(path);
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?.strip_prefix("rollout-")?;
    // `2026-11-16T10-03-31-<id>`; an id has the length of a UUID.
    let of_name = stem.len().checked_sub(36).and_then(|start| stem.get(start..)).unwrap_or(stem).to_owned();
    let (mut id, mut spawned_by) = (None, None);
    let mut lines = 0;
    let project = files::look_at_head(path, |record: &Value| {
        lines += 1;
        if lines == 1 {
            let meta = if record["type"] == "session_meta" { &record["payload"] } else { record };
            id = meta["id"].as_str().map(str::to_owned);
            spawned_by = parent(meta);
        }
        // It stands in the first lines, in every version.
        (lines > 8 || folder(record).is_some()).then(|| folder(record))
    });
    let (project, parent) = (project.flatten(), spawned_by);
    let source = Source::Files(vec![path.to_owned()]);
    let id = id.unwrap_or(of_name);
    Some(Located { parent, project, ..Located::new(Agent::Codex, id, files::modified(path), source) })
}

/// The folder that the session tells, or in older versions what Codex told the model.
fn folder(record: &Value) -> Option<PathBuf> {
    let told = record["payload"]["cwd"].as_str().or_else(|| {
        let text = record["content"][0]["text"].as_str()?;
        text.split_once("<cwd>")?.1.split_once("</cwd>").map(|(folder, _)| folder)
    });
    told.map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// The session that started this one for a subagent.
fn parent(meta: &Value) -> Option<String> {
    let spawn = &meta["source"]["subagent"]["thread_spawn"];
    spawn["parent_thread_id"].as_str().map(str::to_owned)
}

/// The title that stands in `session_index.jsonl` beside the sessions; the last line of a session holds.
pub(super) fn title(session: &Located) -> Option<String> {
    let path = session.paths().first()?;
    let root = path.ancestors().find(|folder| matches!(files::name(folder), "sessions" | "archived_sessions"))?;
    let index = files::small_text(&root.parent()?.join("session_index.jsonl"))?;
    let entries = index.lines().filter(|line| line.contains(&session.id));
    let entries = entries.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let named = entries.filter(|entry| entry["id"] == session.id.as_str());
    named.filter_map(|entry| entry["thread_name"].as_str().map(str::to_owned)).next_back()
}
