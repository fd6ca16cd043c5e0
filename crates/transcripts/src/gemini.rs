//! Sessions of Gemini CLI, of every version: one JSON object rewritten at each change (until 0.38), or a log of records
//! that replace each other (since 0.39).
//!
//! A later record may replace, clear or rebuild what came before, so messages are known when all of a file was read.
//! What is held is bounded by one session.

pub(crate) mod find;
mod record;
mod render;

use std::io::{self, Read as _};
use std::path::Path;

use serde::de::IgnoredAny;

use crate::files;
use crate::json::RawFields;
use crate::output::Output;
use crate::session::{Facts, Located};
use record::Conversation;

/// Reads the file of the session that has most to tell: resuming leaves stubs of the same session beside it, and moving
/// to another folder name leaves a copy.
pub(crate) fn read(session: &Located, out: &mut Output<'_>) -> Facts {
    let mut best: Option<Conversation> = None;
    for path in session.paths() {
        let found = conversation(path, out);
        if best.as_ref().is_none_or(|best| found.outweighs(best)) {
            best = Some(found);
        }
    }
    best.map_or_else(Facts::default, |conversation| render::messages(conversation, out))
}

fn conversation(path: &Path, out: &mut Output<'_>) -> Conversation {
    if path.extension().is_some_and(|extension| extension == "json") {
        return whole(path, out).unwrap_or_default();
    }
    let mut conversation = Conversation::default();
    let mut damaged = Vec::new();
    files::for_each_line(path, out, |line, out| match serde_json::from_str::<RawFields<'_>>(line) {
        Ok(record) => conversation.record(record, out.line()),
        // A line that is JSON and no object is none of the conversation.
        Err(error) if error.is_data() && serde_json::from_str::<IgnoredAny>(line).is_ok() => {}
        // Reported at once if the file is a log; an object over several lines is read as a whole below.
        Err(error) if conversation.has_header() => out.damaged_line(&error),
        Err(error) => damaged.push((out.line(), error)),
    });
    if !conversation.has_header()
        && let Some(whole) = parsed(path)
    {
        return whole;
    }
    for (line, error) in damaged {
        out.at_line(line);
        out.damaged_line(&error);
    }
    conversation
}

fn whole(path: &Path, out: &mut Output<'_>) -> Option<Conversation> {
    out.at_file(path);
    let text = match text(path) {
        Ok(text) => text,
        Err(error) => {
            out.damaged_file(&format!("cannot be opened: {error}"));
            return None;
        }
    };
    match serde_json::from_str::<RawFields<'_>>(&text) {
        Ok(object) => Some(Conversation::of_object(&object)),
        Err(error) => {
            out.damaged_file(&error);
            None
        }
    }
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    files::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// A whole object under the name of a log, which older versions left.
fn parsed(path: &Path) -> Option<Conversation> {
    let text = text(path).ok()?;
    let object: RawFields<'_> = serde_json::from_str(&text).ok()?;
    object.get("messages").is_some().then(|| Conversation::of_object(&object))
}
