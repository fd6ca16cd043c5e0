//! What a turn came to: its stretches of text, tool calls and plan, for tests to look at.

use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, Content, Event, OptionKind, Outcome, PlanEntry, Text, ToolCall, ToolCallId,
    ToolStatus, Usage,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A stretch of answer text between other things.
    Message(String),
    Thought(String),
    Content(Content),
    Tool(ToolItem),
    Plan(Vec<PlanEntry>),
}

/// A tool call with every update merged. One that was refused and never heard of again is closed as failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolItem {
    pub call: ToolCall,
    /// A person or a policy said no.
    pub refused: bool,
}

/// What a turn has come to so far.
#[derive(Clone, Debug, Default)]
pub struct TurnItems {
    items: Vec<Item>,
    asks: Vec<Ask>,
    usage: Usage,
    outcome: Option<Outcome>,
}

impl TurnItems {
    pub fn push(&mut self, event: &Event) {
        match event {
            // An empty piece is no stretch of its own, and parts none.
            Event::Text(text) | Event::Thought(text) if text.is_empty() => {}
            Event::Text(text) => self.append_text(text),
            Event::Thought(text) => self.append_thought(text),
            Event::Content(content) => self.items.push(Item::Content(content.clone())),
            Event::ToolCall(call) => self.tool(&call.id).call.merge(call),
            Event::Plan(entries) => self.plan(entries),
            Event::Asked(ask) => {
                if let AskBody::Permission { tool, .. } = &ask.body {
                    self.tool(&tool.id).call.merge(tool);
                }
                self.asks.push((**ask).clone());
            }
            Event::Answered { ask, answer, .. } => self.answered(*ask, answer),
            Event::Usage(usage) => self.usage.merge(usage),
            Event::Ended(outcome) => self.end(outcome),
            _ => {}
        }
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The answer's text, all stretches of it.
    pub fn text(&self) -> String {
        let stretches = self.items.iter().filter_map(|item| match item {
            Item::Message(text) => Some(text.as_str()),
            _ => None,
        });
        stretches.collect()
    }

    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    fn append_text(&mut self, text: &Text) {
        match self.items.last_mut() {
            Some(Item::Message(message)) => message.push_str(&text.to_str()),
            _ => self.items.push(Item::Message(text.to_str().into_owned())),
        }
    }

    fn append_thought(&mut self, text: &Text) {
        match self.items.last_mut() {
            Some(Item::Thought(thought)) => thought.push_str(&text.to_str()),
            _ => self.items.push(Item::Thought(text.to_str().into_owned())),
        }
    }

    /// A plan replaces the one before it, where that one stood.
    fn plan(&mut self, entries: &[PlanEntry]) {
        let standing = self.items.iter_mut().find_map(|item| match item {
            Item::Plan(plan) => Some(plan),
            _ => None,
        });
        match standing {
            Some(plan) => *plan = entries.to_vec(),
            None => self.items.push(Item::Plan(entries.to_vec())),
        }
    }

    /// The call with this id, made on whichever mention of it comes first.
    fn tool(&mut self, id: &ToolCallId) -> &mut ToolItem {
        let at = self.items.iter().position(|item| matches!(item, Item::Tool(tool) if tool.call.id == *id));
        let at = at.unwrap_or_else(|| {
            self.items.push(Item::Tool(ToolItem { call: ToolCall::update(id.clone()), refused: false }));
            self.items.len() - 1
        });
        match &mut self.items[at] {
            Item::Tool(tool) => tool,
            _ => unreachable!("the position was found by its kind"),
        }
    }

    fn answered(&mut self, id: AskId, answer: &Answer) {
        let Some(at) = self.asks.iter().position(|ask| ask.id == id) else { return };
        let AskBody::Permission { tool, options, .. } = self.asks.swap_remove(at).body else { return };
        let allowed = matches!(answer, Answer::Option(chosen) if options.iter().any(|option| {
            option.id == *chosen && matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways)
        }));
        if !allowed {
            let item = self.tool(&tool.id);
            item.refused = true;
            item.call.status = Some(ToolStatus::Failed);
        }
    }

    /// Closes what the agent left open, so that nothing looks as if it still ran.
    fn end(&mut self, outcome: &Outcome) {
        for item in &mut self.items {
            if let Item::Tool(tool) = item
                && !tool.call.status.is_some_and(ToolStatus::is_final)
            {
                tool.call.status = Some(ToolStatus::Failed);
            }
        }
        self.outcome = Some(outcome.clone());
    }
}
