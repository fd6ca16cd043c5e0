//! Tools that the client runs: which there are, and which of them may or must be called.

use gembridge_core::exchange::{AtOnce, CallIds, OfferedTool, ToolChoice as Choice, Tools};

use crate::dialect::{self, brief, check_tools, client_tool, schema};
use crate::openai::wire::{AllowedTools, ChatRequest, Function, Str, Tool, ToolChoice, ToolName, Unknown, WordOr};
use crate::problem::Problem;

/// The words in which calls are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// `tool_calls`, each with an id.
    Tools,
    /// `function_call`, a single one without an id.
    Functions,
}

pub(super) fn tools(request: &ChatRequest<'_>) -> Result<(Tools, Wording), Problem> {
    let tools = request.tools.as_ref().map_or(&[][..], |list| &list.0);
    let functions = request.functions.as_ref().map_or(&[][..], |list| &list.0);
    if !tools.is_empty() && !functions.is_empty() {
        return Err(Problem::invalid("functions", "`functions` stands beside `tools`; put all of them into `tools`"));
    }
    let wording = if functions.is_empty() { Wording::Tools } else { Wording::Functions };
    let mut offered: Vec<OfferedTool> = match wording {
        Wording::Tools => tools.iter().enumerate().map(|(at, tool)| of_tool(at, tool)).collect::<Result<_, _>>()?,
        Wording::Functions => {
            let function = |(at, function)| of_function(&format!("functions[{at}]"), function);
            functions.iter().enumerate().map(function).collect::<Result<_, _>>()?
        }
    };
    check_tools(&offered, if wording == Wording::Tools { "tools" } else { "functions" })?;
    let choice = match wording {
        Wording::Tools => tool_choice(request.tool_choice.as_ref(), &mut offered)?,
        Wording::Functions => function_choice(request.function_call.as_ref(), &mut offered)?,
    };
    let one = wording == Wording::Functions || request.parallel_tool_calls == Some(false);
    let at_once = if one { AtOnce::One } else { AtOnce::Many };
    let call_ids = match wording {
        Wording::Tools => CallIds::Told,
        Wording::Functions => CallIds::Missing,
    };
    Ok((Tools { offered, choice, call_ids, at_once }, wording))
}

fn of_tool(at: usize, tool: &Tool<'_>) -> Result<OfferedTool, Problem> {
    match (tool.kind.as_deref(), &tool.function) {
        (Some("function"), Some(function)) => of_function(&format!("tools[{at}].function"), function),
        (Some("function"), None) => {
            Err(Problem::invalid(format!("tools[{at}].function"), "a tool has no `function`; give it a name"))
        }
        (other, _) => {
            let kind = brief(other.unwrap_or_default());
            let message = format!("`{kind}` is no type of tool here; the only one is `function`");
            Err(Problem::invalid(format!("tools[{at}].type"), message))
        }
    }
}

fn of_function(place: &str, function: &Function<'_>) -> Result<OfferedTool, Problem> {
    let schema = function.parameters.map(|raw| schema(raw, || format!("{place}.parameters"))).transpose()?;
    let strict = function.strict.unwrap_or(false);
    client_tool(place, function.name.as_deref(), function.description.as_deref(), schema, strict)
}

fn tool_choice(choice: Option<&WordOr<'_, ToolChoice<'_>>>, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    match choice {
        None => Ok(Choice::Auto),
        Some(WordOr::Word(word)) => match &**word {
            "required" if offered.is_empty() => {
                Err(Problem::invalid("tool_choice", "`tool_choice` is `required`, but there are no `tools`"))
            }
            "required" => Ok(Choice::Required),
            word => free_choice("tool_choice", word, offered),
        },
        Some(WordOr::Object(choice)) => match (choice.kind.as_deref(), &choice.function, &choice.allowed_tools) {
            (Some("function"), Some(function), _) => {
                keep(offered, "tool_choice.function.name", &[function])?;
                Ok(Choice::Required)
            }
            (Some("allowed_tools"), _, Some(allowed)) => allowed_tools(allowed, offered),
            (kind, _, _) => Err(unknown_choice("tool_choice", kind.unwrap_or_default())),
        },
    }
}

/// A choice in a word, of those that both fields have.
fn free_choice(field: &str, word: &str, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    match word {
        "auto" => Ok(Choice::Auto),
        "none" => {
            offered.clear();
            Ok(Choice::Never)
        }
        other => Err(unknown_choice(field, other)),
    }
}

fn allowed_tools(allowed: &AllowedTools<'_>, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    let names = allowed.tools.iter().flat_map(|list| &list.0).filter_map(|tool| tool.function.as_deref());
    keep(offered, "tool_choice.allowed_tools.tools", &names.collect::<Vec<_>>())?;
    match allowed.mode.as_deref() {
        Some("auto") => Ok(Choice::Auto),
        Some("required") if !offered.is_empty() => Ok(Choice::Required),
        other => Err(unknown_choice("tool_choice.allowed_tools.mode", other.unwrap_or_default())),
    }
}

fn function_choice(
    choice: Option<&WordOr<'_, ToolName<'_>>>,
    offered: &mut Vec<OfferedTool>,
) -> Result<Choice, Problem> {
    match choice {
        None => Ok(Choice::Auto),
        Some(WordOr::Word(word)) => free_choice("function_call", word, offered),
        Some(WordOr::Object(name)) => {
            keep(offered, "function_call.name", &[name])?;
            Ok(Choice::Required)
        }
    }
}

/// Leaves only the tools with these names.
fn keep(offered: &mut Vec<OfferedTool>, place: &str, names: &[&ToolName<'_>]) -> Result<(), Problem> {
    dialect::keep(offered, place, names.iter().map(|name| name.name.as_deref().unwrap_or_default()))
}

fn unknown_choice(place: &str, word: &str) -> Problem {
    let message = format!(
        "`{}` is no choice here; use `auto`, `none`, `required`, or name the tools that may be called",
        brief(word)
    );
    Problem::invalid(place, message)
}

/// Fields that have no effect, where tools are described.
pub(super) fn unknown<'a>(request: &'a ChatRequest<'_>) -> Vec<(&'static str, &'a Unknown)> {
    let mut unknown = Vec::new();
    for tool in request.tools.iter().flat_map(|list| &list.0) {
        unknown.push(("tools.", &tool.unknown));
        unknown.extend(tool.function.iter().map(|function| ("tools.function.", &function.unknown)));
    }
    for function in request.functions.iter().flat_map(|list| &list.0) {
        unknown.push(("functions.", &function.unknown));
    }
    if let Some(format) = &request.response_format {
        unknown.push(("response_format.", &format.unknown));
        unknown.extend(format.json_schema.iter().map(|schema| ("response_format.json_schema.", &schema.unknown)));
    }
    unknown
}

/// Choices that stand beside no tools of their kind.
pub(super) fn idle_choices(request: &ChatRequest<'_>, wording: Wording) -> Vec<&'static str> {
    let is_plain = |word: &Str<'_>| matches!(&**word, "auto" | "none");
    let tool_choice = wording == Wording::Functions && request.tool_choice.is_some();
    let function_call = match &request.function_call {
        Some(WordOr::Word(word)) => wording == Wording::Tools && !is_plain(word),
        Some(WordOr::Object(_)) => wording == Wording::Tools,
        None => false,
    };
    [("tool_choice", tool_choice), ("function_call", function_call)]
        .into_iter()
        .filter_map(|(name, idle)| idle.then_some(name))
        .collect()
}
