//! The folder of an editor: the operator's own agent works in it once it is trusted, and whoever opens a session in which it
//! does not is told so in the session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::trust;

/// What becomes of folders that clients name.
#[derive(Clone, Debug)]
pub enum EditorFolders {
    /// The gateway decides: the key, or the gateway, is not the operator's own.
    AsServed,
    /// The agent works in those on the trust list of this config folder.
    Trusted { config: PathBuf, untrusted: Untrusted },
}

/// What becomes of one that is not on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// It is added.
    Add,
    /// The agent does not see it, and the client is told how it would.
    Tell,
}

/// Requests for a session, until they are answered: what the client is told if the agent does not see its folder.
#[derive(Debug, Default)]
pub(super) struct FolderNotes {
    waiting: HashMap<String, String>,
}

/// Requests that are remembered at once; for more the client is told nothing.
const MOST_WAITING: usize = 64;

impl FolderNotes {
    /// The client says this. What the gateway is to hear instead, if anything changes.
    pub(super) fn said(&mut self, line: &str, folders: &EditorFolders) -> Option<String> {
        if !line.contains("session/new") {
            return None;
        }
        let mut request: Value = serde_json::from_str(line).ok()?;
        if request["method"] != "session/new" {
            return None;
        }
        let folder = PathBuf::from(request["params"]["cwd"].as_str()?);
        // A client without a project names the root.
        folder.parent()?;
        let (note, works) = match folders {
            EditorFolders::AsServed => (as_served(&folder), false),
            EditorFolders::Trusted { config, untrusted } => match (is_trusted(config, &folder), untrusted) {
                (true, _) => (as_served(&folder), true),
                (false, Untrusted::Add) => match trust::add(config, &folder) {
                    Ok(_) => (as_served(&folder), true),
                    Err(error) => (format!("{} ({error})", unseen(&folder)), false),
                },
                (false, Untrusted::Tell) => (untrusted_note(&folder), false),
            },
        };
        if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(request["id"].to_string(), note);
        }
        if !works {
            return None;
        }
        request["params"]["_meta"]["gembridge"]["work_in_cwd"] = json!(true);
        Some(request.to_string())
    }

    /// The gateway says this. What the client is to hear after it.
    pub(super) fn heard(&mut self, line: &str) -> Option<String> {
        if self.waiting.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(line).ok()?;
        if answer.get("method").is_some() {
            return None;
        }
        let note = self.waiting.remove(&answer["id"].to_string())?;
        let result = &answer["result"];
        let ignored = result["_meta"]["gembridge"]["ignored"].as_array()?;
        if !ignored.iter().any(|what| what == "cwd") {
            return None;
        }
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": note}});
        let params = json!({"sessionId": result["sessionId"], "update": update});
        Some(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string())
    }
}

fn is_trusted(config: &Path, folder: &Path) -> bool {
    trust::Trust::load(config).is_ok_and(|list| list.covers(folder))
}

fn unseen(folder: &Path) -> String {
    format!("gembridge: the agent does not see `{}` and has no tools here.", folder.display())
}

fn as_served(folder: &Path) -> String {
    format!(
        "{} The gateway serves it as a model (`mode = \"agent\"` of its settings lets it work in a folder).\n\n",
        unseen(folder)
    )
}

fn untrusted_note(folder: &Path) -> String {
    let shown = folder.display();
    format!(
        "{} To let it work there, run `gembridge trust add '{shown}'`, or start `gembridge connect --trust`, and begin a new \
         session.\n\n",
        unseen(folder)
    )
}
