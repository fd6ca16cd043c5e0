//! The JSON files of older versions of OpenCode: `session/<project>/<id>.json`, `message/<session>/<id>.json`,
//! `part/<message>/<id>.json`. Ids grow with time, so the order of names is the order of things.

use std::path::Path;

use serde_json::Value;

use super::{facts, message};
use crate::files;
use crate::output::Output;
use crate::session::Facts;

pub(super) fn read(storage: &Path, id: &str, out: &mut Output<'_>) -> Facts {
    let sessions =
        files::folders(&storage.join("session")).into_iter().map(|project| project.join(format!("{id}.json")));
    let session = sessions.filter(|path| path.is_file()).find_map(|path| json(&path, out));
    let mut known = session.as_ref().map_or_else(Facts::default, facts);
    for path in files::regular_files(&storage.join("message").join(id)) {
        let Some(info) = json(&path, out) else { continue };
        let message_id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let parts = files::regular_files(&storage.join("part").join(&message_id));
        let parts: Vec<_> = parts.iter().filter_map(|path| json(path, out)).collect();
        message(&message_id, &info, &parts, &mut known, out);
    }
    known
}

fn json(path: &Path, out: &mut Output<'_>) -> Option<Value> {
    out.at_file(path);
    match files::open(path).map(serde_json::from_reader) {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            out.damaged_file(&error);
            None
        }
        Err(error) => {
            out.damaged_file(&format!("cannot be opened: {error}"));
            None
        }
    }
}
