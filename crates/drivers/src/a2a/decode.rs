//! What a server tells of a task, as events of the core; and what the end of a stream means.

mod tools;

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::{AgentStop, Update};
use gembridge_core::model::{Answer, AskId, Content, Dialect, Event, Failure, FailureKind, Frame, Stop, Text, Usage};

use super::encode::Place;
use super::error::{self, Trouble};
use super::wire::{self, Artifact, ArtifactUpdate, Message, Metadata, Part, State, StatusUpdate, Task, Told};
use tools::Tools;

/// Reads all streams of one turn.
pub(super) struct Decoder {
    agent: Arc<str>,
    place: Place,
    state: State,
    /// The server said that nothing more comes.
    is_final: bool,
    has_spoken: bool,
    /// What went wrong, although the task goes on.
    complaint: Option<String>,
    /// What the last status said in words.
    reason: String,
    /// The task as it stood at rest, for what was not told on the way.
    at_rest: Option<Task>,
    usage: Option<Usage>,
    model: Option<Arc<str>>,
    tools: Tools,
}

/// What is to be done when a stream is over.
pub(super) enum Rest {
    /// Tools wait for decisions.
    Asks,
    Ended {
        end: Result<AgentStop, Failure>,
        usage: Option<Usage>,
    },
}

impl Decoder {
    pub fn new(agent: Arc<str>, place: Place) -> Self {
        Self {
            agent,
            place,
            state: State::Unknown,
            is_final: false,
            has_spoken: false,
            complaint: None,
            reason: String::new(),
            at_rest: None,
            usage: None,
            model: None,
            tools: Tools::default(),
        }
    }

    /// One event of a stream, or an answer in one piece.
    pub fn event(&mut self, body: &Bytes) -> Result<Vec<Update>, Trouble> {
        let events = match wire::told(wire::result(body)?)? {
            Told::Task(task) => self.task(task),
            Told::Message(message) => self.message(message),
            Told::Status(update) => self.status(update),
            Told::Artifact(update) => self.artifact(&update),
            Told::Other(kind) => vec![Event::Other { kind: kind.chars().take(64).collect::<String>().into() }],
        };
        self.has_spoken |= events.iter().any(|event| matches!(event, Event::Text(_) | Event::Content(_)));
        let frame = Frame { dialect: Dialect::A2a, bytes: body.clone() };
        Ok(events.into_iter().map(|event| Update { event, frame: Some(frame.clone()) }).collect())
    }

    /// A new stream of the same turn begins.
    pub fn goes_on(&mut self) {
        self.is_final = false;
        self.state = State::Unknown;
    }

    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Where the next message belongs. A task that is over takes none; its conversation may go on in another.
    pub fn place(&self) -> Place {
        let task = self.place.task.clone().filter(|_| !self.state.is_terminal());
        Place { task, context: self.place.context.clone() }
    }

    /// The task does nothing without its client, and no tool of it waits for a decision.
    pub fn is_at_rest(&self) -> bool {
        self.state.is_at_rest() && !self.tools.has_questions()
    }

    pub fn answered(&mut self, ask: AskId, answer: &Answer) {
        self.tools.answered(ask, answer);
    }

    /// The decisions, once there is one for each question.
    pub fn decisions(&mut self) -> Option<Vec<(String, Arc<str>)>> {
        self.tools.decisions()
    }

    /// What a task at rest has that no event told.
    pub fn leftover(&mut self) -> Vec<Update> {
        let Some(task) = self.at_rest.take().filter(|_| !self.has_spoken) else { return Vec::new() };
        let mut events: Vec<Event> = task.artifacts.iter().flat_map(of_artifact).collect();
        if matches!(self.state, State::Completed | State::InputRequired)
            && let Some(message) = &task.status.message
        {
            events.extend(of_parts(&message.parts));
        }
        self.has_spoken = !events.is_empty();
        events.into_iter().map(Update::ours).collect()
    }

    pub fn rest(&self) -> Rest {
        if self.state == State::InputRequired && self.tools.has_questions() {
            return Rest::Asks;
        }
        let agent = &self.agent;
        let said = self.complaint.as_deref().unwrap_or(&self.reason);
        let end = match self.state {
            State::Completed | State::InputRequired => match &self.complaint {
                Some(complaint) => Err(error::failed(agent, complaint)),
                None => Ok(AgentStop::Stopped(Stop::EndTurn)),
            },
            State::Failed => Err(error::failed(agent, said)),
            State::Rejected => Ok(AgentStop::Stopped(Stop::Refusal)),
            State::Canceled => Ok(AgentStop::Cancelled),
            State::AuthRequired => {
                Err(Failure::new(FailureKind::NeedsLogin, format!("agent `{agent}` wants a login: {said}")))
            }
            State::Submitted | State::Working | State::Unknown => {
                Err(Trouble::Cut("its stream ended before its task".to_owned()).failure(agent))
            }
        };
        Rest::Ended { end, usage: self.usage }
    }

    fn task(&mut self, task: Task) -> Vec<Event> {
        self.place = Place { task: Some(task.id.clone()), context: task.context_id.clone() };
        self.state = task.status.state;
        if let Some(message) = &task.status.message {
            self.reason = words(&message.parts);
        }
        let events = self.metadata(task.metadata.as_ref());
        if self.state.is_at_rest() {
            self.at_rest = Some(task);
        }
        events
    }

    /// An answer without a task is whole.
    fn message(&mut self, message: Message) -> Vec<Event> {
        self.place.context = message.context_id.or(self.place.context.take());
        self.place.task = message.task_id;
        self.state = State::Completed;
        self.is_final = true;
        of_parts(&message.parts)
    }

    fn status(&mut self, update: StatusUpdate) -> Vec<Event> {
        self.place.task = update.task_id.or(self.place.task.take());
        self.place.context = update.context_id.or(self.place.context.take());
        self.state = update.status.state;
        self.is_final = update.is_final;
        let mut events = self.metadata(update.metadata.as_ref());
        let Some(message) = update.status.message else { return events };
        let kind = update.metadata.as_ref().and_then(|metadata| metadata.coder_agent.as_ref());
        match kind.map(|about| about.kind.as_str()) {
            Some("text-content") => events.extend(of_parts(&message.parts)),
            Some("thought") => events.extend(message.parts.iter().filter_map(thought)),
            // A coding agent tells of its tools in data; what it says in words beside them is about the task.
            Some(kind) => {
                self.reason = words(&message.parts);
                let calls = message.parts.into_iter().filter_map(|part| part.data);
                events.extend(calls.flat_map(|data| self.tools.told(data)));
                if events.is_empty() && !matches!(kind, "state-change" | "tool-call-update" | "tool-call-confirmation")
                {
                    events.push(Event::Other { kind: kind.chars().take(64).collect::<String>().into() });
                }
            }
            // What other agents say at the end is their answer; before it they say what they do.
            None if matches!(self.state, State::Completed | State::InputRequired) => {
                events.extend(of_parts(&message.parts));
            }
            None => {
                self.reason = words(&message.parts);
                if !self.reason.is_empty() && !self.state.is_at_rest() {
                    events.push(Event::Thought(Text::plain(format!("{}\n", self.reason))));
                }
            }
        }
        events
    }

    fn artifact(&mut self, update: &ArtifactUpdate) -> Vec<Event> {
        match self.tools.output(&update.artifact, update.append) {
            Some(event) => vec![event],
            None => of_artifact(&update.artifact),
        }
    }

    fn metadata(&mut self, metadata: Option<&Metadata>) -> Vec<Event> {
        let Some(metadata) = metadata else { return Vec::new() };
        if let Some(error) = metadata.error.as_ref().filter(|error| !error.is_null()) {
            self.complaint = Some(error.as_str().map_or_else(|| error.to_string(), str::to_owned));
        }
        if let Some(used) = metadata.usage {
            self.usage = Some(Usage {
                input: used.input,
                output: used.output,
                thought: used.thought,
                cached_read: used.cached,
                total: used.total,
                ..Usage::default()
            });
        }
        match metadata.model.as_deref() {
            Some(model) if self.model.as_deref() != Some(model) => {
                let model: Arc<str> = model.into();
                self.model = Some(Arc::clone(&model));
                vec![Event::Model(model)]
            }
            _ => Vec::new(),
        }
    }
}

fn of_artifact(artifact: &Artifact) -> Vec<Event> {
    of_parts(&artifact.parts)
}

fn of_parts(parts: &[Part]) -> Vec<Event> {
    parts.iter().filter_map(of_part).collect()
}

fn of_part(part: &Part) -> Option<Event> {
    if let Some(text) = &part.text {
        return (!text.is_empty()).then(|| Event::Text(Text::plain(text.clone())));
    }
    if let Some(data) = &part.data {
        let text = serde_json::to_string_pretty(data).unwrap_or_default();
        return Some(Event::Text(Text::plain(format!("\n```json\n{text}\n```\n"))));
    }
    let file = part.file.as_ref();
    let name = part.filename.as_deref().or(file.and_then(|file| file.name.as_deref())).unwrap_or("file");
    let mime = part.media_type.as_deref().or(file.and_then(|file| file.mime_type.as_deref()));
    let bytes = part.raw.as_ref().or(file.and_then(|file| file.bytes.as_ref()));
    let uri = part.url.as_ref().or(file.and_then(|file| file.uri.as_ref()));
    let content = match (bytes, uri) {
        (Some(bytes), _) => {
            let mime = mime.unwrap_or("application/octet-stream");
            let data = Text::plain(bytes.clone());
            if mime.starts_with("image/") {
                Content::Image { mime: mime.into(), data, uri: None }
            } else if mime.starts_with("audio/") {
                Content::Audio { mime: mime.into(), data }
            } else {
                Content::file(name, mime, data)
            }
        }
        (None, Some(uri)) => Content::Link { uri: uri.as_str().into(), name: name.into(), mime: mime.map(Into::into) },
        (None, None) => return None,
    };
    Some(Event::Content(content))
}

fn thought(part: &Part) -> Option<Event> {
    let said = match (&part.text, &part.data) {
        (Some(text), _) => text.clone(),
        (None, Some(data)) => {
            let field = |name: &str| data[name].as_str().unwrap_or_default();
            match (field("subject"), field("description")) {
                ("", said) => said.to_owned(),
                (subject, "") => format!("**{subject}**\n"),
                (subject, description) => format!("**{subject}**\n{description}\n"),
            }
        }
        (None, None) => String::new(),
    };
    (!said.is_empty()).then(|| Event::Thought(Text::plain(said)))
}

fn words(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}
