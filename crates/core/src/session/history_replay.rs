//! What a session's log says, for an agent that takes the session over and has not heard it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::{weight_of, weight_of_message};
use crate::model::{CallId, CallName, Event, Message, Part, Prompt, ReturnedBy, Role, Seq, SessionId, Text, TurnId};
use crate::store::{Logs, StoreError};

/// Where the log is, and how much of it the agent shall hear.
pub(crate) struct Past {
    pub logs: Arc<dyn Logs>,
    pub session: SessionId,
    /// The entries up to this one.
    pub last: Seq,
    /// The turns up to this one.
    pub last_turn: TurnId,
    /// About how many bytes; the newest turns that fit are told. What the system said at the beginning always is.
    pub budget: usize,
}

/// What the agent is told before its first prompt.
pub(crate) struct HistoryReplay {
    messages: Vec<Message>,
    /// Messages that did not fit.
    pub left_out: usize,
}

/// Entries read at once while going back.
const STEP: usize = 256;

impl Past {
    /// `None`: nothing was said that an agent answered.
    pub(crate) async fn recap(&self) -> Result<Option<HistoryReplay>, StoreError> {
        let mut talk = TurnsRead::default();
        let mut until = if self.last_turn == TurnId(0) { Seq::START } else { self.last };
        while until > Seq::START && talk.bytes <= self.budget {
            let after = Seq(until.0.saturating_sub(STEP as u64));
            for entry in self.logs.read(self.session, after, until, STEP).await?.iter().rev() {
                if let Some(turn) = entry.turn.filter(|turn| *turn <= self.last_turn) {
                    talk.add(turn, &entry.event);
                }
            }
            until = after;
        }
        let opening = if until > Seq::START { self.opening(until).await? } else { talk.opening() };
        Ok(talk.told(&opening, self.budget))
    }

    /// How the session began, if that is among the entries up to this one.
    async fn opening(&self, until: Seq) -> Result<Opening, StoreError> {
        let until = until.min(Seq(STEP as u64));
        let entries = self.logs.read(self.session, Seq::START, until, STEP).await?;
        let first = entries.iter().find_map(|entry| match &entry.event {
            Event::Prompted { prompt, .. } => Some(Opening::new(entry.turn, prompt)),
            _ => None,
        });
        Ok(first.unwrap_or_default())
    }
}

impl HistoryReplay {
    pub(crate) fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// The prompt as an agent needs it that knows nothing of what came before.
    pub(super) fn before(&self, prompt: &Prompt) -> Prompt {
        prompt.after(&self.messages)
    }
}

/// What the system said in the first prompt of a session.
#[derive(Default)]
struct Opening {
    turn: Option<TurnId>,
    system: Vec<Message>,
    /// What the system's words weigh.
    bytes: usize,
}

impl Opening {
    fn new(turn: Option<TurnId>, prompt: &Prompt) -> Self {
        let system = prompt.system().to_vec();
        let bytes = system.iter().map(weight_of_message).sum();
        Self { turn, system, bytes }
    }
}

/// The turns from the end of the log back to some entry. Prompts that waited stand in the log before the end of the
/// turn that they waited for, so entries are sorted by turn.
#[derive(Default)]
struct TurnsRead {
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

impl TurnsRead {
    fn add(&mut self, turn: TurnId, event: &Event) {
        let told = self.turns.entry(turn).or_default();
        match event {
            Event::Prompted { prompt, .. } => told.prompt = Some(prompt.clone()),
            // The same without the frame that it is a slice of.
            Event::Text(text) => told.answer.push(Event::Text(Text::plain(text.to_str()))),
            // Nothing came of the call: this is our own word to an agent that did not wait for it any more.
            Event::Returned { by: ReturnedBy::Agent | ReturnedBy::Cancel, .. } => return,
            Event::Content(_) | Event::Called(_) | Event::Returned { .. } | Event::Output(_) => {
                told.answer.push(event.clone());
            }
            _ => return,
        }
        let weight = weight_of(event);
        told.bytes += weight;
        self.bytes += weight;
    }

    fn opening(&self) -> Opening {
        let first = self.turns.iter().find_map(|(turn, told)| Some(Opening::new(Some(*turn), told.prompt.as_ref()?)));
        first.unwrap_or_default()
    }

    fn told(self, opening: &Opening, budget: usize) -> Option<HistoryReplay> {
        let counts = |(turn, told): &(&TurnId, &Told)| told.counts(**turn);
        let counting = self.turns.iter().rev().filter(counts);
        // The system's words are told in any case.
        let mut room = budget.saturating_sub(opening.bytes);
        let fits = |(turn, told): (&TurnId, &Told)| {
            let paid = if Some(*turn) == opening.turn { opening.bytes } else { 0 };
            room = room.checked_sub(told.bytes.saturating_sub(paid))?;
            told.prompt.as_ref().map(|_| *turn)
        };
        let first = counting.clone().map_while(fits).last();
        let newest = counting.map(|(turn, _)| *turn).next()?;
        let mut messages = Vec::new();
        let begins_with = first.and_then(|first| self.turns.get(&first)?.prompt.as_ref()).map(Prompt::system);
        if begins_with.is_none_or(|system| system != opening.system) {
            messages.extend_from_slice(&opening.system);
        }
        if let Some(first) = first {
            self.turns.range(first..).filter(counts).for_each(|(_, told)| told.tell(&mut messages));
        }
        // Each turn before them was a message and its answer.
        let turns_left_out = first.map_or(newest.0, |first| first.0 - 1);
        let left_out = usize::try_from(turns_left_out).unwrap_or(usize::MAX).saturating_mul(2);
        Some(HistoryReplay { messages, left_out })
    }
}

impl Told {
    /// What was never answered, its client has said again or not meant; but a session may have begun with a whole
    /// conversation, which stands whatever became of its first turn.
    fn counts(&self, turn: TurnId) -> bool {
        let begins_with_history =
            || turn == TurnId(1) && self.prompt.as_ref().is_some_and(|prompt| !prompt.history.is_empty());
        !self.answer.is_empty() || begins_with_history()
    }

    fn tell(&self, messages: &mut Vec<Message>) {
        let Some(prompt) = &self.prompt else { return };
        messages.extend(prompt.messages().map(Cow::into_owned));
        let mut speech = MessageBuilder { messages, text: String::new() };
        for event in self.answer.iter().rev() {
            let role = if matches!(event, Event::Returned { .. }) { Role::Tool } else { Role::Assistant };
            speech.speaker(role);
            self.tell_event(event, &mut speech);
        }
        speech.flush();
    }

    fn tell_event(&self, event: &Event, speech: &mut MessageBuilder<'_>) {
        match event {
            Event::Text(text) => speech.text.push_str(&text.to_str()),
            Event::Content(content) => speech.part(Part::Content(content.clone())),
            Event::Called(call) => {
                let arguments = String::from_utf8_lossy(&call.arguments.0).into_owned().into();
                let call = CallName { tool: Arc::clone(&call.tool), number: None };
                speech.part(Part::Call { call, arguments });
            }
            Event::Returned { call, result, .. } => {
                speech.part(Part::ResultOf(CallName { tool: self.tool(*call), number: None }));
                result.content.iter().for_each(|content| speech.part(Part::Content(content.clone())));
            }
            Event::Output(output) => speech.part(Part::text(String::from_utf8_lossy(&output.0).into_owned())),
            _ => {}
        }
    }

    /// The tool of a call.
    fn tool(&self, id: CallId) -> Arc<str> {
        let called = self.answer.iter().find_map(|event| match event {
            Event::Called(call) if call.id == id => Some(Arc::clone(&call.tool)),
            _ => None,
        });
        called.unwrap_or_else(|| "a tool".into())
    }
}

/// An answer on its way into messages: pieces of text become one part.
struct MessageBuilder<'m> {
    messages: &'m mut Vec<Message>,
    text: String,
}

impl MessageBuilder<'_> {
    fn speaker(&mut self, role: Role) {
        if self.messages.last().is_none_or(|last| last.role != role) {
            self.flush();
            self.messages.push(Message { role, parts: Vec::new() });
        }
    }

    fn part(&mut self, part: Part) {
        self.flush();
        if let Some(last) = self.messages.last_mut() {
            last.parts.push(part);
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = Part::text(std::mem::take(&mut self.text));
            if let Some(last) = self.messages.last_mut() {
                last.parts.push(text);
            }
        }
    }
}
