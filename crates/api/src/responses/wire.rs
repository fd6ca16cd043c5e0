//! The dialect's own words, as they stand on the wire: no logic, no core types.

mod item;
mod request;
mod response;
mod tool;

pub use item::{Content, Item, Part};
pub use request::{CreateRequest, TextFormat};
pub use response::{
    CallItem, ConversationEcho, ErrorBody, IncompleteDetails, InputTokensDetails, MessageItem, OutputItem, OutputPart,
    OutputTokensDetails, ReasoningItem, ReasoningOptions, ResponseObject, TextEcho, Usage,
};
pub use tool::{AllowedTool, Tool, ToolChoice};
