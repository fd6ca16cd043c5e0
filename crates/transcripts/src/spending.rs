//! What sessions cost in tokens, answer by answer, each counted once.
//!
//! The logs of Claude Code and Gemini CLI are searched for the lines that tell tokens, and only those are parsed; all
//! others are read as messages.

mod claude;
mod gemini;
mod matching_lines;

use std::collections::HashSet;
use std::sync::Arc;

use gembridge_unified::tool_names::ToolNames;
use gembridge_unified::{Originals, UnifiedUsage};
use serde::Serialize;

use crate::agent::Agent;
use crate::damage::Damage;
use crate::output::{Piece, ReadOptions};
use crate::session::{Located, read};

/// Tokens of which none is in two fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Read by the model, what came out of a cache left out.
    pub input: u64,
    pub output: u64,
    /// Thoughts, where the agent does not count them as output.
    pub thoughts: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// What is in the agent's total and in none of the others.
    pub other: u64,
}

impl Tokens {
    pub fn total(&self) -> u64 {
        let parts = [self.output, self.thoughts, self.cache_read, self.cache_write, self.other];
        parts.iter().fold(self.input, |sum, part| sum.saturating_add(*part))
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.thoughts, other.thoughts),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.other, other.other),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// The fields of a usage, taken apart by how its agent counts.
    fn of(agent: Agent, usage: &UnifiedUsage) -> Self {
        let cached_is_input = match agent {
            Agent::Gemini | Agent::Codex | Agent::Qwen => true,
            Agent::Claude | Agent::OpenCode => false,
            Agent::Gembridge => return Self::by_total(usage),
        };
        let apart = Self::apart(usage);
        let with_thoughts = apart.counted(Way { cached_is_input, thoughts_are_output: true });
        let thoughts_are_output = agent == Agent::Codex || usage.total_tokens == Some(with_thoughts.total());
        apart.counted(Way { cached_is_input, thoughts_are_output }).filled_up(usage)
    }

    /// Of an agent that may count in any way the total tells which way it was.
    fn by_total(usage: &UnifiedUsage) -> Self {
        let apart = Self::apart(usage);
        let Some(total) = usage.total_tokens else { return apart };
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        let readings = ways
            .map(|(cached_is_input, thoughts_are_output)| apart.counted(Way { cached_is_input, thoughts_are_output }));
        let told = readings.into_iter().find(|reading| reading.total() == total);
        told.unwrap_or(readings[1]).filled_up(usage)
    }

    /// As the fields stand, each for itself.
    fn apart(usage: &UnifiedUsage) -> Self {
        Self {
            input: usage.input_tokens.unwrap_or(0),
            output: usage.output_tokens.unwrap_or(0),
            thoughts: usage.thought_tokens.unwrap_or(0),
            cache_read: usage.cache_read_tokens.unwrap_or(0),
            cache_write: usage.cache_creation_tokens.unwrap_or(0),
            other: 0,
        }
    }

    /// The same where some fields were counted as parts of others.
    fn counted(self, way: Way) -> Self {
        Self {
            input: if way.cached_is_input { self.input.saturating_sub(self.cache_read) } else { self.input },
            thoughts: if way.thoughts_are_output { 0 } else { self.thoughts },
            ..self
        }
    }

    fn filled_up(self, usage: &UnifiedUsage) -> Self {
        let other = usage.total_tokens.unwrap_or(0).saturating_sub(self.total());
        Self { other, ..self }
    }
}

/// How an agent counts.
#[derive(Clone, Copy)]
struct Way {
    cached_is_input: bool,
    thoughts_are_output: bool,
}

/// The tokens of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// In milliseconds since 1970.
    pub at: u64,
    pub model: Option<Arc<str>>,
    pub tokens: Tokens,
    /// What tells the answer from all others, where copies of it may stand in several sessions.
    pub(crate) key: Option<u64>,
}

/// The answers that were counted, over all sessions: some agents copy the beginning of a session that they go on with.
#[derive(Debug, Default)]
pub struct Counted {
    keys: HashSet<u64>,
}

impl Counted {
    /// Whether an answer is met for the first time. It counts as met from now on.
    pub fn is_new(&mut self, spent: &Spent) -> bool {
        spent.key.is_none_or(|key| self.keys.insert(key))
    }
}

/// Hands the tokens of every answer in a session to `on`. Gives what could not be read.
pub fn spent(session: &Located, on: &mut dyn FnMut(Spent)) -> Vec<Damage> {
    match session.agent {
        Agent::Claude => claude::spent(session, on),
        Agent::Gemini => gemini::spent(session, on),
        Agent::Codex | Agent::OpenCode | Agent::Qwen | Agent::Gembridge => by_messages(session, on),
    }
}

fn by_messages(session: &Located, on: &mut dyn FnMut(Spent)) -> Vec<Damage> {
    let mut damages = Vec::new();
    let mut told = Tokens::default();
    let options = ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Basic };
    let facts = read(session, options, &mut |piece| match piece {
        Piece::Damage(damage) => damages.push(damage),
        Piece::Message(message) => {
            let Some(usage) = &message.usage else { return };
            let tokens = Tokens::of(session.agent, usage);
            told.add(&tokens);
            on(Spent { at: message.timestamp, model: message.model.as_deref().map(Into::into), tokens, key: None });
        }
    });
    // Tokens that came with no answer, such as those of a turn that was cut.
    let rest = less(&Tokens::of(session.agent, &facts.usage), &told);
    if rest != Tokens::default() {
        let at = facts.updated.unwrap_or(session.modified);
        on(Spent { at, model: facts.model.as_deref().map(Into::into), tokens: rest, key: None });
    }
    damages
}

fn less(all: &Tokens, told: &Tokens) -> Tokens {
    Tokens {
        input: all.input.saturating_sub(told.input),
        output: all.output.saturating_sub(told.output),
        thoughts: all.thoughts.saturating_sub(told.thoughts),
        cache_read: all.cache_read.saturating_sub(told.cache_read),
        cache_write: all.cache_write.saturating_sub(told.cache_write),
        other: all.other.saturating_sub(told.other),
    }
}

/// Whether a line that could not be read as one with tokens is damaged: another kind of line may have fields of the same
/// names in other forms.
fn of_another_form(line: &[u8], error: &serde_json::Error) -> Result<(), String> {
    if error.is_data() && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok() {
        return Ok(());
    }
    Err(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage([input, output, thoughts, cached, total]: [u64; 5]) -> UnifiedUsage {
        UnifiedUsage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            thought_tokens: Some(thoughts),
            cache_read_tokens: Some(cached),
            cache_creation_tokens: None,
            total_tokens: (total > 0).then_some(total),
        }
    }

    #[test]
    fn no_token_is_in_two_fields_however_the_agent_counts() {
        for (agent, counted, expected) in [
            // Gemini CLI: cached tokens inside the input, thoughts beside the output, tokens of tools in the total only.
            (Agent::Gemini, [100, 10, 5, 40, 115], [60, 10, 5, 40, 0]),
            (Agent::Gemini, [100, 10, 5, 40, 118], [60, 10, 5, 40, 3]),
            // Codex: reasoning inside the output.
            (Agent::Codex, [100, 10, 5, 40, 110], [60, 10, 0, 40, 0]),
            // Qwen Code counts as the service that it calls does.
            (Agent::Qwen, [100, 10, 5, 40, 110], [60, 10, 0, 40, 0]),
            (Agent::Qwen, [100, 10, 5, 40, 115], [60, 10, 5, 40, 0]),
            (Agent::Claude, [100, 10, 0, 40, 0], [100, 10, 0, 40, 0]),
            (Agent::Gembridge, [100, 10, 5, 40, 155], [100, 10, 5, 40, 0]),
            (Agent::Gembridge, [100, 10, 5, 40, 115], [60, 10, 5, 40, 0]),
            (Agent::Gembridge, [100, 10, 5, 40, 110], [60, 10, 0, 40, 0]),
        ] {
            let found = Tokens::of(agent, &usage(counted));
            let fields = [found.input, found.output, found.thoughts, found.cache_read, found.other];
            assert_eq!(fields, expected, "{agent:?} {counted:?}");
        }
    }
}
