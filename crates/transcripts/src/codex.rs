//! Sessions of Codex: a log of what went to the model and came back, and of events beside it.
//!
//! What a person typed and what the model said stand in both; the conversation is taken from what went to the model
//! (`response_item`), tokens from the events. An answer is held until the next one begins, since its tokens come after
//! it.

pub(crate) mod find;
mod item;

use gembridge_unified::{Block, Body, Original, Role, UnifiedMessage, UnifiedUsage};
use serde_json::Value;

use crate::files;
use crate::output::Output;
use crate::session::{Facts, Located};
use crate::time;
use item::Item;

pub(crate) fn read(session: &Located, out: &mut Output<'_>) -> Facts {
    let mut reader = Reader::default();
    reader.facts.title = find::title(session);
    for path in session.paths() {
        files::for_each_line(path, out, |line, out| match serde_json::from_str(line) {
            Ok(record) => reader.record(&record, line, out),
            Err(error) => out.damaged_line(&error),
        });
    }
    reader.flush(out);
    reader.facts
}

#[derive(Default)]
struct Reader {
    facts: Facts,
    model: Option<String>,
    /// What the model said and called, until its tokens were counted or the next answer begins.
    answer: Option<Draft>,
    /// What the tools that it called returned.
    results: Option<Draft>,
    /// The tokens of the whole session up to here, as the session counts them.
    total: UnifiedUsage,
    items: u64,
}

/// A message that is still being put together.
struct Draft {
    message: UnifiedMessage,
    lines: Vec<Box<str>>,
}

impl Reader {
    fn record(&mut self, record: &Value, line: &str, out: &mut Output<'_>) {
        let at = time::millis(&record["timestamp"]);
        self.facts.seen_at(at);
        let kind = record["type"].as_str().unwrap_or_default();
        let payload = &record["payload"];
        match kind {
            "session_meta" => self.meta(payload),
            "turn_context" => {
                if let Some(model) = payload["model"].as_str() {
                    self.model = Some(model.to_owned());
                    self.facts.model.clone_from(&self.model);
                }
            }
            "event_msg" if payload["type"] == "token_count" => self.tokens(&payload["info"]),
            "event_msg" if payload["type"] == "thread_name_updated" => {
                self.facts.title = payload["thread_name"].as_str().map(str::to_owned).or(self.facts.title.take());
            }
            "response_item" => self.item(record, line, out),
            // Until 0.44 the first line was the session itself.
            _ if payload.is_null() && record.get("instructions").is_some() => self.meta(record),
            _ if payload.is_null() && !kind.is_empty() => self.item(record, line, out),
            _ => {}
        }
    }

    /// The first of them: a session that goes on from another repeats the other's beginning after its own.
    fn meta(&mut self, meta: &Value) {
        self.facts.seen_at(time::millis(&meta["timestamp"]));
        if self.facts.version.is_none() {
            self.facts.version = meta["cli_version"].as_str().map(str::to_owned);
        }
        if self.facts.project.is_none() {
            self.facts.project = meta["cwd"].as_str().map(Into::into);
        }
    }

    fn item(&mut self, record: &Value, line: &str, out: &mut Output<'_>) {
        self.items += 1;
        match item::item(payload(record), out) {
            Item::Said { role: Role::Assistant, blocks } => {
                // Results, or tokens, end an answer: what comes after them is the next.
                let is_over = self.answer.as_ref().is_some_and(|answer| answer.message.usage.is_some());
                if is_over || self.results.is_some() {
                    self.flush(out);
                }
                let mut draft = self.answer.take().unwrap_or_else(|| {
                    let mut draft = self.draft(record, Role::Assistant, out);
                    draft.message.model.clone_from(&self.model);
                    draft
                });
                draft.add(blocks, line, out);
                self.answer = Some(draft);
            }
            Item::Said { role, blocks } => {
                self.flush(out);
                let mut draft = self.draft(record, role, out);
                draft.add(blocks, line, out);
                draft.finish(out);
            }
            Item::Returned(block) => {
                let draft = self.results.take();
                let mut draft = draft.unwrap_or_else(|| self.draft(record, Role::User, out));
                draft.add(vec![block], line, out);
                self.results = Some(draft);
            }
            Item::Nothing => {}
        }
    }

    fn draft(&self, record: &Value, role: Role, out: &Output<'_>) -> Draft {
        let message = UnifiedMessage {
            id: payload(record)["id"].as_str().map_or_else(|| format!("item_{}", self.items), str::to_owned),
            role,
            content: Body::Blocks(Vec::new()),
            timestamp: time::millis(&record["timestamp"]).or(self.facts.updated).unwrap_or(0),
            tool: out.agent.name().to_owned(),
            model: None,
            usage: None,
            original: None,
        };
        Draft { message, lines: Vec::new() }
    }

    /// Counts are of the whole session and are repeated: only what was added is new.
    fn tokens(&mut self, info: &Value) {
        let Some(total) = usage(&info["total_token_usage"]) else { return };
        let before = std::mem::replace(&mut self.total, total);
        let added = if total.total() >= before.total() {
            difference(&total, &before)
        } else {
            // The count began anew, as after a compaction.
            usage(&info["last_token_usage"]).unwrap_or_default()
        };
        if added.total() == 0 {
            return;
        }
        self.facts.usage.add(&added);
        if let Some(answer) = &mut self.answer {
            answer.message.usage.get_or_insert_default().add(&added);
        }
    }

    fn flush(&mut self, out: &mut Output<'_>) {
        for draft in [self.answer.take(), self.results.take()].into_iter().flatten() {
            draft.finish(out);
        }
    }
}

impl Draft {
    fn add(&mut self, added: Vec<Block>, line: &str, out: &Output<'_>) {
        if let Body::Blocks(blocks) = &mut self.message.content {
            blocks.extend(added);
        }
        out.keep(line, &mut self.lines);
    }

    fn finish(mut self, out: &mut Output<'_>) {
        if let (Body::Blocks(blocks), Role::User | Role::System) = (&mut self.message.content, self.message.role) {
            self.message.content = Body::plain_where_possible(std::mem::take(blocks));
        }
        self.message.original = Original::of_records(self.lines);
        out.message(self.message);
    }
}

/// The item of a line; until 0.44 a line was the item itself.
fn payload(record: &Value) -> &Value {
    match &record["payload"] {
        Value::Null => record,
        payload => payload,
    }
}

/// Tokens as Codex counts them: its input includes what was cached, its output includes reasoning.
fn usage(usage: &Value) -> Option<UnifiedUsage> {
    usage.is_object().then(|| UnifiedUsage {
        input_tokens: usage["input_tokens"].as_u64(),
        output_tokens: usage["output_tokens"].as_u64(),
        thought_tokens: usage["reasoning_output_tokens"].as_u64(),
        total_tokens: usage["total_tokens"].as_u64(),
        cache_creation_tokens: None,
        cache_read_tokens: usage["cached_input_tokens"].as_u64(),
    })
}

fn difference(now: &UnifiedUsage, before: &UnifiedUsage) -> UnifiedUsage {
    let less = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
    UnifiedUsage {
        input_tokens: less(now.input_tokens, before.input_tokens),
        output_tokens: less(now.output_tokens, before.output_tokens),
        thought_tokens: less(now.thought_tokens, before.thought_tokens),
        total_tokens: less(now.total_tokens, before.total_tokens),
        cache_creation_tokens: None,
        cache_read_tokens: less(now.cache_read_tokens, before.cache_read_tokens),
    }
}
