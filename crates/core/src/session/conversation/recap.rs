//! What a session's log says, for an agent that takes the session over and has not heard it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fold::{Blocks, in_words};
use super::said::{CallName, Part, Role};
use crate::log::weight_of;
use crate::model::{CallId, Event, Prompt, Seq, SessionId, Text, TurnId};
use crate::store::{Store, StoreError};

/// Where the log is, and how much of it the agent shall hear.
pub(in crate::session) struct Past {
    pub store: Arc<dyn Store>,
    pub session: SessionId,
    /// The entries up to this one.
    pub last: Seq,
    /// The turns up to this one.
    pub last_turn: TurnId,
    /// About how many bytes; the newest turns that fit are told.
    pub budget: usize,
}

/// What the agent is told before its first prompt.
pub(in crate::session) struct Recap {
    told: Blocks,
    /// Messages that did not fit.
    pub left_out: usize,
}

/// Entries read at once while going back.
const STEP: usize = 256;

impl Past {
    /// `None`: nothing was said that an agent answered.
    pub(in crate::session) async fn recap(&self) -> Result<Option<Recap>, StoreError> {
        let mut talk = Talk::default();
        let mut until = if self.last_turn == TurnId(0) { Seq::START } else { self.last };
        while until > Seq::START && talk.bytes <= self.budget {
            let after = Seq(until.0.saturating_sub(STEP as u64));
            for entry in self.store.read(self.session, after, until, STEP).await?.iter().rev() {
                if let Some(turn) = entry.turn.filter(|turn| *turn <= self.last_turn) {
                    talk.add(turn, &entry.event);
                }
            }
            until = after;
        }
        Ok(talk.told(self.budget))
    }
}

impl Recap {
    /// The prompt as an agent needs it that knows nothing of what came before.
    pub(in crate::session) fn before(&self, prompt: &Prompt) -> Prompt {
        let mut blocks = self.told.clone();
        blocks.lines(&prompt.content);
        blocks.into_prompt()
    }
}

/// The turns from the end of the log back to some entry. Prompts that waited stand in the log before the end of the
/// turn that they waited for, so entries are sorted by turn.
#[derive(Default)]
struct Talk {
    turns: BTreeMap<TurnId, Told>,
    bytes: usize,
}

#[derive(Default)]
struct Told {
    /// Absent until the beginning of the turn is reached.
    prompt: Option<Prompt>,
    /// The newest first.
    answer: Vec<Event>,
    bytes: usize,
}

impl Talk {
    fn add(&mut self, turn: TurnId, event: &Event) {
        let told = self.turns.entry(turn).or_default();
        match event {
            Event::Prompted { prompt, .. } => told.prompt = Some(prompt.clone()),
            // The same without the frame that it is a slice of.
            Event::Text(text) => told.answer.push(Event::Text(Text::plain(text.to_str()))),
            Event::Content(_) | Event::Called(_) | Event::Returned { .. } | Event::Output(_) => {
                told.answer.push(event.clone());
            }
            _ => return,
        }
        let weight = weight_of(event);
        told.bytes += weight;
        self.bytes += weight;
    }

    fn told(self, budget: usize) -> Option<Recap> {
        // What was never answered, its client has said again or not meant.
        let answered = self.turns.iter().rev().filter(|(_, told)| !told.answer.is_empty());
        let mut room = budget;
        let fits = |(turn, told): (&TurnId, &Told)| {
            room = room.checked_sub(told.bytes)?;
            told.prompt.as_ref().map(|_| *turn)
        };
        let first = answered.clone().map_while(fits).last();
        let newest = answered.map(|(turn, _)| *turn).next()?;
        let mut blocks = Blocks::default();
        if let Some(first) = first {
            self.turns.range(first..).for_each(|(_, told)| told.tell(&mut blocks));
            blocks.speaker(Role::User);
        }
        // Each turn before them was a message and its answer.
        let turns_left_out = first.map_or(newest.0, |first| first.0 - 1);
        let left_out = usize::try_from(turns_left_out).unwrap_or(usize::MAX).saturating_mul(2);
        Some(Recap { told: blocks, left_out })
    }
}

impl Told {
    fn tell(&self, blocks: &mut Blocks) {
        let Some(prompt) = self.prompt.as_ref().filter(|_| !self.answer.is_empty()) else { return };
        blocks.speaker(Role::User);
        blocks.lines(&prompt.content);
        let mut speaker = Role::User;
        for event in self.answer.iter().rev() {
            let role = if matches!(event, Event::Returned { .. }) { Role::Tool } else { Role::Assistant };
            if role != speaker {
                blocks.speaker(role);
                speaker = role;
            } else if !matches!(event, Event::Text(_)) {
                blocks.new_line();
            }
            self.tell_event(event, blocks);
        }
    }

    fn tell_event(&self, event: &Event, blocks: &mut Blocks) {
        match event {
            Event::Text(text) => blocks.text(&text.to_str()),
            Event::Content(content) => blocks.lines(std::slice::from_ref(content)),
            Event::Called(call) => {
                let arguments = String::from_utf8_lossy(&call.arguments.0);
                let call = CallName { tool: &call.tool, place: None };
                blocks.text(&in_words(&Part::Call { call, arguments: &arguments }));
            }
            Event::Returned { call, result, .. } => {
                let call = CallName { tool: self.tool(*call), place: None };
                blocks.text(&in_words(&Part::ResultOf(call)));
                blocks.new_line();
                blocks.lines(&result.content);
            }
            Event::Output(output) => blocks.text(&String::from_utf8_lossy(&output.0)),
            _ => {}
        }
    }

    /// The tool of a call.
    fn tool(&self, id: CallId) -> &str {
        let called = self.answer.iter().find_map(|event| match event {
            Event::Called(call) if call.id == id => Some(&*call.tool),
            _ => None,
        });
        called.unwrap_or("a tool")
    }
}
