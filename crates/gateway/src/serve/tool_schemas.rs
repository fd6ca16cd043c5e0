//! The operator's file with the tools of A2A clients, read again when it changes.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use gembridge_api::a2a::OperatorTools;
use serde_json::Value;

/// The largest file that is read.
const MOST: u64 = 1 << 20;

pub struct ToolSchemas {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

struct Read {
    stamp: Stamp,
    list: Arc<Value>,
}

/// What changes when the file does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl ToolSchemas {
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }
}

impl OperatorTools for ToolSchemas {
    fn list(&self) -> Result<Arc<Value>, String> {
        // The path is the operator's own matter: clients hear only that there is a fault.
        let failed = |problem: String| {
            tracing::error!(path = %self.path.display(), problem, "`a2a.tool_schemas` cannot be used");
            "the operator's list of tools cannot be read; name tools in `metadata.tools`, or tell the operator"
                .to_owned()
        };
        let file = File::open(&self.path).map_err(|error| failed(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
        let stamp = Stamp { modified: metadata.modified().ok(), length: metadata.len() };
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&same.list));
        }
        let list = read(file, stamp.length).map_err(failed)?;
        *known = Some(Read { stamp, list: Arc::clone(&list) });
        Ok(list)
    }
}

fn read(file: File, length: u64) -> Result<Arc<Value>, String> {
    if length > MOST {
        return Err(format!("it has {length} bytes; {MOST} are read"));
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let list: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if list.is_array() { Ok(Arc::new(list)) } else { Err("it holds no list".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_again_when_it_changes_and_a_broken_one_is_no_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool-schemas.json");
        let schemas = ToolSchemas::new(path.clone());
        assert!(schemas.list().is_err(), "it is not there");
        std::fs::write(&path, "[]").unwrap();
        assert_eq!(*schemas.list().unwrap(), serde_json::json!([]));
        std::fs::write(&path, r#"[{"name": "one"}]"#).unwrap();
        assert_eq!(schemas.list().unwrap()[0]["name"], "one");
        for broken in ["{}", "[", ""] {
            std::fs::write(&path, broken).unwrap();
            let told = schemas.list().unwrap_err();
            assert!(!told.contains(&path.display().to_string()), "{told}");
        }
    }
}
