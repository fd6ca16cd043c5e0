//! A message that is still being written.

use serde_json::Value;

use super::{Context, Originals};
use crate::message::{Block, Body, Role, UnifiedMessage};
use crate::original::Original;

#[derive(Debug)]
pub(super) struct Draft {
    pub id: String,
    pub timestamp: u64,
    pub blocks: Vec<Block>,
    pub originals: Vec<Value>,
}

impl Draft {
    pub fn new(id: String, timestamp: u64) -> Self {
        Self { id, timestamp, blocks: Vec::new(), originals: Vec::new() }
    }

    pub fn into_message(self, role: Role, context: &Context) -> UnifiedMessage {
        UnifiedMessage {
            id: self.id,
            role,
            content: Body::Blocks(self.blocks),
            timestamp: self.timestamp,
            tool: context.agent.clone(),
            model: context.model.clone(),
            usage: None,
            original: (context.originals == Originals::Keep).then_some(Original::Tree(Value::Array(self.originals))),
        }
    }
}
