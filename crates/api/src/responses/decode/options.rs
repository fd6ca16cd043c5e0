//! Everything of a request that is not its conversation.

use gembridge_core::exchange::{Counts, TokenLimit, Tools};
use gembridge_core::tool_host::FormatSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::tools::{self, ToolNames};
use crate::dialect::{self, Ignored, brief};
use crate::json::{OneOrMany, Skipped, WordOr};
use crate::problem::{Kind, Problem};
use crate::responses::encode::{AnswerForm, Echo, Thoughts};
use crate::responses::wire::{CreateRequest, TextFormat};

pub(in crate::responses) struct RequestOptions {
    pub model: String,
    pub stream: bool,
    /// The response after which this one comes.
    pub previous: Option<String>,
    pub conversation: Option<String>,
    /// The response whose items the input refers to: what was said up to its end is not repeated.
    pub referenced: Option<String>,
    /// `false`: the input is kept, and nothing is said to it.
    pub generate: bool,
    pub limit: Option<TokenLimit>,
    pub tools: Tools,
    pub names: ToolNames,
    /// The form that the answer shall have. `None`: text.
    pub format: Option<FormatSpec>,
    pub echo: Echo,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

/// Where the schema stands in a request.
pub(in crate::responses) const SCHEMA_PLACE: &str = "text.format.schema";

pub(in crate::responses) fn parse(body: &[u8]) -> Result<CreateRequest<'_>, Problem> {
    dialect::parse(body, "a request for a response")
}

pub(in crate::responses) fn options(request: &CreateRequest<'_>) -> Result<RequestOptions, Problem> {
    let model = request.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| {
        Problem::invalid("model", "`model` is missing; name an agent or a model that `GET /v1/models` lists")
    })?;
    if let Some(other) = request.kind.as_deref().filter(|kind| *kind != "response.create") {
        let message = format!("`{}` is no type of message here; send `response.create`", brief(other));
        return Err(Problem::invalid("type", message));
    }
    if request.prompt.is_some_and(|prompt| prompt != Skipped::Null) {
        return Err(Problem::invalid("prompt", "there are no prompt templates here; send `instructions` and `input`"));
    }
    let store = request.store.unwrap_or(true);
    let background = request.background.unwrap_or(false);
    if background && !store {
        return Err(Problem::invalid("background", "`background` needs `store: true`, or the answer cannot be had"));
    }
    let conversation = match &request.conversation {
        Some(WordOr::Word(id)) => Some(String::from(&**id)),
        Some(WordOr::Object(named)) => named.id.as_deref().map(str::to_owned),
        None => None,
    };
    let previous = request.previous_response_id.as_deref().map(str::to_owned);
    if conversation.is_some() && previous.is_some() {
        let message = "`conversation` stands beside `previous_response_id`; send one of them";
        return Err(Problem::invalid("conversation", message));
    }
    let mut ignored = Ignored::default();
    let (tools, names) = tools::tools(request, &mut ignored)?;
    let wanted = request.text.as_ref().and_then(|text| text.format.as_ref());
    let format = format(wanted)?;
    note_ignored(request, &mut ignored);
    Ok(RequestOptions {
        model: model.to_owned(),
        stream: request.stream.unwrap_or(false),
        previous,
        conversation,
        referenced: super::conversation::referenced_response(request),
        generate: request.generate.unwrap_or(true),
        limit: limit(request.max_output_tokens)?,
        tools,
        names,
        echo: echo(request, wanted, (store, background), format.is_some())?,
        format,
        ignored: ignored.into_names(),
    })
}

fn limit(tokens: Option<u64>) -> Result<Option<TokenLimit>, Problem> {
    match tokens {
        Some(0) => Err(Problem::invalid("max_output_tokens", "`max_output_tokens` is 0; an answer needs at least 1")),
        tokens => Ok(tokens.map(|tokens| TokenLimit { tokens, counts: Counts::TextAndThoughts })),
    }
}

/// `None`: text.
fn format(format: Option<&TextFormat<'_>>) -> Result<Option<FormatSpec>, Problem> {
    let Some(format) = format else { return Ok(None) };
    match (format.kind.as_deref(), format.schema) {
        (None | Some("text"), _) => Ok(None),
        (Some("json_object"), _) => Ok(Some(FormatSpec { name: None, description: None, schema: None })),
        (Some("json_schema"), Some(schema)) => Ok(Some(FormatSpec {
            name: format.name.as_deref().map(Into::into),
            description: format.description.as_deref().map(Into::into),
            ..dialect::form(schema, SCHEMA_PLACE)?
        })),
        (Some("json_schema"), None) => {
            Err(Problem::invalid(SCHEMA_PLACE, "`text.format` of type `json_schema` needs a `schema`"))
        }
        (Some(other), _) => {
            let message =
                format!("`{}` is no form of an answer; use `text`, `json_object` or `json_schema`", brief(other));
            Err(Problem::invalid("text.format.type", message))
        }
    }
}

fn echo(
    request: &CreateRequest<'_>,
    format: Option<&TextFormat<'_>>,
    (store, background): (bool, bool),
    is_data: bool,
) -> Result<Echo, Problem> {
    let includes = |what: &str| request.include.iter().flat_map(|list| &list.0).any(|value| &**value == what);
    let reasoning = request.reasoning.as_ref();
    Ok(Echo {
        instructions: request.instructions.as_deref().map(str::to_owned),
        tools: raw(&request.tools.as_ref().map_or(&[][..], |tools| &tools.0))?,
        tool_choice: match &request.tool_choice {
            Some(choice) => raw(choice)?,
            None => raw(&"auto")?,
        },
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        format: match format.filter(|format| format.kind.is_some()) {
            Some(format) => raw(format)?,
            None => raw(&serde_json::json!({ "type": "text" }))?,
        },
        effort: reasoning.and_then(|reasoning| reasoning.effort.as_deref()).map(str::to_owned),
        summary: reasoning.and_then(|reasoning| reasoning.summary.as_deref()).map(str::to_owned),
        max_output_tokens: request.max_output_tokens,
        store,
        background,
        metadata: match request.metadata {
            Some(metadata) if metadata.kind != Skipped::Null => metadata_of(&metadata)?,
            _ => raw(&serde_json::Map::new())?,
        },
        safety_identifier: request.safety_identifier.as_deref().map(str::to_owned),
        prompt_cache_key: request.prompt_cache_key.as_deref().map(str::to_owned),
        thoughts: if includes(ENCRYPTED_REASONING) { Thoughts::Returnable } else { Thoughts::Told },
        form: if is_data { AnswerForm::Data } else { AnswerForm::Prose },
    })
}

const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Pairs of texts, with the bounds that clients know.
fn metadata_of(metadata: &crate::json::Raw<'_>) -> Result<Box<RawValue>, Problem> {
    let pairs: Result<std::collections::BTreeMap<String, String>, _> = serde_json::from_str(metadata.text);
    let is_sound = pairs.is_ok_and(|pairs| {
        let fits = |(key, value): (&String, &String)| key.chars().count() <= 64 && value.chars().count() <= 512;
        pairs.len() <= 16 && pairs.iter().all(fits)
    });
    if is_sound {
        return raw(metadata);
    }
    let message = "`metadata` must be at most 16 pairs of texts, keys of up to 64 characters and values of up to 512";
    Err(Problem::invalid("metadata", message))
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Problem> {
    to_raw_value(value).map_err(|error| Problem::new(Kind::Internal, format!("a field cannot be told back: {error}")))
}

fn note_ignored(request: &CreateRequest<'_>, ignored: &mut Ignored) {
    let is_set = |value: Option<Skipped>| value.is_some_and(|value| value != Skipped::Null);
    let known = [
        ("temperature", is_set(request.temperature)),
        ("top_p", is_set(request.top_p)),
        ("top_logprobs", is_set(request.top_logprobs)),
        ("max_tool_calls", is_set(request.max_tool_calls)),
        ("truncation", request.truncation.as_deref().is_some_and(|word| word != "disabled")),
        ("service_tier", request.service_tier.as_deref().is_some_and(|tier| !matches!(tier, "auto" | "default"))),
        ("reasoning.effort", request.reasoning.as_ref().is_some_and(|reasoning| reasoning.effort.is_some())),
        ("text.verbosity", request.text.as_ref().is_some_and(|text| is_set(text.verbosity))),
    ];
    for (name, _) in known.iter().filter(|(_, is_set)| *is_set) {
        ignored.add(*name);
    }
    for value in request.include.iter().flat_map(|list| &list.0).filter(|value| &***value != ENCRYPTED_REASONING) {
        ignored.add(format!("include.{}", brief(value)));
    }
    ignored.unknown("", &request.unknown);
    if let Some(text) = &request.text {
        ignored.unknown("text.", &text.unknown);
        if let Some(format) = &text.format {
            ignored.unknown("text.format.", &format.unknown);
        }
    }
    if let Some(reasoning) = &request.reasoning {
        ignored.unknown("reasoning.", &reasoning.unknown);
    }
    for item in super::conversation::items(request) {
        ignored.unknown("input.", &item.unknown);
        if let Some(OneOrMany::Many(parts)) = &item.content {
            for part in parts {
                ignored.unknown("input.content.", &part.unknown);
            }
        }
    }
}
