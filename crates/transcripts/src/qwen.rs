//! Sessions of Qwen Code: a log of lines, each a message in the form of the Gemini API. Its older versions wrote what
//! Gemini CLI writes.

pub(crate) mod find;

use gembridge_unified::{Block, Body, Role, UnifiedMessage, UnifiedUsage};

use crate::blocks::{self, Part, Verdict};
use crate::files;
use crate::gemini;
use crate::json::Json;
use crate::output::Output;
use crate::session::{Facts, Located};
use crate::uuid_record::message;

/// The fields of a line that are looked at.
const FIELDS: [&str; 12] = [
    "cwd",
    "message",
    "model",
    "provenance",
    "subtype",
    "systemPayload",
    "timestamp",
    "toolCallResult",
    "type",
    "usageMetadata",
    "uuid",
    "version",
];

pub(crate) fn read(session: &Located, out: &mut Output<'_>) -> Facts {
    if session.paths().iter().any(|path| find::is_of_gemini_layout(path)) {
        return gemini::read(session, out);
    }
    let mut facts = Facts::default();
    for path in session.paths() {
        files::for_each_line(path, out, |line, out| match Json::of_line(line, &FIELDS) {
            Ok(record) => record_of(&record, line, &mut facts, out),
            Err(error) => out.damaged_line(&error),
        });
    }
    facts
}

fn record_of(record: &Json<'_>, line: &str, facts: &mut Facts, out: &mut Output<'_>) {
    let at = record["timestamp"].millis();
    let message = |role, content, out: &Output<'_>| message(record["uuid"].as_str(), at, role, content, out);
    facts.seen_at(at);
    if let Some(version) = record["version"].as_str() {
        facts.version = Some(version.to_owned());
    }
    if facts.project.is_none() {
        facts.project = record["cwd"].as_str().map(Into::into);
    }
    let message = match record["type"].as_str().unwrap_or_default() {
        "user" => {
            // What the program says in the name of the user, such as a reminder, is not typed by anybody.
            let is_typed = record["provenance"].as_str().is_none_or(|from| from == "real_user");
            let blocks = message_blocks(record, out);
            message(if is_typed { Role::User } else { Role::System }, Body::plain_where_possible(blocks), out)
        }
        "assistant" => {
            let mut said = message(Role::Assistant, Body::Blocks(message_blocks(record, out)), out);
            said.model = record["model"].as_str().map(str::to_owned);
            said.usage = usage(&record["usageMetadata"]);
            if let Some(usage) = &said.usage {
                facts.usage.add(usage);
            }
            if said.model.is_some() {
                facts.model.clone_from(&said.model);
            }
            said
        }
        "tool_result" => message(Role::User, Body::Blocks(results(record, out)), out),
        "system" if record["subtype"].as_str() == Some("custom_title") => {
            let payload = &record["systemPayload"];
            let title = payload["customTitle"].as_str().or_else(|| payload["title"].as_str());
            facts.title = title.map(str::to_owned).or(facts.title.take());
            return;
        }
        _ => return,
    };
    if matches!(&message.content, Body::Blocks(blocks) if blocks.is_empty()) && message.usage.is_none() {
        return;
    }
    let original = out.original(line);
    out.message(UnifiedMessage { original, ..message });
}

fn message_blocks(record: &Json<'_>, out: &Output<'_>) -> Vec<Block> {
    blocks::parts(&record["message"]["parts"]).iter().filter_map(|part| blocks::block(part, out)).collect()
}

fn results(record: &Json<'_>, out: &Output<'_>) -> Vec<Block> {
    let failed = matches!(record["toolCallResult"]["status"].as_str(), Some("error" | "cancelled"));
    let verdict = if failed { Verdict::Failed } else { Verdict::Untold };
    let result = |part: &Part<'_>| match part {
        Part::Response { id, response } => Some(blocks::tool_result(id, response, &[], verdict)),
        part => blocks::block(part, out),
    };
    blocks::parts(&record["message"]["parts"]).iter().filter_map(result).collect()
}

/// Tokens as the API counts them: its input includes what was cached.
fn usage(usage: &Json<'_>) -> Option<UnifiedUsage> {
    usage.is_object().then(|| UnifiedUsage {
        input_tokens: usage["promptTokenCount"].as_u64(),
        output_tokens: usage["candidatesTokenCount"].as_u64(),
        thought_tokens: usage["thoughtsTokenCount"].as_u64(),
        total_tokens: usage["totalTokenCount"].as_u64(),
        cache_creation_tokens: None,
        cache_read_tokens: usage["cachedContentTokenCount"].as_u64(),
    })
}
