//! The demo agent as a client sees it: a process, two pipes and JSON lines.

mod agent;
mod cancel;
mod client;
mod mcp;
mod mcp_server;
mod prompts;
mod sessions;
mod volume;
