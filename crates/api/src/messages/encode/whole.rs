//! An answer in one piece: the same pieces, kept until the end.

use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall};

use super::{Growing, Head, SIGNATURE, Stop};
use crate::dialect::{Thoughts, WholeEncoder, arguments, quoted};
use crate::messages::wire;

pub(in crate::messages) struct WholeBody {
    head: Head,
    blocks: Vec<Block>,
    stop: Stop,
}

enum Block {
    /// The body of a JSON string.
    Growing(Growing, Vec<u8>),
    Call(ClientCall),
}

impl WholeBody {
    pub(in crate::messages) fn new(head: Head) -> Self {
        Self { head, blocks: Vec::new(), stop: Stop::default() }
    }

    fn grow(&mut self, kind: Growing, escaped: &[u8]) {
        match self.blocks.last_mut() {
            Some(Block::Growing(last, text)) if *last == kind => text.extend_from_slice(escaped),
            Some(_) | None => self.blocks.push(Block::Growing(kind, escaped.to_vec())),
        }
    }
}

impl WholeEncoder for WholeBody {
    fn encode(&mut self, tokens: TokenCount) -> serde_json::Result<Vec<u8>> {
        let content = self.blocks.iter().map(Block::encode).collect::<Result<Vec<_>, _>>()?;
        serde_json::to_vec(&wire::WholeMessage {
            content: &content,
            stop_reason: Some(self.stop.reason()),
            stop_sequence: self.stop.sequence.as_deref(),
            stop_details: self.stop.details(),
            usage: tokens.into(),
            ..self.head.message()
        })
    }
}

impl Block {
    fn encode(&self) -> Result<wire::ContentBlock, serde_json::Error> {
        Ok(match self {
            Self::Growing(Growing::Text, text) => wire::ContentBlock::Text { text: quoted(text)? },
            Self::Growing(Growing::Thinking, text) => {
                wire::ContentBlock::Thinking { thinking: quoted(text)?, signature: SIGNATURE }
            }
            Self::Call(call) => wire::ContentBlock::ToolUse {
                id: call.id.to_string(),
                name: call.tool.to_string(),
                input: arguments(call),
            },
        })
    }
}

impl AnswerSink for WholeBody {
    fn default_model(&mut self, agent: &AgentName) {
        agent.as_str().clone_into(&mut self.head.model);
    }

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.grow(Growing::Text, escaped);
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        if self.head.thoughts == Thoughts::Shown {
            self.grow(Growing::Thinking, escaped);
        }
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.text(answer, escaped);
    }

    fn call(&mut self, _: usize, _: usize, call: &ClientCall) {
        self.blocks.push(Block::Call(call.clone()));
    }

    fn stop_sequence(&mut self, _: usize, text: &str) {
        self.stop.sequence = Some(text.to_owned());
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.stop.finish = Some(finish);
    }
}
