//! A session of an agent's own becomes one of the gateway's, so that it can be gone on with like any other.
//!
//! Its prompts and answers stand in the log as if they had been said here. An agent that loads the session itself is not
//! told of them; any other is, as after every loss of an agent.

use std::path::PathBuf;
use std::sync::Arc;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    AgentName, ClientId, Event, Outcome, Principal, Prompt, Seq, SessionId, Stop, Text, Timestamp, TurnId,
};
use gembridge_core::store::{Logs, SessionRecord, StoreError};
use gembridge_transcripts::{Damage, Located, Piece, ReadOptions, read};
use gembridge_unified::tool_names::ToolNames;
use gembridge_unified::{Block, Body, Originals, Role, UnifiedMessage};

/// What is known of the session, and what was said in it.
#[derive(Clone, Debug)]
pub struct Import {
    pub title: Option<String>,
    /// The agent's own name of it, where the same agent goes on with it.
    pub agent_session: Option<Arc<str>>,
    pub workspace: Option<PathBuf>,
    pub updated: u64,
    pub log: ImportedLog,
}

/// Turns, made of messages as they come.
#[derive(Clone, Debug, Default)]
pub struct ImportedLog {
    entries: Vec<LogEntry>,
    turn: Option<TurnId>,
}

impl Import {
    /// Reads a session, to go on with it. `agent_session` is its name where the agent is to load it itself.
    /// What could not be read of it comes beside.
    pub fn of(session: &Located, agent_session: Option<Arc<str>>, workspace: Option<PathBuf>) -> (Self, Vec<Damage>) {
        let mut log = ImportedLog::default();
        let mut damages = Vec::new();
        let options = ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Extended };
        let facts = read(session, options, &mut |piece| match piece {
            Piece::Message(message) => log.add(&message),
            Piece::Damage(damage) => damages.push(damage),
        });
        let updated = facts.updated.unwrap_or(session.modified);
        log.finish(updated);
        let title = facts.title.or_else(|| log.first_prompt());
        (Self { title, agent_session, workspace, updated, log }, damages)
    }

    /// Puts it into the store. The record of the new session.
    pub async fn store(&self, agent: &str, principal: Principal, logs: &dyn Logs) -> Result<SessionRecord, StoreError> {
        let created = self.log.entries.first().map_or(self.updated, |entry| entry.at.0);
        let record = SessionRecord {
            id: SessionId::new(),
            principal,
            agent: AgentName::new(agent),
            agent_session: self.agent_session.clone(),
            workspace: self.workspace.clone(),
            model: None,
            mode: None,
            title: self.title.as_deref().map(Into::into),
            created: Timestamp(created),
            updated: Timestamp(self.updated),
        };
        let mut writer = logs.create(record.clone()).await?;
        writer.append(&self.log.entries)?;
        writer.sync().await?;
        Ok(record)
    }
}

impl ImportedLog {
    pub fn add(&mut self, message: &UnifiedMessage) {
        let at = message.timestamp;
        match message.role {
            Role::User => {
                let said = said(message);
                if !said.trim().is_empty() {
                    self.end_turn(at);
                    self.turn = Some(TurnId(self.turn.map_or(0, |turn| turn.0) + 1));
                    self.push(at, Event::Prompted { prompt: Prompt::text(said), by: ClientId::fresh() });
                    self.push(at, Event::Started);
                }
            }
            Role::Assistant if self.turn.is_some() => {
                let said = said(message);
                if !said.trim().is_empty() {
                    self.push(at, Event::Text(Text::plain(format!("{}\n\n", said.trim_end()))));
                }
            }
            // What programs add is for the agent that they belong to.
            Role::Assistant | Role::System => {}
        }
    }

    /// The beginning of what was asked first, in a line.
    fn first_prompt(&self) -> Option<String> {
        let prompt = self.entries.iter().find_map(|entry| match &entry.event {
            Event::Prompted { prompt, .. } => Some(prompt.plain_text()),
            _ => None,
        })?;
        let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(line.chars().take(80).collect())
    }

    /// All that there is was added.
    pub fn finish(&mut self, at: u64) {
        self.end_turn(at);
    }

    fn end_turn(&mut self, at: u64) {
        let is_open = self.entries.last().is_some_and(|last| !matches!(last.event, Event::Ended(_)));
        if is_open {
            self.push(at, Event::Ended(Outcome::Finished(Stop::EndTurn)));
        }
    }

    fn push(&mut self, at: u64, event: Event) {
        let seq = Seq(self.entries.len() as u64 + 1);
        self.entries.push(LogEntry { seq, at: Timestamp(at), turn: self.turn, event, frame: None });
    }
}

/// The words of a message. Of a call only that it was made: what came of it is in the folder, or in what was said next.
fn said(message: &UnifiedMessage) -> String {
    let blocks = match &message.content {
        Body::Text(text) => return text.clone(),
        Body::Blocks(blocks) => blocks,
    };
    let lines = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::ToolUse { name, input, .. } => {
            let about = crate::command::sessions::tool_line::about(input);
            Some(format!("(called {name}: {about})"))
        }
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(role: &str, content: &serde_json::Value) -> UnifiedMessage {
        serde_json::from_value(json!({"id": "m", "role": role, "content": content, "timestamp": 7, "tool": "t"}))
            .unwrap()
    }

    #[test]
    fn prompts_begin_turns_and_every_turn_ends_once() {
        let mut log = ImportedLog::default();
        let call = json!({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}});
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": "x", "is_error": false});
        for (role, content) in [
            ("system", json!("context")),
            ("assistant", json!("before anybody spoke")),
            ("user", json!("one")),
            ("assistant", json!([{"type": "text", "text": "looking"}, call])),
            ("user", json!([result])),
            ("assistant", json!("done")),
            ("user", json!("two")),
        ] {
            log.add(&message(role, &content));
        }
        log.finish(9);
        let shown: Vec<_> = log
            .entries
            .iter()
            .map(|entry| {
                let turn = entry.turn.unwrap().0;
                match &entry.event {
                    Event::Prompted { prompt, .. } => format!("{turn} prompted {}", prompt.plain_text()),
                    Event::Text(text) => format!("{turn} text {}", text.to_str().trim_end()),
                    Event::Started => format!("{turn} started"),
                    Event::Ended(_) => format!("{turn} ended"),
                    other => format!("{other:?}"),
                }
            })
            .collect();
        let expected = [
            "1 prompted one",
            "1 started",
            "1 text looking\n(called Bash: ls)",
            "1 text done",
            "1 ended",
            "2 prompted two",
            "2 started",
            "2 ended",
        ];
        assert_eq!(shown, expected);
        assert_eq!(log.first_prompt().as_deref(), Some("one"));
        assert!(log.entries.iter().zip(1..).all(|(entry, number)| entry.seq.0 == number));
    }
}
