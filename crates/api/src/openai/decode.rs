//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod media;

use gembridge_core::model::PromptAbilities;
use gembridge_core::session::conversation::{MediaKind, Part, Role, Said, Words};

use super::wire::{ChatRequest, Content, Message, OneOrMany, Skipped, Unknown, WordOrObject};
use crate::problem::Problem;

/// Everything of a request that is not its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    pub model: String,
    pub reply: Reply,
    /// How many answers.
    pub choices: usize,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Whole,
    Stream { usage: bool },
}

/// About how many tokens an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimit {
    pub tokens: u64,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Text,
    TextAndThoughts,
}

const MOST_CHOICES: u64 = 8;

pub fn parse(body: &[u8]) -> Result<ChatRequest<'_>, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("the body is not a request for a chat completion: {}", shortened(&error.to_string()));
        Problem::new(crate::problem::Kind::Invalid, message)
    })
}

pub fn wishes(request: &ChatRequest<'_>) -> Result<Wishes, Problem> {
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
    Ok(Wishes {
        model: model.to_owned(),
        reply: if stream { Reply::Stream { usage } } else { Reply::Whole },
        choices: choices(request.n)?,
        stop: stop(request)?,
        limit: limit(request)?,
        ignored: ignored(request),
    })
}

/// Fields that would change the answer in a way that we cannot.
fn refuse(request: &ChatRequest<'_>) -> Result<(), Problem> {
    let not_yet = |field: &str| {
        let message = format!("`{field}` is not part of this version; leave it out, the agent uses its own tools");
        Err(Problem::invalid(field, message))
    };
    for (field, list) in [("tools", &request.tools), ("functions", &request.functions)] {
        if list.as_ref().is_some_and(|list| !list.0.is_empty()) {
            return not_yet(field);
        }
    }
    for (field, choice) in [("tool_choice", &request.tool_choice), ("function_call", &request.function_call)] {
        match choice {
            None => {}
            Some(WordOrObject::Word(word)) if matches!(&**word, "none" | "auto") => {}
            Some(_) => return not_yet(field),
        }
    }
    let format = request.response_format.as_ref().map(|format| format.kind.as_deref().unwrap_or("text"));
    if let Some(format) = format.filter(|format| *format != "text") {
        let message = format!(
            "`response_format` of type `{}` is not part of this version; ask for JSON in the prompt",
            brief(format)
        );
        return Err(Problem::invalid("response_format", message));
    }
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
    match stop.iter().find(|text| text.is_empty() || text.len() > LONGEST_STOP) {
        Some(text) => {
            let message = format!("a text of `stop` has {} bytes; each may have 1 to {LONGEST_STOP}", text.len());
            Err(Problem::invalid("stop", message))
        }
        None => Ok(stop),
    }
}

/// What may have to be held back of an answer.
const LONGEST_STOP: usize = 1_024;

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

fn ignored(request: &ChatRequest<'_>) -> Vec<String> {
    let known = [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("seed", request.seed),
        ("presence_penalty", request.presence_penalty),
        ("frequency_penalty", request.frequency_penalty),
        ("logit_bias", request.logit_bias),
        ("reasoning_effort", request.reasoning_effort),
        ("verbosity", request.verbosity),
        ("parallel_tool_calls", request.parallel_tool_calls),
    ];
    let mut ignored: Vec<String> =
        known.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| (*name).to_owned()).collect();
    if request.max_completion_tokens.is_some() && request.max_tokens.is_some() {
        ignored.push("max_tokens".into());
    }
    let mut note = |prefix: &str, unknown: &Unknown| {
        for name in &unknown.0 {
            let name = format!("{prefix}{}", brief(name));
            if ignored.len() < MOST_IGNORED && !ignored.contains(&name) {
                ignored.push(name);
            }
        }
    };
    note("", &request.unknown);
    if let Some(options) = &request.stream_options {
        note("stream_options.", &options.unknown);
    }
    for message in request.messages.iter().flat_map(|messages| &messages.0) {
        note("messages.", &message.unknown);
        if let Some(OneOrMany::Many(parts)) = &message.content {
            for part in parts {
                note("messages.content.", &part.unknown);
                if let Some(image) = &part.image_url {
                    note("messages.content.image_url.", &image.unknown);
                }
            }
        }
    }
    let named = |message: &Message<'_>| message.name.is_some() && message.role.as_deref() != Some("tool");
    if request.messages.iter().flat_map(|messages| &messages.0).any(named) {
        ignored.push("messages.name".into());
    }
    ignored
}

/// Names that fit into a header.
const MOST_IGNORED: usize = 32;

/// The conversation, borrowed from the request.
pub fn conversation<'a>(request: &'a ChatRequest<'_>) -> Result<Vec<Said<'a>>, Problem> {
    let messages = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    if messages.is_empty() {
        return Err(Problem::invalid("messages", "`messages` is empty; say at least one thing"));
    }
    messages.iter().enumerate().map(|(at, message)| said(at, message)).collect()
}

fn said<'a>(at: usize, message: &'a Message<'_>) -> Result<Said<'a>, Problem> {
    let role = match message.role.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        other => {
            let message = match other {
                Some(other) => format!("`{}` is no role of a message", brief(other)),
                None => "a message has no role".to_owned(),
            };
            let message = format!("{message}; use `system`, `developer`, `user`, `assistant` or `tool`");
            return Err(Problem::invalid(format!("messages[{at}].role"), message));
        }
    };
    let calls = message.tool_calls.as_ref().map_or(&[][..], |calls| &calls.0);
    let words = match &message.content {
        Some(OneOrMany::One(text)) if calls.is_empty() => Words::Text(text),
        None if calls.is_empty() && role == Role::Assistant => Words::Text(""),
        None if calls.is_empty() => {
            let param = format!("messages[{at}].content");
            return Err(Problem::invalid(param, "a message has no `content`; give it a string or parts"));
        }
        content => {
            let mut parts = content.as_ref().map_or(Ok(Vec::new()), |content| self::parts(at, content))?;
            // A tool of another time and place: the agent reads what was called, and what came of it.
            for function in calls.iter().filter_map(|call| call.function.as_ref()) {
                let (name, arguments) = (function.name.as_deref(), function.arguments.as_deref());
                parts.push(Part::Text("called a tool:"));
                parts.extend([name, arguments].into_iter().flatten().map(Part::Text));
            }
            Words::Parts(parts)
        }
    };
    Ok(Said { role, words })
}

fn parts<'a>(at: usize, content: &'a Content<'_>) -> Result<Vec<Part<'a>>, Problem> {
    match content {
        OneOrMany::One(text) => Ok(vec![Part::Text(text)]),
        OneOrMany::Many(parts) => {
            let place = |part: usize| format!("messages[{at}].content[{part}]");
            parts.iter().enumerate().map(|(number, part)| media::part(part, || place(number))).collect()
        }
    }
}

/// Refuses what the agent cannot take in a prompt.
pub fn check_abilities(conversation: &[Said<'_>], abilities: PromptAbilities, agent: &str) -> Result<(), Problem> {
    for (at, said) in conversation.iter().enumerate() {
        for part in said.parts() {
            let Part::Media(media) = part else { continue };
            let (able, what) = match media.kind {
                MediaKind::Image => (abilities.image, "images"),
                MediaKind::Audio => (abilities.audio, "audio"),
                MediaKind::File => (abilities.embedded, "files"),
            };
            if !able {
                let message = format!("agent `{agent}` takes no {what} in a prompt; leave them out or name another");
                return Err(Problem::invalid(format!("messages[{at}].content"), message));
            }
        }
    }
    Ok(())
}

/// Both ends of a reader's message: what it met, which may be a whole image, and where.
fn shortened(message: &str) -> String {
    const END: usize = 120;
    let length = message.chars().count();
    if length <= 2 * END {
        return message.to_owned();
    }
    message.chars().take(END).chain(['…']).chain(message.chars().skip(length - END)).collect()
}

/// Enough of a client's word to recognise it.
fn brief(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_default).collect()
}
