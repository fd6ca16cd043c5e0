//! The prompt of a chat in a terminal: history, cursor keys, pasted text of many lines, completion of commands.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Editor, Helper};

use super::input::Typed;
use crate::render::style::Style;

/// Prompts that are remembered from one chat to the next.
const REMEMBERED: usize = 1_000;

pub struct LineEditor {
    editor: Editor<Prompting, FileHistory>,
    history: PathBuf,
}

/// The names behind `/` that can be completed. Cheap to clone: all clones are one list.
#[derive(Clone, Default)]
pub struct Commands(Arc<Mutex<Vec<String>>>);

impl Commands {
    pub fn replace(&self, names: impl IntoIterator<Item = String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    fn beginning_with(&self, typed: &str) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter(|name| name.starts_with(typed)).cloned().collect()
    }
}

impl LineEditor {
    /// `history` is the file that earlier prompts are read from and written to, for its owner only.
    pub fn new(history: PathBuf, commands: Commands, style: Style) -> Result<Self, ReadlineError> {
        let config = Config::builder().max_history_size(REMEMBERED)?.history_ignore_space(true).build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Prompting { commands, style }));
        // The first chat has none to load.
        if let Err(error) = editor.load_history(&history) {
            tracing::debug!(%error, "no earlier prompts");
        }
        Ok(Self { editor, history })
    }

    pub fn line(&mut self, prompt: &str) -> Typed {
        match self.editor.readline(prompt) {
            Ok(line) => {
                self.remember(&line);
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(ReadlineError::Eof) => Typed::End,
            Err(error) => {
                tracing::warn!(%error, "the terminal cannot be read");
                Typed::End
            }
        }
    }

    fn remember(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let added = self.editor.add_history_entry(line).and_then(|_| self.editor.append_history(&self.history));
        if let Err(error) = added {
            tracing::debug!(%error, "a prompt is not remembered for the next chat");
        }
    }
}

/// What the editor asks while a line is typed.
struct Prompting {
    commands: Commands,
    style: Style,
}

impl Helper for Prompting {}

impl Completer for Prompting {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
            return Ok((at, Vec::new()));
        }
        let pair = |name: String| Pair { display: name.clone(), replacement: format!("{name} ") };
        Ok((0, self.commands.beginning_with(typed).into_iter().map(pair).collect()))
    }
}

impl Highlighter for Prompting {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.style.bold(prompt))
    }
}

impl Hinter for Prompting {
    type Hint = String;
}

impl Validator for Prompting {}
