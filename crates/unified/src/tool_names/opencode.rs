//! The tools of OpenCode: Claude Code's, in lower case and with arguments in camel case.

use serde_json::Value;

use super::{Arguments, Translated};

pub(super) fn translate(name: &str, input: &Value) -> Translated {
    let arguments = Arguments::of(input);
    match name {
        "read" => arguments
            .take("file_path", &["filePath"])
            .take("offset", &["offset"])
            .take("limit", &["limit"])
            .called("Read"),
        "write" => arguments.take("file_path", &["filePath"]).take("content", &["content"]).called("Write"),
        "edit" => arguments
            .take("file_path", &["filePath"])
            .take("old_string", &["oldString"])
            .take("new_string", &["newString"])
            .take("replace_all", &["replaceAll"])
            .called("Edit"),
        "bash" => arguments
            .take("command", &["command"])
            .take("description", &["description"])
            .take("timeout", &["timeout"])
            .called("Bash"),
        "glob" => arguments.take("pattern", &["pattern"]).take("path", &["path"]).called("Glob"),
        "list" => arguments.put("pattern", "*").take("path", &["path"]).called("Glob"),
        "grep" => arguments
            .take("pattern", &["pattern"])
            .take("path", &["path"])
            .take("glob", &["include"])
            .put("output_mode", "content")
            .called("Grep"),
        "webfetch" => arguments.take("url", &["url"]).take("prompt", &["prompt"]).called("WebFetch"),
        "websearch" => arguments.take("query", &["query"]).called("WebSearch"),
        "todowrite" => arguments.todos("todos", "content"),
        "task" => arguments
            .take("subagent_type", &["subagent_type"])
            .take("description", &["description"])
            .take("prompt", &["prompt"])
            .called("Task"),
        "skill" => arguments.take("skill", &["name", "skill"]).called("Skill"),
        _ => None,
    }
}
