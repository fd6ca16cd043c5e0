//! Where a format puts what it reads.

use std::fmt;
use std::path::{Path, PathBuf};

use gembridge_unified::tool_names::{self, ToolNames};
use gembridge_unified::{Block, Original, Originals, UnifiedMessage};
use serde_json::Value;

use crate::agent::Agent;
use crate::damage::Damage;

/// One thing read from a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Message(Box<UnifiedMessage>),
    Damage(Damage),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether messages carry the records that they were made from.
    pub originals: Originals,
    pub tool_names: ToolNames,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { originals: Originals::Keep, tool_names: ToolNames::Extended }
    }
}

/// What a format writes to: the caller, with the place for what is damaged.
pub(crate) struct Output<'a> {
    pub agent: Agent,
    options: ReadOptions,
    path: PathBuf,
    line: Option<u64>,
    on: &'a mut dyn FnMut(Piece),
}

impl<'a> Output<'a> {
    pub fn new(agent: Agent, options: ReadOptions, path: &Path, on: &'a mut dyn FnMut(Piece)) -> Self {
        Self { agent, options, path: path.to_owned(), line: None, on }
    }

    /// What comes next is read from this line.
    pub fn at_line(&mut self, line: u64) {
        self.line = Some(line);
    }

    /// The present line.
    pub fn line(&self) -> u64 {
        self.line.unwrap_or(0)
    }

    /// What comes next is read from this file.
    pub fn at_file(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
        self.line = None;
    }

    pub fn message(&mut self, message: UnifiedMessage) {
        (self.on)(Piece::Message(Box::new(message)));
    }

    /// The present line could not be read.
    pub fn damaged_line(&mut self, reason: &dyn fmt::Display) {
        let damage = Damage { path: self.path.clone(), line: self.line, reason: reason.to_string() };
        (self.on)(Piece::Damage(damage));
    }

    /// The file could not be read, or no further.
    pub fn damaged_file(&mut self, reason: &dyn fmt::Display) {
        let damage = Damage { path: self.path.clone(), line: None, reason: reason.to_string() };
        (self.on)(Piece::Damage(damage));
    }

    pub fn keeps_originals(&self) -> bool {
        self.options.originals == Originals::Keep
    }

    /// The line that a message is made from, where originals are kept.
    pub fn original(&self, line: &str) -> Option<Original> {
        self.keeps_originals().then(|| Original::Text(line.trim().into()))
    }

    /// Adds the line to those that a message is made from, where originals are kept.
    pub fn keep(&self, line: &str, lines: &mut Vec<Box<str>>) {
        if self.keeps_originals() {
            lines.push(line.trim().into());
        }
    }

    pub fn tool_use(&self, id: &str, name: &str, input: &Value) -> Block {
        let (name, input) = tool_names::translate(self.agent.tools(), self.options.tool_names, name, input);
        Block::ToolUse { id: id.to_owned(), name, input }
    }
}
