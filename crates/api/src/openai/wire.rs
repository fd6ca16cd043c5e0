//! The dialect's own words, as they stand on the wire: no logic, no core types.

mod message;
mod models;
mod request;
mod response;
mod tool;

pub use crate::json::{Bounded, OneOrMany, Raw, Skipped, Str, Unknown, WordOr};
pub use message::{Content, File, FunctionCall, InputAudio, Message, Part, ToolCall};
pub use models::{ModelEntry, ModelList};
pub use request::ChatRequest;
pub use response::{
    Answer, CalledFunction, CalledTool, Choice, ChunkChoice, ChunkUsage, Completion, CompletionChunk, CompletionTokens,
    Delta, FinishReason, PromptTokens, Usage,
};
pub use tool::{AllowedTools, Function, JsonSchema, ResponseFormat, Tool, ToolChoice, ToolName};
