//! The sessions the agent holds, in memory and, with `--state`, in a folder.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};

use super::turn::{Cancel, Turn};

pub struct Session {
    /// What session/new, load or resume was given.
    pub given: Value,
    pub mode: String,
    pub model: String,
    pub verbose: bool,
    pub history: Vec<Value>,
    pub running: Option<Running>,
}

pub struct Running {
    pub request: Value,
    pub turn: Arc<Turn>,
}

pub struct Sessions {
    open: BTreeMap<String, Session>,
    state: Option<PathBuf>,
    made: u32,
}

pub const MODES: [&str; 4] = ["default", "autoEdit", "yolo", "plan"];
pub const MODELS: [&str; 3] = ["fake-large", "fake-small", "fake-tiny"];

impl Session {
    pub fn new(given: Value, history: Vec<Value>) -> Self {
        Self { given, mode: MODES[0].into(), model: MODELS[0].into(), verbose: false, history, running: None }
    }

    pub fn modes(&self) -> Value {
        let available: Vec<Value> = MODES.iter().map(|mode| json!({"id": mode, "name": mode})).collect();
        json!({"availableModes": available, "currentModeId": self.mode})
    }

    pub fn models(&self) -> Value {
        let available: Vec<Value> = MODELS.iter().map(|model| json!({"modelId": model, "name": model})).collect();
        json!({"availableModels": available, "currentModelId": self.model})
    }

    pub fn config_options(&self) -> Value {
        let models: Vec<Value> = MODELS.iter().map(|model| json!({"value": model, "name": model})).collect();
        json!([
            {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": self.model, "options": models},
            {"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": self.verbose},
        ])
    }
}

impl Sessions {
    pub fn new(state: Option<PathBuf>) -> Self {
        Self { open: BTreeMap::new(), state, made: 0 }
    }

    pub fn create(&mut self, given: Value) -> String {
        self.made += 1;
        let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        let id = format!("fake-{since_epoch:x}-{}-{}", std::process::id(), self.made);
        self.open.insert(id.clone(), Session::new(given, Vec::new()));
        self.save(&id);
        id
    }

    /// Opens a session that is here already or that an earlier process left in the folder.
    pub fn reopen(&mut self, id: &str, given: Value) -> Option<Vec<Value>> {
        let history = match self.open.get(id) {
            Some(session) => session.history.clone(),
            None => self.saved(id)?["history"].as_array().cloned().unwrap_or_default(),
        };
        if let Some(session) = self.open.get_mut(id) {
            session.given = given;
        } else {
            self.open.insert(id.to_owned(), Session::new(given, history.clone()));
        }
        Some(history)
    }

    pub fn get(&mut self, id: &str) -> Option<&mut Session> {
        self.open.get_mut(id)
    }

    pub fn with_running_request(&self, request: &Value) -> Option<&Running> {
        self.open.values().filter_map(|session| session.running.as_ref()).find(|running| running.request == *request)
    }

    pub fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn list(&self) -> Vec<Value> {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for entry in self.state.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
            if let Some(id) = entry.path().file_stem().and_then(|stem| stem.to_str())
                && let Some(saved) = self.saved(id)
            {
                known.insert(id.to_owned(), saved["given"]["cwd"].clone());
            }
        }
        known.extend(self.open.iter().map(|(id, session)| (id.clone(), session.given["cwd"].clone())));
        known.into_iter().map(|(id, cwd)| json!({"sessionId": id, "cwd": cwd})).collect()
    }

    pub fn close(&mut self, id: &str) -> bool {
        let Some(session) = self.open.remove(id) else { return false };
        if let Some(running) = session.running {
            running.turn.cancel(Cancel::Session);
        }
        true
    }

    pub fn delete(&mut self, id: &str) -> bool {
        let removed = self.file(id).is_some_and(|path| fs::remove_file(path).is_ok());
        self.close(id) || removed
    }

    pub fn save(&self, id: &str) {
        let (Some(path), Some(session)) = (self.file(id), self.open.get(id)) else { return };
        let content = json!({"given": session.given, "history": session.history}).to_string();
        if let Err(error) = write_whole(&path, &content) {
            eprintln!("fake-agent: session `{id}` cannot be saved: {error}");
        }
    }

    fn saved(&self, id: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.file(id)?).ok()?).ok()
    }

    fn file(&self, id: &str) -> Option<PathBuf> {
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        self.state.as_ref().filter(|_| is_plain).map(|folder| folder.join(id).with_extension("json"))
    }
}

/// Renames over the old file: a kill in between must not leave half a session.
fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension("draft");
    fs::write(&draft, content)?;
    fs::rename(draft, path)
}
