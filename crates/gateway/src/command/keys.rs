//! `gembridge keys`: who may use the gateway. A running gateway sees a change at once.

use gembridge_api::keys::Key;

use crate::cli::args::{KeysCommand, NewKeyArgs};
use crate::config::Folders;
use crate::config::entries::Reported;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::keys::{self, Entry, KeyFile, KeyLimits, StoredRank};
use crate::terminal;

use super::{Context, pretty};

pub fn run(command: &KeysCommand, context: &Context) -> CommandResult {
    let folders = &context.config.folders;
    let file = KeyFile::load(folders)?;
    Reported::default().warn(&file.reports());
    let said = match command {
        KeysCommand::Create(args) => create(folders, args)?,
        KeysCommand::List { json: true } => pretty(&file.entries().iter().map(described).collect()),
        KeysCommand::List { json: false } if file.entries().is_empty() => {
            "there are no keys; `gembridge keys create NAME` makes one, and the first `gembridge serve` makes the operator's\n".to_owned()
        }
        KeysCommand::List { json: false } => table(file.entries()),
        KeysCommand::Rotate { name, json } => told(name, &keys::rotate(folders, name)?, *json),
        KeysCommand::Revoke { name } => {
            keys::revoke(folders, name)?;
            format!("key `{name}` is revoked: its next request fails, its open streams end\n")
        }
    };
    terminal::print(&said)?;
    Ok(ExitCode::Success)
}

fn create(folders: &Folders, args: &NewKeyArgs) -> Result<String, CommandError> {
    let limits = KeyLimits { turns: args.turns, queue: args.queue, priority: args.priority };
    let rank = if args.admin { StoredRank::Admin } else { StoredRank::User };
    let key = keys::create(folders, &args.name, rank, limits)?;
    Ok(told(&args.name, &key, args.json))
}

/// A new secret, for whoever gave the command.
fn told(name: &str, key: &Key, as_json: bool) -> String {
    if as_json {
        return pretty(&serde_json::json!({ "name": name, "key": key.expose() }));
    }
    // Alone on its line, so that a script can take it; the sentence goes where people read.
    terminal::write_stderr("this is the only time that the key is shown:\n");
    format!("{}\n", key.expose())
}

fn described(entry: &Entry) -> serde_json::Value {
    serde_json::json!({
        "name": entry.name,
        "rank": entry.rank,
        "created": entry.created,
        "limits": entry.limits,
    })
}

fn table(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let rank = match entry.rank {
            StoredRank::Admin => "admin",
            StoredRank::User => "user",
        };
        let limits = [
            entry.limits.turns.map(|turns| format!("turns {}", turns.0)),
            entry.limits.queue.map(|queue| format!("queue {}", queue.0)),
            entry.limits.priority.map(|priority| format!("priority {priority}")),
        ];
        let limits = limits.into_iter().flatten().collect::<Vec<_>>().join(", ");
        format!("{:width$}  {rank:5}  {:.0}  {limits}", entry.name, entry.created).trim_end().to_owned() + "\n"
    };
    entries.iter().map(line).collect()
}
