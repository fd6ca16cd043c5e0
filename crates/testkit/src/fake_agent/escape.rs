//! Tries to read and write outside the session's folder through the client.

use serde_json::json;

use super::{
    client_calls::{ask, folder},
    prompt::{Ended, PromptRun},
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

pub fn try_all(run: &PromptRun) -> Result<(), Ended> {
    for path in READS {
        let params = json!({"sessionId": run.session, "path": path.replace('~', &folder(run))});
        let verdict = match ask(run, "fs/read_text_file", &params)? {
            // An empty file is how a client may hide that there is none.
            Ok(result) if result["content"] == "" => "hidden",
            Ok(_) => "LEAKED",
            Err(_) => "refused",
        };
        run.say(&format!("escape read {path}: {verdict}\n"))?;
    }
    for path in WRITES {
        let path_sent = path.replace('~', &folder(run));
        let params = json!({"sessionId": run.session, "path": path_sent, "content": "written by the fake agent"});
        let verdict = if ask(run, "fs/write_text_file", &params)?.is_ok() { "LEAKED" } else { "refused" };
        run.say(&format!("escape write {path}: {verdict}\n"))?;
    }
    Ok(())
}
