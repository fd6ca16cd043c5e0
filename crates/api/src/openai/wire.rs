//! The dialect's own words, as they stand on the wire: no logic, no core types.

mod message;
mod models;
mod object;
mod request;
mod response;

pub use message::{Content, File, InputAudio, Message, Part};
pub use models::{ModelEntry, ModelList};
pub use object::{Bounded, OneOrMany, Skipped, Str, Unknown, WordOrObject};
pub use request::ChatRequest;
pub use response::{
    Answer, Choice, ChunkChoice, ChunkUsage, Completion, CompletionChunk, CompletionTokens, Delta, FinishReason,
    PromptTokens, Usage,
};
