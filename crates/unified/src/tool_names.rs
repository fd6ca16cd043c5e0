//! The agents' own tools under the names and inputs that Claude Code has for them, so that a reader knows one set.
//!
//! A tool without a counterpart keeps its name and its input. The original call stays in a message's `_original`.

mod codex;
mod gemini;
mod opencode;
mod qwen;

use serde_json::{Map, Value, json};

/// Which names are translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// Every tool that has a counterpart.
    #[default]
    Extended,
    /// The six of Gemini CLI that every reader of its sessions translates: `read_file`, `write_file`, `replace`,
    /// `list_directory`, `run_shell_command`, `google_web_search`. Other agents keep their names.
    Basic,
}

/// Whose tools they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFamily {
    Claude,
    Codex,
    Gemini,
    OpenCode,
    Qwen,
}

/// The name and the input of a call as Claude Code would have written them.
pub fn translate(family: ToolFamily, names: ToolNames, name: &str, input: &Value) -> (String, Value) {
    let translated = match (family, names) {
        (ToolFamily::Gemini, ToolNames::Basic) if gemini::BASIC.contains(&name) => gemini::translate(name, input),
        (ToolFamily::Gemini, ToolNames::Extended) => gemini::translate(name, input),
        (ToolFamily::Qwen, ToolNames::Extended) => qwen::translate(name, input),
        (ToolFamily::OpenCode, ToolNames::Extended) => opencode::translate(name, input),
        (ToolFamily::Codex, ToolNames::Extended) => codex::translate(name, input),
        (ToolFamily::Claude, _) | (_, ToolNames::Basic) => None,
    };
    translated.unwrap_or_else(|| (name.to_owned(), input.clone()))
}

/// A call under its new name, or `None` for one that keeps its own.
type Translated = Option<(String, Value)>;

/// The arguments of a call, taken one by one under new names. What is not taken is left out.
struct Arguments<'a> {
    given: &'a Value,
    out: Map<String, Value>,
}

impl<'a> Arguments<'a> {
    fn of(given: &'a Value) -> Self {
        Self { given, out: Map::new() }
    }

    /// The first of these that the agent gave; the names of one argument over the versions of an agent.
    fn first(&self, names: &[&str]) -> Option<&'a Value> {
        names.iter().find_map(|name| self.given.get(name)).filter(|value| !value.is_null())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.given.get(name)?.as_i64()
    }

    fn is_true(&self, name: &str) -> bool {
        self.given.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn take(mut self, new: &str, names: &[&str]) -> Self {
        if let Some(value) = self.first(names) {
            self.out.insert(new.to_owned(), value.clone());
        }
        self
    }

    fn put(mut self, new: &str, value: impl Into<Value>) -> Self {
        self.out.insert(new.to_owned(), value.into());
        self
    }

    fn put_some(self, new: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.put(new, value),
            None => self,
        }
    }

    /// A list of tasks, with the text of each under `text`. The status `cancelled` of some agents stays as it is: Claude
    /// Code has no value for it, and another would say something untrue.
    fn todos(self, list: &str, text: &str) -> Translated {
        let Some(Value::Array(todos)) = self.first(&[list]) else { return self.called("TodoWrite") };
        let todo = |todo: &Value| json!({ "content": todo[text], "status": todo["status"], "activeForm": todo[text] });
        let todos: Vec<_> = todos.iter().map(todo).collect();
        self.put("todos", todos).called("TodoWrite")
    }

    // The same shape for every table: a name, and what became of the arguments.
    #[expect(clippy::unnecessary_wraps, reason = "a translation is `None` for names without a counterpart")]
    fn called(self, name: &str) -> Translated {
        Some((name.to_owned(), Value::Object(self.out)))
    }
}
