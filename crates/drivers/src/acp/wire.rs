//! The Agent Client Protocol as it stands on the wire: serde structs, no logic.
//!
//! Agents are ahead of every published schema and behind it, so every field that we can live without is optional and
//! every enumeration is a string.

mod content;
mod envelope;
mod handshake;
mod request;
mod update;

pub(super) use content::{Block, Content, Embedded, MessageName, PromptMeta, PromptParams, Resource, ToolContent};
pub(super) use envelope::{Envelope, RpcError, UpdateLine};
pub(super) use handshake::{
    ConfigOption, ConfigOptions, ConfigValue, Initialized, Mode, Model, PromptResponse, SessionOpened,
};
pub(super) use request::{
    CancelRequest, CreateTerminal, Elicitation, PermissionMeta, PermissionRequest, ReadTextFile, SessionScoped,
    TerminalCall, WriteTextFile,
};
pub(super) use update::{
    AvailableCommand, AvailableCommands, ChunkMeta, ContentChunk, CurrentMode, Location, McpInput, Plan, PlanEntry,
    SessionInfo, SessionUpdate, TokenUsage, ToolCall, ToolMeta, UpdateHead, UsageUpdate,
};
