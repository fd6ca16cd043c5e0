//! The tools of Codex, in the arguments of its versions.

use serde_json::Value;

use super::{Arguments, Translated};

pub(super) fn translate(name: &str, input: &Value) -> Translated {
    let arguments = Arguments::of(input);
    match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" => {
            let command = arguments.first(&["cmd", "command"]).map(command_line);
            let timeout = arguments.first(&["timeout_ms", "timeout"]).cloned();
            arguments
                .put_some("command", command)
                .take("description", &["justification"])
                .put_some("timeout", timeout)
                .called("Bash")
        }
        "update_plan" => arguments.todos("plan", "step"),
        "web_search" => arguments.take("query", &["query"]).called("WebSearch"),
        _ => None,
    }
}

/// Words as a program gets them, joined as a shell would read them. `bash -lc TEXT` is the text alone.
fn command_line(command: &Value) -> String {
    let words = match command {
        Value::String(line) => return line.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
        other => return other.to_string(),
    };
    match words[..] {
        ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh" | "/bin/zsh", "-lc" | "-c", line] => line.to_owned(),
        _ => words.into_iter().map(quoted).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@%+".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
