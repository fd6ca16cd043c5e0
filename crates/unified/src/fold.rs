//! Folds a session's log into messages, one entry at a time. Whoever wants the whole collects the lines.
//!
//! An assistant's message ends where a tool begins; the tool's result is a user's message, and what the agent says
//! next is another message.

mod call;
mod draft;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, AskOption, Event, OptionKind, Outcome, PlanEntry, PlanPriority, PlanStatus, Prompt,
    Text, Timestamp, ToolCall, ToolStatus, TurnId, Usage,
};
use serde_json::{Value, json};

use self::call::Call;
use self::draft::Draft;
use crate::content;
use crate::line::{Delta, DeltaBody, Line, Notice, RunResult};
use crate::message::{Block, Body, Role, UnifiedMessage, UnifiedUsage};
use crate::tool::{self, End};

/// What the messages say beside what happened.
#[derive(Clone, Debug)]
pub struct Context {
    pub session_id: String,
    pub agent: String,
    pub model: Option<String>,
    pub originals: Originals,
}

/// Whether messages carry what the agent sent for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Originals {
    Leave,
    Keep,
}

/// The conversation so far. What it holds is bounded by one turn, and by the prompts that wait.
#[derive(Debug)]
pub struct Fold {
    context: Context,
    /// Prompts whose turn has not begun.
    waiting: Vec<(Option<TurnId>, UnifiedMessage)>,
    draft: Option<Draft>,
    calls: Vec<Call>,
    asks: Vec<Ask>,
    began: Option<Timestamp>,
    usage: Usage,
    answer: String,
    lines: Vec<Line>,
}

impl Fold {
    pub fn new(context: Context) -> Self {
        Self {
            context,
            waiting: Vec::new(),
            draft: None,
            calls: Vec::new(),
            asks: Vec::new(),
            began: None,
            usage: Usage::default(),
            answer: String::new(),
            lines: Vec::new(),
        }
    }

    /// The lines that this entry completes.
    pub fn push(&mut self, entry: &LogEntry) -> Vec<Line> {
        let session_id = self.context.session_id.clone();
        match &entry.event {
            Event::Prompted { prompt, .. } => self.prompted(entry, prompt),
            Event::Started => {
                self.began = Some(entry.at);
                self.release_prompt(entry.turn);
            }
            Event::Text(text) => self.write(entry, text, Voice::Aloud),
            Event::Thought(text) => self.write(entry, text, Voice::Thinking),
            Event::Content(content) => {
                self.settle_calls_but(None, entry);
                self.draft(entry).blocks.push(content::block(content));
                self.keep_original(entry);
            }
            Event::ToolCall(call) => self.called(entry, call),
            Event::Asked(ask) => self.asked(entry, ask),
            Event::Answered { ask, answer, .. } => self.answered(*ask, answer),
            Event::Usage(usage) => self.usage.merge(usage),
            Event::Plan(entries) => {
                let entries = entries.iter().map(plan_entry).collect();
                self.notice(Notice::Plan { entries, session_id });
            }
            Event::Mode(mode) => self.notice(Notice::Mode { mode: mode.to_string(), session_id }),
            Event::Model(model) => {
                self.context.model = Some(model.to_string());
                self.notice(Notice::Model { model: model.to_string(), session_id });
            }
            Event::Title(title) => {
                self.notice(Notice::Title { title: title.to_string(), session_id });
            }
            Event::AgentReplaced { reason } => {
                self.notice(Notice::AgentReplaced { reason: reason.clone(), session_id });
            }
            Event::Ended(outcome) => self.ended(entry, outcome),
            // They say something about the session, not in the conversation; of a client's tools the agent's own calls tell.
            Event::Context { .. }
            | Event::Commands(_)
            | Event::Options(_)
            | Event::Other { .. }
            | Event::HistoryReplayed { .. }
            | Event::Admitted
            | Event::AnswerDeleted { .. }
            | Event::Called(_)
            | Event::Parked(_)
            | Event::Returned { .. }
            | Event::Output(_) => {}
        }
        std::mem::take(&mut self.lines)
    }

    fn prompted(&mut self, entry: &LogEntry, prompt: &Prompt) {
        let blocks = prompt.blocks().iter().map(content::block).collect();
        let message = UnifiedMessage {
            id: format!("msg_{}", entry.seq.0),
            role: Role::User,
            content: Body::plain_where_possible(blocks),
            timestamp: entry.at.0,
            tool: self.context.agent.clone(),
            model: None,
            usage: None,
            original: None,
        };
        self.waiting.push((entry.turn, message));
    }

    /// A prompt is part of the conversation from when the agent gets it, or when it is clear that it never will.
    fn release_prompt(&mut self, turn: Option<TurnId>) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == turn) {
            let (_, message) = self.waiting.remove(at);
            self.say(message);
        }
    }

    fn write(&mut self, entry: &LogEntry, text: &Text, voice: Voice) {
        self.settle_calls_but(None, entry);
        let text = content::owned(text);
        let draft = self.draft(entry);
        match (draft.blocks.last_mut(), voice) {
            (Some(Block::Text { text: said }), Voice::Aloud) => said.push_str(&text),
            (Some(Block::Thinking { thinking }), Voice::Thinking) => thinking.push_str(&text),
            (_, Voice::Aloud) => draft.blocks.push(Block::Text { text: text.clone() }),
            (_, Voice::Thinking) => draft.blocks.push(Block::Thinking { thinking: text.clone() }),
        }
        let (message_id, index) = (draft.id.clone(), draft.blocks.len() - 1);
        let delta = match voice {
            Voice::Aloud => DeltaBody::TextDelta { text },
            Voice::Thinking => DeltaBody::ThinkingDelta { thinking: text },
        };
        let session_id = self.context.session_id.clone();
        self.lines.push(Line::Delta(Delta { session_id, message_id, index, delta }));
        self.keep_original(entry);
    }

    fn called(&mut self, entry: &LogEntry, update: &ToolCall) {
        let at = self.mention(entry, update);
        let call = &mut self.calls[at];
        let status = call.tool.status;
        if call.is_closed() {
            return;
        }
        if status.is_some_and(ToolStatus::is_final) {
            if call.refused {
                call.tool.status = Some(ToolStatus::Failed);
            }
            self.show(at);
            self.close(at, entry, End::Reported);
        } else if status == Some(ToolStatus::InProgress) {
            self.show(at);
        }
    }

    /// Merges what is new of a call, and gives its place.
    fn mention(&mut self, entry: &LogEntry, update: &ToolCall) -> usize {
        self.settle_calls_but(Some(update), entry);
        let known = self.calls.iter().position(|call| call.tool.id == update.id);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call::new(entry, update));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if !call.is_closed() {
            call.tool.merge(update);
            if self.context.originals == Originals::Keep {
                call.originals.extend(original(entry));
            }
        }
        at
    }

    fn asked(&mut self, entry: &LogEntry, ask: &Ask) {
        if let AskBody::Permission { tool, options, .. } = &ask.body {
            let at = self.mention(entry, tool);
            self.show(at);
            self.notice(Notice::PermissionRequest {
                tool_use_id: tool.id.to_string(),
                options: options.iter().map(option).collect(),
                session_id: self.context.session_id.clone(),
            });
        }
        self.asks.push(ask.clone());
    }

    fn answered(&mut self, id: AskId, answer: &Answer) {
        let Some(at) = self.asks.iter().position(|ask| ask.id == id) else { return };
        let AskBody::Permission { tool, options, .. } = self.asks.swap_remove(at).body else { return };
        let allowed = matches!(answer, Answer::Option(chosen) if options.iter().any(|option| {
            option.id == *chosen
                && matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways)
        }));
        if let Some(call) = self.calls.iter_mut().find(|call| call.tool.id == tool.id) {
            call.refused = !allowed;
        }
        self.notice(Notice::PermissionAnswer {
            tool_use_id: tool.id.to_string(),
            allowed,
            session_id: self.context.session_id.clone(),
        });
    }

    fn ended(&mut self, entry: &LogEntry, outcome: &Outcome) {
        for at in 0..self.calls.len() {
            self.show(at);
        }
        self.finish_draft(UnifiedUsage::of(&self.usage));
        let abandoned: Vec<_> = (0..self.calls.len()).filter(|at| !self.calls[*at].is_closed()).collect();
        for at in abandoned {
            let end = if self.calls[at].refused { End::Refused } else { End::Abandoned };
            self.close(at, entry, end);
        }
        self.release_prompt(entry.turn);
        let began = self.began.take().unwrap_or(entry.at);
        self.lines.push(Line::Result(RunResult {
            result: std::mem::take(&mut self.answer),
            duration_ms: entry.at.0.saturating_sub(began.0),
            usage: (&self.usage).into(),
            session_id: Some(self.context.session_id.clone()),
            ..RunResult::of(outcome)
        }));
        self.usage = Usage::default();
        self.calls.clear();
        self.asks.clear();
    }

    /// Something else goes on: calls that were only announced are shown as they are, and a refused one that the
    /// agent never spoke of again has ended.
    fn settle_calls_but(&mut self, current: Option<&ToolCall>, entry: &LogEntry) {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            if current.is_some_and(|current| current.id == call.tool.id) {
                continue;
            }
            let is_over = call.refused && !call.is_closed();
            self.show(at);
            if is_over {
                self.close(at, entry, End::Refused);
            }
        }
    }

    /// Ends the assistant's message with the use of the tool, once.
    fn show(&mut self, at: usize) {
        let call = &mut self.calls[at];
        if !call.begin_showing() {
            return;
        }
        let block = tool::tool_use(&call.tool);
        let originals = std::mem::take(&mut call.originals);
        let (id, timestamp) = (call.id.clone(), call.timestamp);
        let draft = self.draft.get_or_insert_with(|| Draft::new(id, timestamp));
        draft.blocks.push(block);
        draft.originals.extend(originals);
        self.finish_draft(None);
    }

    fn close(&mut self, at: usize, entry: &LogEntry, end: End) {
        let call = &mut self.calls[at];
        call.close();
        let mut draft = Draft::new(format!("{}_result", call.id), entry.at.0);
        draft.blocks.push(tool::tool_result(&call.tool, end));
        draft.originals = std::mem::take(&mut call.originals);
        let mut message = draft.into_message(Role::User, &self.context);
        message.model = None;
        self.say(message);
    }

    fn draft(&mut self, entry: &LogEntry) -> &mut Draft {
        self.draft.get_or_insert_with(|| Draft::new(format!("msg_{}", entry.seq.0), entry.at.0))
    }

    fn finish_draft(&mut self, usage: Option<UnifiedUsage>) {
        let Some(draft) = self.draft.take() else { return };
        let mut message = draft.into_message(Role::Assistant, &self.context);
        message.usage = usage;
        let text = message.text();
        if !text.is_empty() {
            self.answer = text;
        }
        self.say(message);
    }

    fn keep_original(&mut self, entry: &LogEntry) {
        if self.context.originals == Originals::Keep
            && let Some(draft) = &mut self.draft
        {
            draft.originals.extend(original(entry));
        }
    }

    fn say(&mut self, message: UnifiedMessage) {
        let session_id = self.context.session_id.clone();
        self.lines.push(match message.role {
            Role::Assistant => Line::Assistant { message, session_id },
            Role::User | Role::System => Line::User { message, session_id },
        });
    }

    fn notice(&mut self, notice: Notice) {
        self.lines.push(Line::System(notice));
    }
}

#[derive(Clone, Copy)]
enum Voice {
    Aloud,
    Thinking,
}

fn original(entry: &LogEntry) -> Option<Value> {
    let frame = entry.frame.as_ref()?;
    serde_json::from_slice(&frame.bytes).ok()
}

fn plan_entry(entry: &PlanEntry) -> Value {
    let priority = match entry.priority {
        PlanPriority::High => "high",
        PlanPriority::Medium => "medium",
        PlanPriority::Low => "low",
    };
    let status = match entry.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({ "content": &*entry.content, "priority": priority, "status": status })
}

fn option(option: &AskOption) -> Value {
    let kind = match option.kind {
        OptionKind::AllowOnce => "allow_once",
        OptionKind::AllowAlways => "allow_always",
        OptionKind::RejectOnce => "reject_once",
        OptionKind::RejectAlways => "reject_always",
        OptionKind::Unknown => "unknown",
    };
    json!({ "id": &*option.id, "name": &*option.name, "kind": kind })
}
