//! From the entries of a session's log to a task: how it stands, and what each entry means to those who follow it.

mod content;
mod pending;
mod tools;

use std::sync::Arc;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, Outcome, Prompt, Seq, Stop, Text, Timestamp, TurnId, Usage};
use serde_json::{Map, Value, json};

pub use self::pending::Pending;
use self::tools::Tools;
use super::model::{
    Answer, Artifact, Author, Continuation, Kind, Message, Part, State, Status, Task, TaskName, Update,
};

/// Messages and bytes of a task that are kept in memory and shown; the oldest leave first.
const MOST_MESSAGES: usize = 200;
const MOST_BYTES: usize = 4 << 20;
const MOST_ARTIFACTS: usize = 128;

/// A task, grown entry by entry.
pub struct Fold {
    name: Arc<TaskName>,
    auto_approved: Arc<[String]>,
    turns: Vec<Turn>,
    history: Vec<Message>,
    bytes: usize,
    is_cut: bool,
    artifacts: Vec<Artifact>,
    tools: Tools,
    pending: Pending,
    usage: Usage,
    model: Option<Arc<str>>,
    closed: Option<Timestamp>,
    at: Timestamp,
    shown: Option<State>,
}

struct Turn {
    id: TurnId,
    phase: Phase,
    answer: String,
}

enum Phase {
    Waiting,
    Running,
    Ended(Outcome),
}

impl Fold {
    /// `auto_approved` are the tools of the agent that run without a question to the client.
    pub fn new(name: Arc<TaskName>, auto_approved: Arc<[String]>) -> Self {
        Self {
            name,
            auto_approved,
            turns: Vec::new(),
            history: Vec::new(),
            bytes: 0,
            is_cut: false,
            artifacts: Vec::new(),
            tools: Tools::default(),
            pending: Pending::default(),
            usage: Usage::default(),
            model: None,
            closed: None,
            at: Timestamp::default(),
            shown: None,
        }
    }

    /// The client gave the task up while nothing ran.
    pub fn close(&mut self, at: Timestamp) {
        self.closed = Some(at);
    }

    pub fn name(&self) -> &Arc<TaskName> {
        &self.name
    }

    /// Whether any entry of the task was seen.
    pub fn is_known(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The turns that have not ended.
    pub fn live_turns(&self) -> impl Iterator<Item = TurnId> {
        self.turns.iter().filter(|turn| !matches!(turn.phase, Phase::Ended(_))).map(|turn| turn.id)
    }

    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    pub fn at(&self) -> Timestamp {
        self.closed.unwrap_or(self.at)
    }

    pub fn state(&self) -> State {
        if self.pending.holds_the_task() {
            return State::InputRequired;
        }
        if self.turns.iter().any(|turn| matches!(turn.phase, Phase::Running)) {
            return State::Working;
        }
        if self.turns.iter().any(|turn| matches!(turn.phase, Phase::Waiting)) {
            return State::Submitted;
        }
        match self.turns.last().map(|turn| &turn.phase) {
            Some(Phase::Ended(outcome)) if self.closed.is_none() => ended(outcome),
            Some(_) if self.closed.is_some() => State::Canceled,
            _ => State::Submitted,
        }
    }

    /// Takes an entry in. What it means to those who follow is added to `updates`.
    pub fn take(&mut self, entry: &LogEntry, updates: &mut Vec<Update>) {
        if let (Event::Prompted { prompt, .. }, Some(turn)) = (&entry.event, entry.turn) {
            self.prompted(turn, prompt, entry.at);
            return;
        }
        if let Event::Model(model) = &entry.event {
            self.model = Some(Arc::clone(model));
        }
        let Some(at) = self.turns.iter().position(|turn| Some(turn.id) == entry.turn) else { return };
        self.at = entry.at;
        match &entry.event {
            Event::Started => {
                self.turns[at].phase = Phase::Running;
                updates.extend(self.change());
            }
            Event::Text(text) => {
                self.answer(at, text);
                if !continues_text(updates, text) {
                    updates.push(self.said(entry.seq, Kind::Text, Part::Text(text.clone())));
                }
            }
            Event::Thought(text) => updates.push(self.said(entry.seq, Kind::Thought, content::thought(text))),
            Event::Content(block) => {
                if let Some((artifact, continuation)) = content::artifact(block, &self.artifacts, self.turns[at].id) {
                    self.add_artifact(artifact, continuation, updates);
                }
            }
            Event::ToolCall(call) => {
                let (data, output) = self.tools.update(call);
                updates.push(self.said(entry.seq, Kind::ToolUpdate, Part::Data(data)));
                if let Some(output) = output {
                    self.add_artifact(output, Continuation::First, updates);
                }
            }
            Event::Asked(ask) => {
                let is_auto = self.pending.asked(ask, &self.auto_approved);
                if let Some(data) = self.tools.asked(ask) {
                    let kind = if is_auto { Kind::ToolUpdate } else { Kind::ToolConfirmation };
                    updates.push(self.said(entry.seq, kind, Part::Data(data)));
                }
            }
            Event::Answered { ask, .. } => self.pending.answered(*ask),
            Event::Called(call) => {
                let data = tools::client_call(call);
                self.pending.called(call);
                updates.push(self.said(entry.seq, Kind::ToolConfirmation, Part::Data(data)));
            }
            Event::Parked(_) => self.pending.parked(),
            Event::Returned { call, .. } => self.pending.returned(*call),
            Event::Usage(usage) => self.usage.merge(usage),
            Event::Ended(outcome) => self.end(at, outcome),
            Event::Output(_)
            | Event::Prompted { .. }
            | Event::Plan(_)
            | Event::Context { .. }
            | Event::Mode(_)
            | Event::Model(_)
            | Event::Commands(_)
            | Event::Options(_)
            | Event::Title(_)
            | Event::Other { .. }
            | Event::AgentReplaced { .. }
            | Event::HistoryReplayed { .. }
            | Event::Admitted
            | Event::AnswerDeleted { .. } => {}
        }
    }

    /// The change of state since this was last asked, if there is one. Asked after each batch of entries, so that what
    /// came together is told together.
    pub fn change(&mut self) -> Option<Update> {
        let state = self.state();
        let before = self.shown.replace(state);
        if before == Some(state) {
            return None;
        }
        let message = if state == State::InputRequired && !self.pending.holds_the_task() {
            // The text of the answer has been told piece by piece.
            None
        } else {
            self.status_message(state)
        };
        let mut metadata = Vec::new();
        if state.is_at_rest() && !self.usage.is_empty() {
            metadata.push(("usage", usage(&self.usage)));
        }
        if let Some(model) = &self.model {
            metadata.push(("model", json!(model)));
        }
        if let Some(Phase::Ended(Outcome::Interrupted(failure))) = self.turns.last().map(|turn| &turn.phase)
            && state == State::Failed
        {
            metadata.push(("error", json!(failure.message)));
        }
        let status = Status { state, message, at: self.at() };
        Some(Update::Status { status, kind: Kind::StateChange, metadata, is_last: state.is_at_rest() })
    }

    /// The task as it stands.
    pub fn task(&mut self) -> Task {
        let state = self.state();
        self.shown = Some(state);
        let mut history = self.history.clone();
        let answers =
            self.turns.iter().filter(|turn| !matches!(turn.phase, Phase::Ended(_)) && !turn.answer.is_empty());
        history.extend(answers.map(|turn| answer(&self.name, turn)));
        let mut metadata = Map::new();
        if self.is_cut {
            metadata.insert("historyCut".to_owned(), true.into());
        }
        if !self.usage.is_empty() {
            metadata.insert("usage".to_owned(), usage(&self.usage));
        }
        let status = Status { state, message: self.status_message(state), at: self.at() };
        let artifacts = self.artifacts.clone();
        let metadata = Value::Object(metadata);
        let reply = match self.turns.last().map(|turn| &turn.phase) {
            Some(Phase::Ended(outcome)) if says(outcome, MESSAGE) => Answer::Message,
            _ => Answer::Task,
        };
        Task { name: Arc::clone(&self.name), status, history, artifacts, metadata, reply }
    }

    fn prompted(&mut self, turn: TurnId, prompt: &Prompt, at: Timestamp) {
        let Some(label) = prompt.label.as_ref().filter(|label| *label.task == *self.name.id.to_string()) else {
            return;
        };
        self.at = at;
        let message =
            Message { id: Arc::clone(&label.message), author: Author::User, parts: content::parts(&prompt.content) };
        self.keep(message);
        self.turns.push(Turn { id: turn, phase: Phase::Waiting, answer: String::new() });
    }

    fn answer(&mut self, at: usize, text: &Text) {
        if self.turns[at].answer.len() + text.len() <= MOST_BYTES {
            self.turns[at].answer.push_str(&text.to_str());
        } else {
            self.is_cut = true;
        }
    }

    fn end(&mut self, at: usize, outcome: &Outcome) {
        self.turns[at].phase = Phase::Ended(outcome.clone());
        if !self.turns[at].answer.is_empty() {
            let message = answer(&self.name, &self.turns[at]);
            self.keep(message);
        }
        self.pending.clear();
        self.tools.clear();
        // Of the turns that are over the last one says how the task stands.
        let last = self.turns.last().map(|turn| turn.id);
        self.turns.retain(|turn| Some(turn.id) == last || !matches!(turn.phase, Phase::Ended(_)));
    }

    fn keep(&mut self, message: Message) {
        self.bytes += message.parts.iter().map(Part::weight).sum::<usize>();
        self.history.push(message);
        while self.history.len() > 1 && (self.history.len() > MOST_MESSAGES || self.bytes > MOST_BYTES) {
            self.bytes -= self.history.remove(0).parts.iter().map(Part::weight).sum::<usize>();
            self.is_cut = true;
        }
    }

    fn add_artifact(&mut self, artifact: Artifact, continuation: Continuation, updates: &mut Vec<Update>) {
        match self.artifacts.iter_mut().find(|known| known.id == artifact.id) {
            Some(known) if continuation == Continuation::Appended => known.parts.extend(artifact.parts.iter().cloned()),
            Some(known) => *known = artifact.clone(),
            None => self.artifacts.push(artifact.clone()),
        }
        if self.artifacts.len() > MOST_ARTIFACTS {
            self.artifacts.remove(0);
            self.is_cut = true;
        }
        updates.push(Update::Artifact { artifact, continuation });
    }

    /// A status update of a task that works, with one part.
    fn said(&self, seq: Seq, kind: Kind, part: Part) -> Update {
        let id = format!("{}-{}", self.name.id, seq.0).into();
        let message = Message { id, author: Author::Agent, parts: vec![part] };
        let status = Status { state: State::Working, message: Some(message), at: self.at };
        let metadata = self.model.iter().map(|model| ("model", json!(model))).collect();
        Update::Status { status, kind, metadata, is_last: false }
    }

    fn status_message(&self, state: State) -> Option<Message> {
        let last = self.turns.last()?;
        let parts = match (state, &last.phase) {
            (State::InputRequired, _) if self.pending.holds_the_task() => self.pending.parts(&self.tools),
            (State::Failed, Phase::Ended(Outcome::Interrupted(failure))) => {
                vec![Part::Text(Text::plain(failure.message.clone()))]
            }
            (State::Submitted | State::Working, _) => return None,
            _ if last.answer.is_empty() => return None,
            _ => vec![Part::Text(Text::plain(last.answer.clone()))],
        };
        Some(Message { id: answer_id(&self.name, last), author: Author::Agent, parts })
    }
}

/// Adds a piece of text to the update before it, where that is text too: what came together goes out together.
fn continues_text(updates: &mut [Update], text: &Text) -> bool {
    let Some(Update::Status { status, kind: Kind::Text, .. }) = updates.last_mut() else { return false };
    let Some(Part::Text(before)) = status.message.as_mut().and_then(|message| message.parts.last_mut()) else {
        return false;
    };
    *before = Text::plain(format!("{}{}", before.to_str(), text.to_str()));
    true
}

/// An agent's own words for a task that needs nothing more, and for an answer that was none.
const COMPLETED: &str = "completed";
const MESSAGE: &str = "message";

fn says(outcome: &Outcome, word: &str) -> bool {
    matches!(outcome, Outcome::Finished(Stop::Other(own)) if **own == *word)
}

fn ended(outcome: &Outcome) -> State {
    match outcome {
        Outcome::Finished(Stop::Refusal) => State::Rejected,
        outcome if says(outcome, COMPLETED) || says(outcome, MESSAGE) => State::Completed,
        Outcome::Finished(_) => State::InputRequired,
        Outcome::Cancelled => State::Canceled,
        Outcome::Interrupted(_) => State::Failed,
    }
}

fn answer(name: &TaskName, turn: &Turn) -> Message {
    let parts = vec![Part::Text(Text::plain(turn.answer.clone()))];
    Message { id: answer_id(name, turn), author: Author::Agent, parts }
}

fn answer_id(name: &TaskName, turn: &Turn) -> Arc<str> {
    format!("{}-turn-{}", name.id, turn.id.0).into()
}

fn usage(usage: &Usage) -> Value {
    let counts = [
        ("inputTokens", usage.input),
        ("outputTokens", usage.output),
        ("thoughtTokens", usage.thought),
        ("cachedTokens", usage.cached_read),
        ("totalTokens", usage.total),
    ];
    Value::Object(counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), json!(count?)))).collect())
}
