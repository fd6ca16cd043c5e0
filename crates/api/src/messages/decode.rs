//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod blocks;
mod conversation;
mod tools;

use gembridge_core::exchange::{Counts, TokenLimit, Tools};
use gembridge_core::tool_host::FormatSpec;

use super::wire::{Block, Content, CreateRequest};
use crate::dialect::{self, Ignored, Thoughts, brief};
use crate::json::OneOrMany;
use crate::problem::Problem;

pub use conversation::{Conversation, conversation};

/// Everything of a request that is not its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    pub model: String,
    pub stream: bool,
    /// Whether the client wants to see thoughts.
    pub thoughts: Thoughts,
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    pub tools: Tools,
    /// The form that the answer shall have. `None`: text.
    pub format: Option<FormatSpec>,
    pub thread: Option<ThreadWish>,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

/// Whether a conversation is kept under the id of its last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadWish {
    Create,
    /// The conversation after this message goes on.
    Continue(String),
}

pub fn parse(body: &[u8]) -> Result<CreateRequest<'_>, Problem> {
    dialect::parse(body, "a request for a message")
}

pub fn options(request: &CreateRequest<'_>) -> Result<RequestOptions, Problem> {
    let model = request.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| {
        Problem::invalid("model", "`model` is missing; name an agent or a model that `GET /v1/models` lists")
    })?;
    let mut ignored = Ignored::default();
    let stop: Vec<String> =
        request.stop_sequences.iter().flat_map(|stop| &stop.0).map(|text| String::from(&**text)).collect();
    dialect::check_stop(&stop, "stop_sequences")?;
    let options = RequestOptions {
        model: model.strip_prefix(dialect::VENDOR_PREFIX).unwrap_or(model).to_owned(),
        stream: request.stream.unwrap_or(false),
        thoughts: thoughts(request),
        stop,
        limit: limit(request)?,
        tools: tools::tools(request, &mut ignored)?,
        format: format(request)?,
        thread: thread(request)?,
        ignored: Vec::new(),
    };
    note(request, &mut ignored);
    Ok(RequestOptions { ignored: ignored.into_names(), ..options })
}

/// Thoughts are shown to those who ask for them.
fn thoughts(request: &CreateRequest<'_>) -> Thoughts {
    match &request.thinking {
        Some(thinking) if thinking.kind.as_deref() == Some("disabled") => Thoughts::LeftOut,
        Some(thinking) if thinking.display.as_deref() == Some("omitted") => Thoughts::LeftOut,
        Some(_) => Thoughts::Shown,
        None => Thoughts::LeftOut,
    }
}

fn limit(request: &CreateRequest<'_>) -> Result<Option<TokenLimit>, Problem> {
    match request.max_tokens {
        Some(0) => Err(Problem::invalid("max_tokens", "`max_tokens` is 0; an answer needs at least 1")),
        Some(tokens) => Ok(Some(TokenLimit { tokens, counts: Counts::TextAndThoughts })),
        None => Ok(None),
    }
}

/// `None`: text.
fn format(request: &CreateRequest<'_>) -> Result<Option<FormatSpec>, Problem> {
    let newer = request.output_config.as_ref().and_then(|config| config.format.as_ref());
    let Some(format) = newer.or(request.output_format.as_ref()) else { return Ok(None) };
    let place = if newer.is_some() { "output_config.format" } else { "output_format" };
    match (format.kind.as_deref(), format.schema) {
        (Some("json_schema"), Some(schema)) => dialect::form(schema, &format!("{place}.schema")).map(Some),
        (Some("json_schema"), None) => {
            Err(Problem::invalid(format!("{place}.schema"), "a format of type `json_schema` needs a `schema`"))
        }
        (other, _) => {
            let other = brief(other.unwrap_or_default());
            let message = format!("`{other}` is no form of an answer; the only one is `json_schema`");
            Err(Problem::invalid(format!("{place}.type"), message))
        }
    }
}

fn thread(request: &CreateRequest<'_>) -> Result<Option<ThreadWish>, Problem> {
    let Some(thread) = &request.thread else { return Ok(None) };
    match (thread.kind.as_deref(), thread.previous_message_id.as_deref()) {
        (Some("create"), _) => Ok(Some(ThreadWish::Create)),
        (Some("continue"), Some(id)) => Ok(Some(ThreadWish::Continue(id.to_owned()))),
        (Some("continue"), None) => {
            let message = "a thread that goes on needs the id of its last message";
            Err(Problem::invalid("thread.previous_message_id", message))
        }
        (other, _) => {
            let other = brief(other.unwrap_or_default());
            Err(Problem::invalid("thread.type", format!("`{other}` is neither `create` nor `continue`")))
        }
    }
}

/// Names what has no effect.
fn note(request: &CreateRequest<'_>, ignored: &mut Ignored) {
    ignored.unknown("", &request.unknown);
    if let Some(thinking) = &request.thinking {
        ignored.unknown("thinking.", &thinking.unknown);
    }
    if let Some(config) = &request.output_config {
        ignored.unknown("output_config.", &config.unknown);
    }
    if let Some(choice) = &request.tool_choice {
        ignored.unknown("tool_choice.", &choice.unknown);
    }
    if let Some(system) = &request.system {
        note_blocks("system.", system, ignored);
    }
    for message in request.messages.iter().flat_map(|messages| &messages.0) {
        ignored.unknown("messages.", &message.unknown);
        if let Some(content) = &message.content {
            note_blocks("messages.content.", content, ignored);
        }
    }
}

fn note_blocks(prefix: &str, content: &Content<'_>, ignored: &mut Ignored) {
    let OneOrMany::Many(blocks) = content else { return };
    for block in blocks {
        let Block { unknown, content, .. } = block;
        ignored.unknown(prefix, unknown);
        if let Some(inner) = content {
            note_blocks(prefix, inner, ignored);
        }
    }
}
