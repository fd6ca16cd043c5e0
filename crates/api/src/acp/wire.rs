//! What clients send, as far as we look into it. Everything else in a message is not read.

mod content;
mod request;

pub use content::{Block, Resource};
pub use request::{
    CancelRequest, Extensions, ForSession, Initialize, ListSessions, McpServer, NewSession, Outcome, Permission,
    Prompt, ReplayWish, SessionsWish, SetMode, SetModel, SetOption, Wishes, WithWishes, WithWorkIn,
};
