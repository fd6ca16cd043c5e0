//! Tools that the agent asked for and was refused. An agent that ends its turn over a refusal has not answered, and its
//! client shall not take that for an answer.

use crate::model::{Answer, AnsweredBy, Ask, AskBody, AskId, OptionKind};

#[derive(Debug, Default)]
pub(super) struct RefusedAsks {
    /// The questions that wait for an answer: as many as the turn lets wait.
    open: Vec<Ask>,
    /// The tool that was refused, unless the agent has gone on since.
    last: Option<String>,
}

impl RefusedAsks {
    pub(super) fn asked(&mut self, ask: &Ask) {
        self.open.push(ask.clone());
    }

    pub(super) fn answered(&mut self, ask: AskId, answer: &Answer, by: AnsweredBy) {
        let Some(at) = self.open.iter().position(|open| open.id == ask) else { return };
        let ask = self.open.remove(at);
        // Whoever cancels a turn knows why it ended.
        self.last = if by == AnsweredBy::Cancel { None } else { refused(&ask, answer) };
    }

    /// The agent went on with its answer.
    pub(super) fn went_on(&mut self) {
        self.last = None;
    }

    /// Why the answer ends here, if a refusal was the last that happened in it.
    pub(super) fn reason(&self) -> Option<String> {
        let tool = self.last.as_ref()?;
        Some(format!("the agent wanted to use `{tool}`, which was not allowed, and ended its turn"))
    }
}

/// The tool that this answer refuses.
fn refused(ask: &Ask, answer: &Answer) -> Option<String> {
    let AskBody::Permission { tool, options, .. } = &ask.body else { return None };
    let allows = |id: &str| {
        let chosen = options.iter().find(|option| *option.id == *id);
        chosen.is_some_and(|option| matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways))
    };
    match answer {
        Answer::Option(id) if allows(id) => None,
        Answer::Result(_) => None,
        Answer::Option(_) | Answer::Cancelled => {
            let name = tool.name.as_deref().or(tool.title.as_deref()).unwrap_or("a tool of its own");
            Some(name.replace(['\n', '\r', '`'], " "))
        }
    }
}
