//! A message and its blocks, as they are written.

use gembridge_core::model::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::original::Original;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnifiedMessage {
    /// Unique in its session, and the same whenever the session is folded again.
    pub id: String,
    pub role: Role,
    pub content: Body,
    /// UNIX time in milliseconds.
    pub timestamp: u64,
    /// The name of the agent.
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UnifiedUsage>,
    /// What the agent sent for it, piece by piece; from a session file, its record, or an array of its records.
    #[serde(rename = "_original", default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
}

impl UnifiedMessage {
    /// The text blocks, one after another.
    pub fn text(&self) -> String {
        match &self.content {
            Body::Text(text) => text.clone(),
            Body::Blocks(blocks) => {
                let texts = blocks.iter().filter_map(|block| match block {
                    Block::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                texts.collect()
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    System,
}

/// Plain text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Body {
    Text(String),
    Blocks(Vec<Block>),
}

impl Body {
    /// Text where there is nothing else.
    pub fn plain_where_possible(mut blocks: Vec<Block>) -> Self {
        match &mut blocks[..] {
            [Block::Text { text }] => Self::Text(std::mem::take(text)),
            _ => Self::Blocks(blocks),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: Body,
        is_error: bool,
        /// Of a shell command, where the agent told it: a command that failed is no failed tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    },
    Image {
        source: Source,
    },
    Audio {
        source: Source,
    },
    Document {
        source: Source,
        title: String,
    },
    ResourceLink {
        uri: String,
        name: String,
    },
    Diff {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        new_text: String,
    },
    Terminal {
        terminal_id: String,
    },
    /// A block of a kind that this format has no word for, whole.
    Other {
        kind: String,
        body: Value,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    Base64 { media_type: String, data: String },
    Text { media_type: String, data: String },
    Url { url: String },
}

/// Tokens as the agent counts them, where it told them; the names are those of a turn's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnifiedUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_tokens: Option<u64>,
    #[serde(rename = "cache_read_input_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
}

impl UnifiedUsage {
    /// All tokens: the agent's own total, or the sum of what it told where it gives no total. An agent without a total
    /// counts cached tokens apart from its input.
    pub fn total(&self) -> u64 {
        let parts = [
            self.input_tokens,
            self.output_tokens,
            self.thought_tokens,
            self.cache_creation_tokens,
            self.cache_read_tokens,
        ];
        self.total_tokens.unwrap_or_else(|| parts.iter().flatten().fold(0, |sum, part| sum.saturating_add(*part)))
    }

    /// Adds the tokens of another message. What neither told stays absent.
    pub fn add(&mut self, other: &Self) {
        let add = |mine: &mut Option<u64>, theirs: Option<u64>| {
            if let Some(theirs) = theirs {
                *mine = Some(mine.unwrap_or(0).saturating_add(theirs));
            }
        };
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.thought_tokens, other.thought_tokens);
        add(&mut self.total_tokens, other.total_tokens);
        add(&mut self.cache_creation_tokens, other.cache_creation_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
    }

    /// `None` when the agent told nothing.
    pub(crate) fn of(usage: &Usage) -> Option<Self> {
        (!usage.is_empty()).then_some(Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            thought_tokens: usage.thought,
            total_tokens: usage.total,
            cache_creation_tokens: usage.cached_write,
            cache_read_tokens: usage.cached_read,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_the_agents_own_or_the_sum_of_what_it_told() {
        let told = UnifiedUsage { input_tokens: Some(10), output_tokens: Some(5), ..UnifiedUsage::default() };
        let mut sum = UnifiedUsage { cache_read_tokens: Some(900), ..told };
        assert_eq!((told.total(), sum.total()), (15, 915));
        sum.add(&UnifiedUsage { total_tokens: Some(7), cache_read_tokens: Some(u64::MAX), ..told });
        assert_eq!((sum.input_tokens, sum.output_tokens, sum.thought_tokens), (Some(20), Some(10), None));
        assert_eq!(sum.cache_read_tokens, Some(u64::MAX), "sums do not wrap");
        assert_eq!(sum.total(), 7, "an agent's own total counts");
        assert_eq!(UnifiedUsage::of(&Usage::default()), None);
        let counted = Usage { input: Some(3), cached_write: Some(2), ..Usage::default() };
        assert_eq!(UnifiedUsage::of(&counted).map(|usage| usage.total()), Some(5));
    }

    #[test]
    fn the_text_of_a_message_is_its_text_blocks_and_a_lone_one_is_plain() {
        let text = |text: &str| Block::Text { text: text.to_owned() };
        let mut message = UnifiedMessage {
            id: "m".to_owned(),
            role: Role::User,
            content: Body::plain_where_possible(vec![text("one")]),
            timestamp: 0,
            tool: "t".to_owned(),
            model: None,
            usage: None,
            original: None,
        };
        assert_eq!((message.text().as_str(), &message.content), ("one", &Body::Text("one".to_owned())));
        let thought = Block::Thinking { thinking: "hm".to_owned() };
        message.content = Body::plain_where_possible(vec![text("one "), thought, text("two")]);
        assert_eq!(message.text(), "one two");
    }
}
