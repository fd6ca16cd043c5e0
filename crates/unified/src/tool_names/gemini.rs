//! The tools of Gemini CLI, in the arguments of all its versions.

use serde_json::{Map, Value};

use super::{Arguments, Translated};

/// What is translated where only the basic names are asked for.
pub(super) const BASIC: [&str; 6] =
    ["read_file", "write_file", "replace", "list_directory", "run_shell_command", "google_web_search"];

pub(super) fn translate(name: &str, input: &Value) -> Translated {
    let arguments = Arguments::of(input);
    match name {
        "read_file" => read_file(arguments),
        "read_many_files" => {
            one_literal_path(&arguments).and_then(|path| arguments.put("file_path", path).called("Read"))
        }
        "write_file" => arguments.take("file_path", &["file_path"]).take("content", &["content"]).called("Write"),
        "replace" => replace(arguments),
        "list_directory" => arguments.put("pattern", "*").take("path", &["dir_path", "path"]).called("Glob"),
        "glob" => arguments.take("pattern", &["pattern"]).take("path", &["dir_path", "path"]).called("Glob"),
        "grep_search" | "search_file_content" => grep(arguments),
        "run_shell_command" => arguments
            .take("command", &["command"])
            .take("description", &["description"])
            .take("run_in_background", &["is_background"])
            .called("Bash"),
        "google_web_search" => arguments.take("query", &["query"]).called("WebSearch"),
        "web_fetch" => web_fetch(arguments),
        "write_todos" => arguments.todos("todos", "description"),
        "ask_user" => ask_user(arguments),
        "enter_plan_mode" => arguments.take("reason", &["reason"]).called("EnterPlanMode"),
        "exit_plan_mode" => arguments.take("plan_filename", &["plan_filename", "plan_path"]).called("ExitPlanMode"),
        "activate_skill" => arguments.take("skill", &["name"]).called("Skill"),
        "invoke_agent" | "delegate_to_agent" | "codebase_investigator" | "cli_help" | "generalist" => {
            subagent(name, arguments)
        }
        _ => mcp(name, input),
    }
}

/// Lines are counted from 1 by Claude Code and by `start_line`, from 0 by the `offset` of older versions.
fn read_file(arguments: Arguments<'_>) -> Translated {
    let start = arguments.number("start_line");
    let offset = start.or_else(|| arguments.number("offset").map(|offset| offset.saturating_add(1)));
    let limit = match (arguments.number("end_line"), arguments.number("limit")) {
        (Some(end), _) => Some(end.saturating_sub(start.unwrap_or(1)).saturating_add(1).max(0)),
        (None, limit) => limit,
    };
    arguments
        .take("file_path", &["file_path", "absolute_path", "path"])
        .put_some("offset", offset)
        .put_some("limit", limit)
        .called("Read")
}

/// Several files, or a pattern, have no counterpart.
fn one_literal_path(arguments: &Arguments<'_>) -> Option<String> {
    let paths = match arguments.first(&["include", "paths"])? {
        Value::String(path) => vec![path.as_str()],
        Value::Array(paths) => paths.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    match paths[..] {
        [path] if !path.contains(['*', '?', '[', '{']) => Some(path.to_owned()),
        _ => None,
    }
}

/// `instruction` is a note to Gemini CLI itself, and Claude Code has no argument for it.
fn replace(arguments: Arguments<'_>) -> Translated {
    let expected = arguments.number("expected_replacements").unwrap_or(1);
    let all = arguments.is_true("allow_multiple") || expected > 1;
    arguments
        .take("file_path", &["file_path"])
        .take("old_string", &["old_string"])
        .take("new_string", &["new_string"])
        .put_some("replace_all", all.then_some(true))
        .called("Edit")
}

fn grep(arguments: Arguments<'_>) -> Translated {
    let mode = if arguments.is_true("names_only") { "files_with_matches" } else { "content" };
    arguments
        .take("pattern", &["pattern"])
        .take("path", &["dir_path", "path"])
        .take("glob", &["include_pattern", "include"])
        .put("output_mode", mode)
        .take("-A", &["after"])
        .take("-B", &["before"])
        .take("-C", &["context"])
        .take("head_limit", &["total_max_matches"])
        .called("Grep")
}

fn web_fetch(arguments: Arguments<'_>) -> Translated {
    let prompt = arguments.first(&["prompt"]).and_then(Value::as_str).unwrap_or_default();
    let mut words = prompt.split(|character: char| character.is_whitespace() || matches!(character, '"' | '<' | '>'));
    let url = words.find(|word| word.starts_with("http://") || word.starts_with("https://"));
    let url = url.map(|url| url.trim_end_matches(['.', ',', ';', ')']).to_owned());
    arguments.put_some("url", url).take("prompt", &["prompt"]).called("WebFetch")
}

fn ask_user(arguments: Arguments<'_>) -> Translated {
    let Some(Value::Array(questions)) = arguments.first(&["questions"]) else {
        return arguments.called("AskUserQuestion");
    };
    let question = |question: &Value| match question {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "type" | "placeholder"));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
        }
        other => other.clone(),
    };
    let questions: Vec<_> = questions.iter().map(question).collect();
    arguments.put("questions", questions).called("AskUserQuestion")
}

/// From 0.30 to 0.38 each subagent was a tool of its own, named after the agent.
fn subagent(name: &str, arguments: Arguments<'_>) -> Translated {
    let named = arguments.first(&["agent_name"]).and_then(Value::as_str);
    let agent = named.unwrap_or(name).to_owned();
    arguments
        .put("subagent_type", agent.clone())
        .put("description", agent)
        .take("prompt", &["prompt", "objective", "question", "request", "query"])
        .called("Task")
}

/// `mcp_<server>_<tool>`; a server's name holds no `_`.
fn mcp(name: &str, input: &Value) -> Translated {
    let (server, tool) = name.strip_prefix("mcp_")?.split_once('_')?;
    if server.is_empty() || tool.is_empty() {
        return None;
    }
    Some((format!("mcp__{server}__{tool}"), input.clone()))
}
