//! Tries to read and write outside the session's folder through the client.

use serde_json::json;

use super::{
    client_calls::{ask, folder},
    prompt::{Ended, Stage},
};

/// Paths as an agent would send them; `~` stands for the session's folder. A test prepares the links and the FIFO.
const READS: [&str; 9] = [
    "~/../secret.txt",
    "~/sub/../../secret.txt",
    "~-evil/secret.txt",
    "~/link-to-file",
    "~/link-to-folder/secret.txt",
    "~/fifo",
    "/etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
];
const WRITES: [&str; 6] = [
    "~/../written.txt",
    "~-evil/written.txt",
    "~/link-to-file",
    "~/link-to-folder/written.txt",
    "~/dangling-link",
    "/dev/null",
];

pub fn try_all(stage: &Stage) -> Result<(), Ended> {
    for path in READS {
        let params = json!({"sessionId": stage.session, "path": path.replace('~', &folder(stage))});
        let verdict = match ask(stage, "fs/read_text_file", &params)? {
            // An empty file is how a client may hide that there is none.
            Ok(result) if result["content"] == "" => "hidden",
            Ok(_) => "LEAKED",
            Err(_) => "refused",
        };
        stage.say(&format!("escape read {path}: {verdict}\n"))?;
    }
    for path in WRITES {
        let path_sent = path.replace('~', &folder(stage));
        let params = json!({"sessionId": stage.session, "path": path_sent, "content": "written by the fake agent"});
        let verdict = if ask(stage, "fs/write_text_file", &params)?.is_ok() { "LEAKED" } else { "refused" };
        stage.say(&format!("escape write {path}: {verdict}\n"))?;
    }
    Ok(())
}
