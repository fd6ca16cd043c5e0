//! The real Gemini CLI under the ACP driver and the session core, offline on a fake of its API.

#[path = "../support/agent_fixture.rs"]
#[expect(dead_code, reason = "shared with tests that run other agents")]
mod agent_fixture;

mod chat;
mod commands;
mod failures;
mod files;
mod gemini_fixture;
mod guest;
mod permissions;
mod resume;
mod sessions;
mod switches;
mod tool_server;
mod tools;
mod turns;
