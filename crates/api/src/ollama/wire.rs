//! The dialect's own words, as they stand on the wire: no logic, no core types.

mod models;
mod request;
mod response;

pub use models::{Details, Listing, Model, ModelInfo, Named, Running, RunningList, Shown, Status, Version};
pub use request::{Ask, Call, Function, Message, Options, Tool, ToolFunction};
pub use response::{Called, CalledFunction, Counts, Line, Said};
