//! The real Gemini CLI under the ACP driver and the session core, offline on a fake of its API.

#[path = "acp/stage.rs"]
#[expect(dead_code, reason = "shared with tests that run other agents")]
mod stage;

mod gemini {
    mod chat;
    mod commands;
    mod failures;
    mod files;
    mod guest;
    mod lab;
    mod permissions;
    mod resume;
    mod sessions;
    mod switches;
    mod tool_server;
    mod tools;
    mod turns;
}
