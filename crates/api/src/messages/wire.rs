//! The dialect's own words, as they stand on the wire: no logic, no core types.

mod request;
mod response;

pub use request::{
    Block, BlockSource, Content, CreateRequest, Format, Message, OutputConfig, Thinking, Thread, Tool, ToolChoice,
};
pub use response::{
    BlockDelta, BlockStart, BlockStop, ContentBlock, Counted, Delta, Empty, MessageDelta, MessageStart, StopDetails,
    Stopped, Usage, WholeMessage,
};
