//! Turns the steps of a script into the API's answer: a stream of events, one object, or an error.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{body::Piece, script::Step};

pub struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub pieces: Vec<Piece>,
}

impl Reply {
    pub fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            content_type: "application/json; charset=UTF-8",
            pieces: vec![Piece::Bytes(value.to_string().into())],
        }
    }

    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"code": status, "message": message, "status": status_name(status)}}))
    }
}

/// `streamGenerateContent`: one event for each chunk, the last one with the finish reason and the tokens.
pub fn stream(steps: &[Step], model: &str) -> Reply {
    if let Some(reply) = failed(steps) {
        return reply;
    }
    let mut events = Events { pieces: Vec::new(), pending: Vec::new() };
    let mut held: Option<Value> = None;
    let mut summary = Summary::of(steps);
    for step in steps {
        if let Some(chunks) = chunks_of(step, model) {
            for chunk in chunks {
                events.add(held.replace(chunk));
            }
            continue;
        }
        match step {
            Step::DelayMs(ms) => {
                events.add(held.take());
                events.pause(Duration::from_millis(*ms));
            }
            Step::Raw(text) => {
                events.add(held.take());
                events.pending.extend_from_slice(text.as_bytes());
            }
            _ => {}
        }
    }
    if summary.ends_well() {
        let mut last = held.take().unwrap_or_else(|| chunk(json!([]), model));
        summary.finish(&mut last);
        events.add(Some(last));
    }
    events.add(held);
    Reply { status: 200, content_type: "text/event-stream", pieces: events.finish(summary.ending) }
}

/// `generateContent`: all parts in one object.
pub fn whole(steps: &[Step], model: &str) -> Reply {
    if let Some(reply) = failed(steps) {
        return reply;
    }
    let parts: Vec<Value> = steps
        .iter()
        .filter_map(|step| chunks_of(step, model))
        .flatten()
        .flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default())
        .collect();
    let mut answer = chunk(json!(parts), model);
    Summary::of(steps).finish(&mut answer);
    Reply::json(200, &answer)
}

/// An object that satisfies a schema: what the CLI's own questions to the model (which model, who speaks next) need.
pub fn example_of(schema: &Value) -> Value {
    let kind = schema["type"].as_str().unwrap_or("object").to_ascii_lowercase();
    match (schema["enum"].as_array().and_then(|values| values.first()), kind.as_str()) {
        (Some(first), _) => first.clone(),
        (None, "string") => json!("because this is a fake"),
        (None, "number" | "integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        (None, "boolean") => json!(false),
        (None, "array") => json!([]),
        (None, _) => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(properties.map(|(name, schema)| (name.clone(), example_of(schema))).collect())
        }
    }
}

fn failed(steps: &[Step]) -> Option<Reply> {
    let status = steps.iter().find_map(|step| if let Step::Status(status) = step { Some(*status) } else { None })?;
    let body = steps.iter().find_map(|step| if let Step::Body(body) = step { Some(body) } else { None });
    Some(match body {
        Some(body) => Reply::json(status, body),
        None => Reply::error(status, "as the script says"),
    })
}

fn chunks_of(step: &Step, model: &str) -> Option<Vec<Value>> {
    Some(match step {
        Step::Text(text) => vec![chunk(json!([{"text": text}]), model)],
        Step::Repeat { text, times } => vec![chunk(json!([{"text": text}]), model); *times],
        Step::Thought(text) => vec![chunk(json!([{"text": text, "thought": true}]), model)],
        Step::Call(call) => vec![chunk(json!([{"functionCall": call}]), model)],
        Step::Chunk(chunk) => vec![chunk.clone()],
        Step::Block(reason) => vec![json!({"promptFeedback": {"blockReason": reason}, "modelVersion": model})],
        _ => return None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the callers write their parts in place")]
fn chunk(parts: Value, model: &str) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": model, "responseId": "fake"})
}

/// How the answer ends, and what it cost.
struct Summary {
    ending: Ending,
    finish: String,
    blocked: bool,
    usage: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Finished,
    WithoutFinish,
    Cut,
    Stall,
}

impl Summary {
    fn of(steps: &[Step]) -> Self {
        let thoughts = steps.iter().filter(|step| matches!(step, Step::Thought(_))).count() * 5;
        let usage = json!({"promptTokenCount": 1000, "candidatesTokenCount": 20, "thoughtsTokenCount": thoughts,
            "totalTokenCount": 1020 + thoughts});
        let mut summary = Self { ending: Ending::Finished, finish: "STOP".into(), blocked: false, usage };
        for step in steps {
            match step {
                Step::Finish(reason) => summary.finish.clone_from(reason),
                Step::Usage(usage) => summary.usage.clone_from(usage),
                Step::Block(_) => summary.blocked = true,
                Step::End(true) => summary.ending = Ending::WithoutFinish,
                Step::Cut(true) => summary.ending = Ending::Cut,
                Step::Stall(true) => summary.ending = Ending::Stall,
                _ => {}
            }
        }
        summary
    }

    fn ends_well(&self) -> bool {
        self.ending == Ending::Finished
    }

    fn finish(&mut self, last: &mut Value) {
        if !self.blocked {
            last["candidates"][0]["finishReason"] = json!(self.finish);
        }
        last["usageMetadata"] = self.usage.take();
    }
}

/// Events are joined until something must happen between them.
struct Events {
    pieces: Vec<Piece>,
    pending: Vec<u8>,
}

impl Events {
    fn add(&mut self, chunk: Option<Value>) {
        if let Some(chunk) = chunk {
            self.pending.extend_from_slice(format!("data: {chunk}\r\n\r\n").as_bytes());
        }
    }

    fn pause(&mut self, time: Duration) {
        self.flush();
        self.pieces.push(Piece::Pause(time));
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.pieces.push(Piece::Bytes(Bytes::from(std::mem::take(&mut self.pending))));
        }
    }

    fn finish(mut self, ending: Ending) -> Vec<Piece> {
        self.flush();
        match ending {
            Ending::Finished | Ending::WithoutFinish => {}
            // The pause lets what was written leave before the connection breaks.
            Ending::Cut => self.pieces.extend([Piece::Pause(Duration::from_millis(10)), Piece::Break]),
            Ending::Stall => self.pieces.push(Piece::Stall),
        }
        self.pieces
    }
}

fn status_name(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
