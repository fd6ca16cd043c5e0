//! Tools that the client runs. An agent knows functions in one flat list: custom tools and namespaces are told as that,
//! and calls are told back in the client's words.

use bytes::Bytes;
use gembridge_core::exchange::{AtOnce, CallIds, OfferedTool, ToolChoice as Choice, Tools};
use gembridge_core::model::Opaque;

use crate::dialect::{Ignored, brief, check_tools, client_tool, keep, schema};
use crate::json::WordOr;
use crate::problem::Problem;
use crate::responses::wire::{AllowedTool, CreateRequest, Tool, ToolChoice};

/// A tool in the client's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::responses) struct CalledTool {
    pub name: String,
    pub namespace: Option<String>,
    pub kind: ToolKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::responses) enum ToolKind {
    Function,
    /// Takes a text, and no arguments.
    Custom,
}

/// The client's words for tools that the agent knows under another name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::responses) struct ToolNames(Vec<(String, CalledTool)>);

impl ToolNames {
    pub(in crate::responses) fn called(&self, tool: &str) -> CalledTool {
        let known = self.0.iter().find(|(name, _)| name == tool).map(|(_, called)| called.clone());
        known.unwrap_or_else(|| CalledTool { name: tool.to_owned(), namespace: None, kind: ToolKind::Function })
    }
}

/// A tool's name as the agent knows it.
pub(super) fn agent_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}{SEPARATOR}{name}"),
        None => name.to_owned(),
    }
}

const SEPARATOR: &str = "__";

/// The one argument of a custom tool.
const CUSTOM_SCHEMA: &[u8] =
    br#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

pub(super) fn tools(request: &CreateRequest<'_>, ignored: &mut Ignored) -> Result<(Tools, ToolNames), Problem> {
    let mut list = ToolList { offered: Vec::new(), names: ToolNames::default(), ignored };
    list.add("tools", request.tools.as_ref().map_or(&[][..], |tools| &tools.0), None)?;
    check_tools(&list.offered, "tools")?;
    for (at, item) in super::conversation::items(request).iter().enumerate() {
        if let Some(tools) = &item.tools {
            list.add(&format!("input[{at}].tools"), &tools.0, None)?;
        }
    }
    let ToolList { mut offered, names, .. } = list;
    let choice = tool_choice(request.tool_choice.as_ref(), &mut offered)?;
    let at_once = if request.parallel_tool_calls == Some(false) { AtOnce::One } else { AtOnce::Many };
    Ok((Tools { offered, choice, call_ids: CallIds::Told, at_once }, names))
}

struct ToolList<'i> {
    offered: Vec<OfferedTool>,
    names: ToolNames,
    ignored: &'i mut Ignored,
}

impl ToolList<'_> {
    fn add(&mut self, place: &str, tools: &[Tool<'_>], namespace: Option<&str>) -> Result<(), Problem> {
        for (at, tool) in tools.iter().enumerate() {
            let place = format!("{place}[{at}]");
            self.ignored.unknown("tools.", &tool.unknown);
            match (tool.kind.as_deref(), namespace) {
                (Some("function"), _) => {
                    let raw = tool.parameters.map(|raw| schema(raw, || format!("{place}.parameters"))).transpose()?;
                    self.offer(&place, tool, namespace, (tool.description.as_deref(), raw), ToolKind::Function)?;
                }
                (Some("custom"), _) => {
                    let description = described(tool);
                    let schema = Some(Opaque(Bytes::from_static(CUSTOM_SCHEMA)));
                    self.offer(&place, tool, namespace, (Some(&description), schema), ToolKind::Custom)?;
                }
                (Some("namespace"), None) => {
                    let tools = tool.tools.as_ref().map_or(&[][..], |tools| &tools.0);
                    self.add(&format!("{place}.tools"), tools, tool.name.as_deref())?;
                }
                // What others run for their clients, nobody runs here. Programs offer such tools whatever they are told.
                (Some(kind), _) => self.ignored.add(format!("tools.{}", brief(kind))),
                (None, _) => {
                    let message = "a tool has no `type`; use `function`, `custom` or `namespace`";
                    return Err(Problem::invalid(format!("{place}.type"), message));
                }
            }
        }
        Ok(())
    }

    fn offer(
        &mut self,
        place: &str,
        tool: &Tool<'_>,
        namespace: Option<&str>,
        (description, schema): (Option<&str>, Option<Opaque>),
        kind: ToolKind,
    ) -> Result<(), Problem> {
        let name = tool.name.as_deref().unwrap_or_default();
        let known = agent_name(namespace, name);
        let strict = kind == ToolKind::Custom || tool.strict.unwrap_or(false);
        let offered = client_tool(place, Some(&known), description, schema, strict)?;
        let is_known = |names: &ToolNames| names.0.iter().any(|(name, _)| *name == known);
        // An item may bring the tools of the request once more.
        if place.starts_with("input") && (is_known(&self.names) || self.offered.contains(&offered)) {
            return Ok(());
        }
        if namespace.is_some() || kind == ToolKind::Custom {
            let namespace = namespace.map(str::to_owned);
            self.names.0.push((known, CalledTool { name: name.to_owned(), namespace, kind }));
        }
        self.offered.push(offered);
        Ok(())
    }
}

/// What a custom tool is for, and the form of its input, which no schema tells.
fn described(tool: &Tool<'_>) -> String {
    let what = tool.description.as_deref().unwrap_or_default();
    match tool.format {
        Some(format) => format!("{what}\n\nThe form of `input`: {}", format.text),
        None => what.to_owned(),
    }
}

fn tool_choice(choice: Option<&WordOr<'_, ToolChoice<'_>>>, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    match choice {
        None => Ok(Choice::Auto),
        Some(WordOr::Word(word)) => match &**word {
            "auto" => Ok(Choice::Auto),
            "none" => {
                offered.clear();
                Ok(Choice::Never)
            }
            "required" if offered.is_empty() => {
                Err(Problem::invalid("tool_choice", "`tool_choice` is `required`, but there are no tools to call"))
            }
            "required" => Ok(Choice::Required),
            other => Err(unknown_choice("tool_choice", other)),
        },
        Some(WordOr::Object(choice)) => match choice.kind.as_deref() {
            Some("function" | "custom") => {
                let name = agent_name(choice.namespace.as_deref(), choice.name.as_deref().unwrap_or_default());
                keep(offered, "tool_choice.name", [name.as_str()])?;
                Ok(Choice::Required)
            }
            Some("allowed_tools") => allowed_tools(choice, offered),
            other => Err(unknown_choice("tool_choice.type", other.unwrap_or_default())),
        },
    }
}

fn allowed_tools(choice: &ToolChoice<'_>, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    let is_run_here = |tool: &&AllowedTool<'_>| matches!(tool.kind.as_deref(), Some("function" | "custom"));
    let allowed = choice.tools.iter().flat_map(|list| &list.0).filter(is_run_here);
    let names: Vec<String> =
        allowed.map(|tool| agent_name(tool.namespace.as_deref(), tool.name.as_deref().unwrap_or_default())).collect();
    keep(offered, "tool_choice.tools", names.iter().map(String::as_str))?;
    match choice.mode.as_deref() {
        None | Some("auto") => Ok(Choice::Auto),
        Some("required") if !offered.is_empty() => Ok(Choice::Required),
        Some(other) => Err(unknown_choice("tool_choice.mode", other)),
    }
}

fn unknown_choice(place: &str, word: &str) -> Problem {
    let message = format!(
        "`{}` is no choice here; use `auto`, `none`, `required`, or name tools of this request that the client runs",
        brief(word)
    );
    Problem::invalid(place, message)
}
