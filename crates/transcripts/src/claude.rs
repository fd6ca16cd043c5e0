//! Sessions of Claude Code: a log of lines, of which most are bookkeeping.
//!
//! One message of the API is split over several lines with one `message.id`, and results of its tools may come between
//! them. It is put together again and held until something else begins, so memory is bounded by one message.

pub(crate) mod find;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use gembridge_unified::{Block, Body, Original, Role, Source, UnifiedMessage, UnifiedUsage};
use serde_json::Value;

use crate::files;
use crate::json::Json;
use crate::output::Output;
use crate::session::{Facts, Located};
use crate::uuid_record::message;

/// The fields of a line that are looked at. What tools returned stands in others once more.
const FIELDS: [&str; 15] = [
    "aiTitle",
    "content",
    "customTitle",
    "cwd",
    "isCompactSummary",
    "isMeta",
    "isSidechain",
    "message",
    "requestId",
    "requestRef",
    "summary",
    "timestamp",
    "type",
    "uuid",
    "version",
];

pub(crate) fn read(session: &Located, out: &mut Output<'_>) -> Facts {
    let mut reader = Reader::default();
    for path in session.paths() {
        files::for_each_line(path, out, |line, out| match Json::of_line(line, &FIELDS) {
            Ok(record) => reader.record(record, line, out),
            Err(error) => out.damaged_line(&error),
        });
    }
    reader.flush(out);
    reader.facts
}

/// What makes a message of the API one: its id, and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    id: String,
    request: Option<String>,
}

impl Key {
    fn of(record: &Json<'_>) -> Self {
        let id = record["message"]["id"].as_str().or_else(|| record["uuid"].as_str()).unwrap_or_default();
        let request = record["requestId"].as_str().or_else(|| record["requestRef"].as_str());
        Self { id: id.to_owned(), request: request.map(str::to_owned) }
    }
}

#[derive(Default)]
struct Reader {
    facts: Facts,
    /// Whose file it is, known from its first line of a conversation.
    writer: Option<Writer>,
    /// The message of the API whose lines are being read.
    open: Option<Open>,
    /// Results of tools that came while it was open.
    results: Vec<UnifiedMessage>,
    /// Messages whose tokens are counted, by the hash of their id: memory must not grow with what they say.
    counted: HashSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Session,
    Subagent,
}

struct Open {
    key: Key,
    message: UnifiedMessage,
    lines: Vec<Box<str>>,
    usage: Option<UnifiedUsage>,
}

impl Reader {
    fn record(&mut self, record: Json<'_>, line: &str, out: &mut Output<'_>) {
        let at = record["timestamp"].millis();
        self.facts.seen_at(at);
        if let Some(version) = record["version"].as_str()
            && self.facts.version.as_deref() != Some(version)
        {
            self.facts.version = Some(version.to_owned());
        }
        if self.facts.project.is_none() {
            self.facts.project = record["cwd"].as_str().map(Into::into);
        }
        match record["type"].as_str().unwrap_or_default() {
            "user" if record["message"].is_object() => self.of_user(record, at, line, out),
            "assistant" if record["message"].is_object() => self.of_agent(record, at, line, out),
            "ai-title" => self.title(&record["aiTitle"]),
            "custom-title" => self.title(&record["customTitle"]),
            // One in a session's own file is of another session, which this one continues, unless nothing else is known.
            "summary" if self.facts.title.is_none() => self.title(&record["summary"]),
            "system" => self.of_program(&record, at, line, out),
            // Everything else is bookkeeping. `api-request-blob` has a `message` too, which is none of the conversation.
            _ => {}
        }
    }

    fn title(&mut self, title: &Json<'_>) {
        if let Some(title) = title.as_str().filter(|title| !title.is_empty()) {
            self.facts.title = Some(title.to_owned());
        }
    }

    /// Lines of subagents stand in the file of their session in older versions.
    fn is_of_another(&mut self, record: &Json<'_>) -> bool {
        let writer = if record["isSidechain"].is_true() { Writer::Subagent } else { Writer::Session };
        *self.writer.get_or_insert(writer) == Writer::Session && writer == Writer::Subagent
    }

    fn of_user(&mut self, mut record: Json<'_>, at: Option<u64>, line: &str, out: &mut Output<'_>) {
        if self.is_of_another(&record) {
            return;
        }
        let blocks = blocks(record.take("message").take("content"), out);
        if blocks.is_empty() {
            return;
        }
        let are_results = blocks.iter().all(|block| matches!(block, Block::ToolResult { .. }));
        let is_added = record["isMeta"].is_true() || record["isCompactSummary"].is_true();
        let role = if is_added { Role::System } else { Role::User };
        let mut message = message(record["uuid"].as_str(), at, role, Body::plain_where_possible(blocks), out);
        message.original = out.original(line);
        if are_results && self.open.is_some() {
            self.results.push(message);
            return;
        }
        self.flush(out);
        out.message(message);
    }

    fn of_agent(&mut self, mut record: Json<'_>, at: Option<u64>, line: &str, out: &mut Output<'_>) {
        let key = Key::of(&record);
        let usage = usage(&record["message"]["usage"]);
        if self.is_of_another(&record) {
            self.count(&key, usage);
            return;
        }
        let mut said = record.take("message");
        let written = blocks(said.take("content"), out);
        if let Some(open) = self.open.as_mut().filter(|open| open.key == key) {
            if let Body::Blocks(blocks) = &mut open.message.content {
                blocks.extend(written);
            }
            // The last line has the final count.
            open.usage = usage.or(open.usage);
            out.keep(line, &mut open.lines);
            return;
        }
        self.flush(out);
        let mut message = message(record["uuid"].as_str(), at, Role::Assistant, Body::Blocks(written), out);
        // Messages that the program wrote itself, such as errors of the API, have no model.
        message.model = said["model"].as_str().filter(|model| *model != "<synthetic>").map(str::to_owned);
        message.id.clone_from(&key.id);
        if message.model.is_some() {
            self.facts.model.clone_from(&message.model);
        }
        let mut lines = Vec::new();
        out.keep(line, &mut lines);
        self.open = Some(Open { key, message, lines, usage });
    }

    fn of_program(&mut self, record: &Json<'_>, at: Option<u64>, line: &str, out: &mut Output<'_>) {
        let Some(text) = record["content"].as_str().filter(|text| !text.is_empty()) else { return };
        if self.is_of_another(record) {
            return;
        }
        self.flush(out);
        let mut message = message(record["uuid"].as_str(), at, Role::System, Body::Text(text.to_owned()), out);
        message.original = out.original(line);
        out.message(message);
    }

    /// The open message and the results that came meanwhile are complete.
    fn flush(&mut self, out: &mut Output<'_>) {
        if let Some(mut open) = self.open.take() {
            // A message that came back after others had begun brings the tokens that were counted before.
            open.message.usage = self.count(&open.key, open.usage);
            open.message.original = Original::of_records(open.lines);
            out.message(open.message);
        }
        for result in self.results.drain(..) {
            out.message(result);
        }
    }

    /// The tokens of a message, the first time that it is met.
    fn count(&mut self, key: &Key, usage: Option<UnifiedUsage>) -> Option<UnifiedUsage> {
        let usage = usage?;
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.counted.insert(hasher.finish()).then(|| {
            self.facts.usage.add(&usage);
            usage
        })
    }
}

fn blocks(content: Json<'_>, out: &Output<'_>) -> Vec<Block> {
    match content {
        Json::Text(text) if text.is_empty() => Vec::new(),
        Json::Text(text) => vec![Block::Text { text: text.into_owned() }],
        Json::List(blocks) => blocks.into_iter().map(|found| block(found, out)).collect(),
        _ => Vec::new(),
    }
}

fn block(mut block: Json<'_>, out: &Output<'_>) -> Block {
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "text" => Block::Text { text: text(&mut block, "text") },
        "thinking" => Block::Thinking { thinking: text(&mut block, "thinking") },
        "tool_use" => {
            let input = Value::from(block.take("input"));
            out.tool_use(&text(&mut block, "id"), &text(&mut block, "name"), &input)
        }
        "tool_result" => {
            let mut content = Body::plain_where_possible(blocks(block.take("content"), out));
            if matches!(&content, Body::Blocks(blocks) if blocks.is_empty()) {
                content = Body::Text(String::new());
            }
            let exit_code = match &content {
                Body::Text(text) => exit_code(text),
                Body::Blocks(_) => None,
            };
            let is_error = block["is_error"].is_true();
            Block::ToolResult { tool_use_id: text(&mut block, "tool_use_id"), content, is_error, exit_code }
        }
        "image" => {
            let source = serde_json::from_value(Value::from(block["source"].clone()));
            source.map_or_else(|_| other(block), |source: Source| Block::Image { source })
        }
        _ => other(block),
    }
}

/// Moves a text out of a block.
fn text(block: &mut Json<'_>, field: &str) -> String {
    block.take(field).into_text().unwrap_or_default()
}

fn other(block: Json<'_>) -> Block {
    Block::Other { kind: block["type"].as_str().unwrap_or_default().to_owned(), body: block.into() }
}

/// A command that failed begins its output with its code.
fn exit_code(output: &str) -> Option<i64> {
    output.lines().next()?.strip_prefix("Exit code ")?.trim().parse().ok()
}

/// Tokens as the API counts them: its input leaves out what was cached.
fn usage(usage: &Json<'_>) -> Option<UnifiedUsage> {
    usage.is_object().then(|| UnifiedUsage {
        input_tokens: usage["input_tokens"].as_u64(),
        output_tokens: usage["output_tokens"].as_u64(),
        thought_tokens: None,
        total_tokens: None,
        cache_creation_tokens: usage["cache_creation_input_tokens"].as_u64(),
        cache_read_tokens: usage["cache_read_input_tokens"].as_u64(),
    })
}
