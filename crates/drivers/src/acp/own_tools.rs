//! Which permissions are about tools of the server that we gave to the agent, told by data of its profile.
//!
//! A title alone proves little, since models write some of them: the kind must be one that the agent gives to tools which
//! are not its own, the whole title must be what it calls a tool of our server, and a name, where it tells one, as well.

use gembridge_core::model::{Subject, ToolCall, ToolKind};

use crate::profile::{PermissionSign, Profile};

/// Where the tool's own name stands in [`crate::profile::Mcp::permission_title`].
const TOOL: &str = "{tool}";
/// The longest name that any agent takes.
const LONGEST: usize = 128;

pub(super) struct OwnTools {
    /// What stands before a tool's own name in the name that the model sees.
    prefixes: Vec<String>,
    /// What stands before and after the tool's own name in a title.
    titles: Vec<(String, String)>,
    sign: PermissionSign,
    /// What the agent was told that our server is called.
    server: String,
}

/// How agents that nobody described are known to spell a tool of our server. A bare name is not among them: it would be
/// one that anything may have.
const USUAL_PREFIXES: [&str; 5] =
    ["mcp__{mcp_server}__", "mcp_{mcp_server}_", "{mcp_server}__", "{mcp_server}_", "{mcp_server}/"];
const USUAL_TITLE: &str = "{tool} ({mcp_server} MCP Server)";

impl OwnTools {
    pub(super) fn of(profile: &Profile) -> Self {
        let named = |text: &str| text.replace("{mcp_server}", &profile.mcp.server_name);
        let titled = |text: &str| named(text).split_once(TOOL).map(owned);
        let prefix = profile.mcp_tool_prefix();
        let (sign, server) = (profile.mcp.permission_sign, profile.mcp.server_name.clone());
        if prefix.is_empty() && profile.mcp.permission_title.is_none() {
            let prefixes: Vec<_> = USUAL_PREFIXES.iter().map(|prefix| named(prefix)).collect();
            let bare = prefixes.iter().map(|prefix| (prefix.clone(), String::new()));
            return Self { titles: bare.chain(titled(USUAL_TITLE)).collect(), prefixes, sign, server };
        }
        let title = match &profile.mcp.permission_title {
            Some(title) => titled(title),
            None => Some((prefix.clone(), String::new())),
        };
        Self { prefixes: vec![prefix], titles: title.into_iter().collect(), sign, server }
    }

    pub(super) fn sign(&self) -> PermissionSign {
        self.sign
    }

    pub(super) fn is_server(&self, name: &str) -> bool {
        self.server == name
    }

    /// Whose tool this is, in a session that has our server, by what the permission itself says.
    pub(super) fn subject(&self, tool: &ToolCall) -> Subject {
        let by_kind = matches!(tool.kind, None | Some(ToolKind::Other));
        let named = tool.name.as_deref().map(|name| self.is_named(name));
        let (by_title, by_name) = match self.sign {
            PermissionSign::Title => {
                (tool.title.as_deref().is_some_and(|title| self.is_titled(title)), named.unwrap_or(true))
            }
            PermissionSign::MetaToolName => (true, named.unwrap_or(false)),
            PermissionSign::AnnouncedCall => (false, false),
        };
        if by_kind && by_title && by_name { Subject::ClientTool } else { Subject::AgentTool }
    }

    fn is_titled(&self, title: &str) -> bool {
        let tool = |(before, after): &(String, String)| {
            title.strip_prefix(before.as_str()).and_then(|rest| rest.strip_suffix(after.as_str())).is_some_and(is_name)
        };
        self.titles.iter().any(tool)
    }

    fn is_named(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| name.strip_prefix(prefix.as_str()).is_some_and(is_name))
    }
}

fn owned((before, after): (&str, &str)) -> (String, String) {
    (before.to_owned(), after.to_owned())
}

/// One word, as tools have it for a name: nothing that could be a command or a sentence.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::ToolCallId;

    use super::*;

    fn of(agent: &str) -> OwnTools {
        let known = Profile::builtin().unwrap();
        OwnTools::of(known.iter().find(|profile| profile.name == agent).unwrap())
    }

    fn tool(name: Option<&str>, title: &str, kind: Option<ToolKind>) -> ToolCall {
        let mut call = ToolCall::update(ToolCallId::new("c1"));
        (call.name, call.title, call.kind) = (name.map(Into::into), Some(title.into()), kind);
        call
    }

    #[test]
    fn a_tool_of_our_server_is_known_in_the_spelling_of_each_agent() {
        for (agent, name, title) in [
            ("gemini", Some("mcp_host-tools_get_weather"), "get_weather (host-tools MCP Server)"),
            ("claude", None, "mcp__host-tools__get_weather"),
            ("claude", Some("mcp__host-tools__get_weather"), "mcp__host-tools__get_weather"),
            ("opencode", None, "host-tools_get_weather"),
            ("goose", None, "host-tools__get_weather"),
            ("qwen", Some("mcp__host-tools__get_weather"), "{\"city\":\"Oslo\"}"),
            // Described by nobody: the usual spellings count.
            ("demo", None, "get_weather (host-tools MCP Server)"),
            ("demo", Some("mcp__host-tools__get_weather"), "mcp__host-tools__get_weather"),
            ("demo", None, "host-tools/get_weather"),
        ] {
            assert_eq!(of(agent).subject(&tool(name, title, Some(ToolKind::Other))), Subject::ClientTool, "{agent}");
            assert_eq!(of(agent).subject(&tool(name, title, None)), Subject::ClientTool, "{agent} without a kind");
        }
    }

    #[test]
    fn what_merely_looks_like_a_tool_of_our_server_is_not_one() {
        let ours = "get_weather (host-tools MCP Server)";
        let name = Some("mcp_host-tools_get_weather");
        let other = Some(ToolKind::Other);
        for (why, call) in [
            ("a command may be called anything", tool(Some("run_shell_command"), ours, Some(ToolKind::Execute))),
            ("the kind alone gives it away", tool(name, ours, Some(ToolKind::Execute))),
            ("so does an edit", tool(name, ours, Some(ToolKind::Edit))),
            ("the name alone gives it away", tool(Some("run_shell_command"), ours, other)),
            ("a tool of the agent's own", tool(Some("save_memory"), "save_memory", other)),
            (
                "a server whose name begins like ours",
                tool(Some("mcp_host-tools-evil_x"), "x (host-tools-evil MCP Server)", other),
            ),
            ("another server", tool(Some("mcp_evil_x"), "x (evil MCP Server)", other)),
            ("a tool named like ours", tool(Some("mcp_evil_x"), "mcp_host-tools_x (evil MCP Server)", other)),
            ("a command before it", tool(None, "rm -rf / ; get_weather (host-tools MCP Server)", other)),
            ("a line before it", tool(None, "rm\nget_weather (host-tools MCP Server)", other)),
            ("more behind it", tool(None, "get_weather (host-tools MCP Server) && rm", other)),
            ("no tool", tool(None, " (host-tools MCP Server)", other)),
            ("another case", tool(None, "get_weather (Host-Tools MCP Server)", other)),
            ("letters that look alike", tool(None, "get_weather (hοst-tools MCP Server)", other)),
            ("a name without end", tool(None, &format!("{} (host-tools MCP Server)", "x".repeat(129)), other)),
        ] {
            assert_eq!(of("gemini").subject(&call), Subject::AgentTool, "{why}");
        }
        for (why, call) in [
            ("no name", tool(None, "mcp__host-tools__get_weather", other)),
            ("a name of its own", tool(Some("run_shell_command"), "mcp__host-tools__get_weather", other)),
            ("a command", tool(Some("mcp__host-tools__get_weather"), "{}", Some(ToolKind::Execute))),
        ] {
            assert_eq!(of("qwen").subject(&call), Subject::AgentTool, "{why}");
        }
        let mut nameless = tool(None, "", other);
        nameless.title = None;
        assert_eq!(of("gemini").subject(&nameless), Subject::AgentTool);
        let elsewhere = tool(None, "mcp__host-tools__x; rm", other);
        assert_eq!(of("claude").subject(&elsewhere), Subject::AgentTool);
        for (name, title) in [
            (None, "get_weather"),
            (Some("run_command"), "host-tools_get_weather"),
            (None, "host-tools_get_weather && rm"),
            (None, "host-toolsx_get_weather"),
        ] {
            assert_eq!(of("demo").subject(&tool(name, title, other)), Subject::AgentTool, "{title}");
        }
    }
}
