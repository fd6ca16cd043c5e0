//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod conversation;
mod follow_up;
mod form;
mod format;
mod media;
mod tools;

use gembridge_core::exchange::{Counts, TokenLimit, Tools};
use gembridge_core::tool_host::FormatSpec;

use super::wire::{ChatRequest, Message, OneOrMany, Skipped};
use crate::dialect::{self, Ignored, brief};
use crate::problem::Problem;

pub use conversation::{check_abilities, conversation};
pub use follow_up::follow_up;
pub(super) use format::PLACE as SCHEMA_PLACE;
pub use tools::Wording;

/// Everything of a request that is not its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    pub model: String,
    pub reply: Reply,
    /// How many answers.
    pub choices: usize,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    pub tools: Tools,
    pub wording: Wording,
    /// The form that the answer shall have. `None`: text.
    pub format: Option<FormatSpec>,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Whole,
    Stream { usage: bool },
}

const MOST_CHOICES: u64 = 8;

pub fn parse(body: &[u8]) -> Result<ChatRequest<'_>, Problem> {
    dialect::parse(body, "a request for a chat completion")
}

pub fn options(request: &ChatRequest<'_>) -> Result<RequestOptions, Problem> {
    form::check(request)?;
    refuse(request)?;
    let model = request.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| {
        Problem::invalid("model", "`model` is missing; name an agent or a model that `GET /v1/models` lists")
    })?;
    let stream = request.stream.unwrap_or(false);
    let usage = request.stream_options.as_ref().and_then(|options| options.include_usage).unwrap_or(false);
    if request.stream_options.is_some() && !stream {
        return Err(Problem::invalid("stream_options", "`stream_options` needs `stream: true`"));
    }
    let (tools, wording) = tools::tools(request)?;
    Ok(RequestOptions {
        model: model.to_owned(),
        reply: if stream { Reply::Stream { usage } } else { Reply::Whole },
        choices: choices(request.n)?,
        stop: stop(request)?,
        limit: limit(request)?,
        ignored: ignored(request, wording),
        tools,
        wording,
        format: format::format(request.response_format.as_ref())?,
    })
}

/// Fields that would change the answer in a way that we cannot.
fn refuse(request: &ChatRequest<'_>) -> Result<(), Problem> {
    let no_logprobs = "agents do not report the probabilities of tokens; leave it out";
    if request.logprobs.is_some_and(|value| value != Skipped::False) {
        return Err(Problem::invalid("logprobs", no_logprobs));
    }
    if request.top_logprobs.is_some() {
        return Err(Problem::invalid("top_logprobs", no_logprobs));
    }
    let other = request.modalities.iter().flat_map(|list| &list.0).find(|modality| &***modality != "text");
    if let Some(other) = other {
        let message = format!("answers are text; leave `{}` out of `modalities`", brief(other));
        return Err(Problem::invalid("modalities", message));
    }
    Ok(())
}

fn choices(n: Option<u64>) -> Result<usize, Problem> {
    match n.unwrap_or(1) {
        n @ 1..=MOST_CHOICES => Ok(usize::try_from(n).unwrap_or(1)),
        n => Err(Problem::invalid("n", format!("`n` is {n}; ask for 1 to {MOST_CHOICES} answers"))),
    }
}

fn stop(request: &ChatRequest<'_>) -> Result<Vec<String>, Problem> {
    let stop: Vec<String> = match &request.stop {
        None => Vec::new(),
        Some(OneOrMany::One(text)) => vec![String::from(&**text)],
        Some(OneOrMany::Many(texts)) => texts.iter().map(|text| String::from(&**text)).collect(),
    };
    dialect::check_stop(&stop, "stop")?;
    Ok(stop)
}

fn limit(request: &ChatRequest<'_>) -> Result<Option<TokenLimit>, Problem> {
    let limit = match (request.max_completion_tokens, request.max_tokens) {
        (Some(tokens), _) => TokenLimit { tokens, counts: Counts::TextAndThoughts },
        (None, Some(tokens)) => TokenLimit { tokens, counts: Counts::Text },
        (None, None) => return Ok(None),
    };
    if limit.tokens == 0 {
        let field = if request.max_completion_tokens.is_some() { "max_completion_tokens" } else { "max_tokens" };
        return Err(Problem::invalid(field, format!("`{field}` is 0; an answer needs at least 1")));
    }
    Ok(Some(limit))
}

fn ignored(request: &ChatRequest<'_>, wording: Wording) -> Vec<String> {
    let known = [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("seed", request.seed),
        ("presence_penalty", request.presence_penalty),
        ("frequency_penalty", request.frequency_penalty),
        ("logit_bias", request.logit_bias),
        ("reasoning_effort", request.reasoning_effort),
        ("verbosity", request.verbosity),
    ];
    let mut ignored = Ignored::default();
    for (name, value) in known {
        if value.is_some() {
            ignored.add(name);
        }
    }
    if request.max_completion_tokens.is_some() && request.max_tokens.is_some() {
        ignored.add("max_tokens");
    }
    if request.service_tier.as_deref().is_some_and(|tier| !matches!(tier, "auto" | "default")) {
        ignored.add("service_tier");
    }
    for name in tools::idle_choices(request, wording) {
        ignored.add(name);
    }
    ignored.unknown("", &request.unknown);
    if let Some(options) = &request.stream_options {
        ignored.unknown("stream_options.", &options.unknown);
    }
    for (prefix, unknown) in tools::unknown(request) {
        ignored.unknown(prefix, unknown);
    }
    for message in request.messages.iter().flat_map(|messages| &messages.0) {
        ignored.unknown("messages.", &message.unknown);
        if let Some(OneOrMany::Many(parts)) = &message.content {
            for part in parts {
                ignored.unknown("messages.content.", &part.unknown);
                if let Some(image) = &part.image_url {
                    ignored.unknown("messages.content.image_url.", &image.unknown);
                }
            }
        }
    }
    let named =
        |message: &Message<'_>| message.name.is_some() && !matches!(message.role.as_deref(), Some("tool" | "function"));
    if request.messages.iter().flat_map(|messages| &messages.0).any(named) {
        ignored.add("messages.name");
    }
    ignored.into_names()
}
