//! The tools of Qwen Code: those of Gemini CLI, from which it comes, but for a few of its own.

use serde_json::Value;

use super::{Arguments, Translated, gemini};

pub(super) fn translate(name: &str, input: &Value) -> Translated {
    let arguments = Arguments::of(input);
    match name {
        // Its `offset` counts lines from 0, like that of the Gemini CLI which it comes from.
        "edit" => arguments
            .take("file_path", &["file_path"])
            .take("old_string", &["old_string"])
            .take("new_string", &["new_string"])
            .take("replace_all", &["replace_all"])
            .called("Edit"),
        "todo_write" => arguments.todos("todos", "content"),
        "agent" | "task" => arguments
            .take("subagent_type", &["subagent_type", "agent"])
            .take("description", &["description"])
            .take("prompt", &["prompt"])
            .called("Task"),
        "skill" => arguments.take("skill", &["skill", "name"]).called("Skill"),
        "web_search" => arguments.take("query", &["query"]).called("WebSearch"),
        "web_fetch" => arguments.take("url", &["url"]).take("prompt", &["prompt"]).called("WebFetch"),
        "ask_user_question" => arguments.take("questions", &["questions"]).called("AskUserQuestion"),
        // Already in the form that Claude Code has for tools of MCP servers.
        name if name.starts_with("mcp__") => None,
        name => gemini::translate(name, input),
    }
}
