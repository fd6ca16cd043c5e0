//! Tools that the client runs: which there are, and which of them may or must be called.

use gembridge_core::exchange::{AtOnce, CallIds, OfferedTool, ToolChoice as Choice, Tools};

use crate::dialect::{self, Ignored, brief};
use crate::json::Skipped;
use crate::messages::wire::{CreateRequest, Tool, ToolChoice};
use crate::problem::Problem;

/// Tools that the vendor's own server runs. Nobody runs them here, and clients offer them by themselves: they are left out.
const OF_THE_SERVER: [&str; 5] = ["web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset"];

/// Names of tools that come from tool servers are long.
const LONGEST_NAME: usize = 128;

pub(super) fn tools(request: &CreateRequest<'_>, ignored: &mut Ignored) -> Result<Tools, Problem> {
    let mut offered = Vec::new();
    for (at, tool) in request.tools.iter().flat_map(|tools| &tools.0).enumerate() {
        match of_tool(at, tool)? {
            Some(tool) => offered.push(tool),
            None => ignored.add(format!("tools.{}", brief(tool.kind.as_deref().unwrap_or_default()))),
        }
        ignored.unknown("tools.", &tool.unknown);
    }
    dialect::check_tools(&offered, "tools")?;
    let choice = choice(request.tool_choice.as_ref(), &mut offered)?;
    let one = request.tool_choice.as_ref().and_then(|choice| choice.disable_parallel_tool_use).unwrap_or(false);
    let at_once = if one { AtOnce::One } else { AtOnce::Many };
    Ok(Tools { offered, choice, call_ids: CallIds::Told, at_once })
}

/// `None`: it is none of the client's.
fn of_tool(at: usize, tool: &Tool<'_>) -> Result<Option<OfferedTool>, Problem> {
    let place = format!("tools[{at}]");
    match tool.kind.as_deref() {
        None | Some("custom") => {}
        Some(kind) if OF_THE_SERVER.iter().any(|known| kind.starts_with(known)) => return Ok(None),
        Some(other) => {
            let message = format!(
                "`{}` is a tool whose form is not known here; describe it with a name and an `input_schema`",
                brief(other)
            );
            return Err(Problem::invalid(format!("{place}.type"), message));
        }
    }
    let schema = tool.input_schema.filter(|raw| raw.kind != Skipped::Null);
    let schema = schema.map(|raw| dialect::schema(raw, || format!("{place}.input_schema"))).transpose()?;
    let strict = tool.strict.unwrap_or(false);
    let (name, description) = (tool.name.as_deref(), tool.description.as_deref());
    dialect::client_tool_within(LONGEST_NAME, &place, name, description, schema, strict).map(Some)
}

fn choice(choice: Option<&ToolChoice<'_>>, offered: &mut Vec<OfferedTool>) -> Result<Choice, Problem> {
    let Some(choice) = choice else { return Ok(Choice::Auto) };
    match (choice.kind.as_deref(), choice.name.as_deref()) {
        (Some("auto"), _) => Ok(Choice::Auto),
        (Some("none"), _) => {
            offered.clear();
            Ok(Choice::Never)
        }
        (Some("any"), _) if offered.is_empty() => {
            Err(Problem::invalid("tool_choice", "`tool_choice` is `any`, but there are no tools that could be called"))
        }
        (Some("any"), _) => Ok(Choice::Required),
        (Some("tool"), name) => {
            dialect::keep(offered, "tool_choice.name", name)?;
            if offered.is_empty() {
                return Err(Problem::invalid("tool_choice.name", "`tool_choice` names no tool"));
            }
            Ok(Choice::Required)
        }
        (other, _) => {
            let other = brief(other.unwrap_or_default());
            let message = format!("`{other}` is no choice here; use `auto`, `any`, `tool` or `none`");
            Err(Problem::invalid("tool_choice.type", message))
        }
    }
}
