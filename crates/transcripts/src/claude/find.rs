//! Where Claude Code keeps its sessions: `projects/<folder>/<session>.jsonl`; subagents in
//! `<session>/subagents/agent-<id>.jsonl`, or beside the sessions in older versions.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent::Agent;
use crate::files;
use crate::session::{Located, Source};

pub(crate) fn sessions(root: &Path) -> Vec<Located> {
    let mut found = Vec::new();
    for project in files::folders(&root.join("projects")) {
        for path in files::regular_files(&project) {
            let is_subagent = files::name(&path).starts_with("agent-");
            found.extend(session(&path, if is_subagent { Kind::SubagentBeside } else { Kind::Main }));
        }
        for parent in files::folders(&project) {
            for path in files::regular_files(&parent.join("subagents")) {
                found.extend(session(&path, Kind::SubagentOf(files::name(&parent))));
            }
        }
    }
    found
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Main,
    SubagentOf(&'a str),
    /// Its lines name its session.
    SubagentBeside,
}

fn session(path: &Path, kind: Kind<'_>) -> Option<Located> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let mut of_session = None;
    let project = files::look_at_head(path, |record: &Value| {
        of_session = of_session.take().or_else(|| record["sessionId"].as_str().map(str::to_owned));
        record["cwd"].as_str().map(PathBuf::from)
    });
    let parent = match kind {
        Kind::Main => None,
        Kind::SubagentOf(parent) => Some(parent.to_owned()),
        Kind::SubagentBeside => of_session,
    };
    let source = Source::Files(vec![path.to_owned()]);
    Some(Located { parent, project, ..Located::new(Agent::Claude, id, files::modified(path), source) })
}
