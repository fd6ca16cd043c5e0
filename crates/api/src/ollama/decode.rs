//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod conversation;

use gembridge_core::exchange::{AtOnce, CallIds, Catalog, Counts, OfferedTool, TokenLimit, ToolChoice, Tools};
use gembridge_core::tool_host::FormatSpec;

use super::wire::{Ask, Message, Tool};
use crate::dialect::{self, Ignored, Thoughts, brief};
use crate::json::{OneOrMany, Raw, Skipped};
use crate::problem::Problem;

pub use conversation::{Conversation, conversation, generation};

/// Everything of a request that is not its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskOptions {
    /// As the client wrote it.
    pub model: String,
    pub stream: bool,
    pub thoughts: Thoughts,
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    pub tools: Tools,
    /// The form that the answer shall have. `None`: text.
    pub format: Option<FormatSpec>,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

/// Which of the two requests it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    Chat,
    Generate,
}

pub fn parse<'b, T: serde::Deserialize<'b>>(body: &'b [u8]) -> Result<T, Problem> {
    dialect::parse(body, "a request of this API")
}

/// What nothing is said in: such a request loads a model, or unloads it. `None`: it says something.
pub fn load(request: &Ask<'_>, kind: Kinds) -> Option<&'static str> {
    let is_empty = match kind {
        Kinds::Chat => request.messages.as_ref().is_none_or(|messages| messages.0.is_empty()),
        Kinds::Generate => {
            request.prompt.as_deref().is_none_or(str::is_empty)
                && request.images.as_ref().is_none_or(|images| images.0.is_empty())
        }
    };
    is_empty.then(|| if request.keep_alive.is_some_and(is_zero) { "unload" } else { "load" })
}

/// `0`, `0.0`, `"0"`, `"0s"`.
fn is_zero(time: Raw<'_>) -> bool {
    let digits = time.text.trim_matches('"').trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    digits.parse::<f64>().is_ok_and(|time| time == 0.0)
}

pub fn options(request: &Ask<'_>, kind: Kinds) -> Result<AskOptions, Problem> {
    refuse(request)?;
    let offered = tools(request)?;
    Ok(AskOptions {
        model: model(request.model.as_deref())?.to_owned(),
        stream: request.stream.unwrap_or(true),
        thoughts: if request.think == Some(Skipped::False) { Thoughts::LeftOut } else { Thoughts::Shown },
        stop: stop(request)?,
        limit: limit(request),
        // Clients are told ids, and most forget them.
        tools: Tools { offered, choice: ToolChoice::Auto, call_ids: CallIds::Missing, at_once: AtOnce::Many },
        format: format(request.format)?,
        ignored: ignored(request, kind),
    })
}

pub fn model(name: Option<&str>) -> Result<&str, Problem> {
    let missing = || Problem::invalid("model", "`model` is missing; name one that `GET /api/tags` lists");
    name.filter(|name| !name.is_empty()).ok_or_else(missing)
}

/// A name as the catalog knows it: `x:latest` is `x`, and `agent:model` is `agent/model`.
pub fn catalog_name(name: &str, catalog: &Catalog) -> String {
    let name = name.strip_suffix(LATEST).unwrap_or(name);
    match name.split_once(':') {
        Some((agent, model)) if catalog.agents().any(|known| known.as_str() == agent) => format!("{agent}/{model}"),
        Some(_) | None => name.to_owned(),
    }
}

/// What stands behind a name that has no version.
pub const LATEST: &str = ":latest";

fn refuse(request: &Ask<'_>) -> Result<(), Problem> {
    if request.suffix.as_deref().is_some_and(|suffix| !suffix.is_empty()) {
        let message = "agents do not insert text before a `suffix`; leave it out";
        return Err(Problem::invalid("suffix", message));
    }
    let sizes = [("width", request.width), ("height", request.height)];
    match sizes.iter().find(|(_, size)| size.is_some_and(|size| size != Skipped::Null)) {
        Some((field, _)) => Err(Problem::invalid(*field, "agents make no images here; leave it out")),
        None => Ok(()),
    }
}

fn tools(request: &Ask<'_>) -> Result<Vec<OfferedTool>, Problem> {
    let tools = request.tools.iter().flat_map(|tools| &tools.0).enumerate();
    let offered = tools.map(|(at, tool)| of_tool(at, tool)).collect::<Result<Vec<_>, _>>()?;
    dialect::check_tools(&offered, "tools")?;
    Ok(offered)
}

fn of_tool(at: usize, tool: &Tool<'_>) -> Result<OfferedTool, Problem> {
    let place = format!("tools[{at}].function");
    let Some(function) = &tool.function else {
        return Err(Problem::invalid(place, "a tool has no `function`; give it a name"));
    };
    let schema = function.parameters.filter(|raw| raw.kind != Skipped::Null);
    let schema = schema.map(|raw| dialect::schema(raw, || format!("{place}.parameters"))).transpose()?;
    dialect::client_tool(&place, function.name.as_deref(), function.description.as_deref(), schema, false)
}

fn stop(request: &Ask<'_>) -> Result<Vec<String>, Problem> {
    let stop: Vec<String> = match request.options.as_ref().and_then(|options| options.stop.as_ref()) {
        None => Vec::new(),
        Some(OneOrMany::One(text)) => vec![String::from(&**text)],
        Some(OneOrMany::Many(texts)) => texts.iter().map(|text| String::from(&**text)).collect(),
    };
    dialect::check_stop(&stop, "options.stop")?;
    Ok(stop)
}

fn limit(request: &Ask<'_>) -> Option<TokenLimit> {
    let tokens = request.options.as_ref()?.num_predict?;
    let tokens = u64::try_from(tokens).ok().filter(|tokens| *tokens > 0)?;
    Some(TokenLimit { tokens, counts: Counts::TextAndThoughts })
}

/// `None`: text.
fn format(format: Option<Raw<'_>>) -> Result<Option<FormatSpec>, Problem> {
    let Some(format) = format else { return Ok(None) };
    match (format.kind, format.text) {
        (Skipped::Null, _) | (_, "\"\"") => Ok(None),
        (_, "\"json\"") => Ok(Some(FormatSpec { name: None, description: None, schema: None })),
        (Skipped::Object, _) => dialect::form(format, "format").map(Some),
        (_, other) => {
            let message = format!("`{}` is no form of an answer; use `json` or a schema", brief(other));
            Err(Problem::invalid("format", message))
        }
    }
}

fn ignored(request: &Ask<'_>, kind: Kinds) -> Vec<String> {
    let mut ignored = Ignored::default();
    let of_the_other: &[(&str, bool)] = match kind {
        Kinds::Chat => &[
            ("prompt", request.prompt.is_some()),
            ("system", request.system.is_some()),
            ("images", request.images.is_some()),
        ],
        Kinds::Generate => &[("messages", request.messages.is_some()), ("tools", request.tools.is_some())],
    };
    let known = [("keep_alive", request.keep_alive.is_some()), ("think", request.think == Some(Skipped::Text))];
    for (name, _) in of_the_other.iter().chain(&known).filter(|(_, is_there)| *is_there) {
        ignored.add(*name);
    }
    ignored.unknown("", &request.unknown);
    if let Some(options) = &request.options {
        ignored.unknown("options.", &options.unknown);
    }
    for tool in request.tools.iter().flat_map(|tools| &tools.0) {
        ignored.unknown("tools.", &tool.unknown);
        if let Some(function) = &tool.function {
            ignored.unknown("tools.function.", &function.unknown);
        }
    }
    for message in request.messages.iter().flat_map(|messages| &messages.0) {
        note_message(message, &mut ignored);
    }
    ignored.into_names()
}

fn note_message(message: &Message<'_>, ignored: &mut Ignored) {
    ignored.unknown("messages.", &message.unknown);
    for call in message.tool_calls.iter().flat_map(|calls| &calls.0) {
        ignored.unknown("messages.tool_calls.", &call.unknown);
        if let Some(function) = &call.function {
            ignored.unknown("messages.tool_calls.function.", &function.unknown);
        }
    }
}
