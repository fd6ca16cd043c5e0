//! The driver `a2a` under the session core, against servers that speak either version.

#[path = "../support/agent_fixture.rs"]
#[expect(dead_code, reason = "shared with the suites of the other drivers; each uses a part")]
mod agent_fixture;

mod failures;
mod gemini;
mod permissions;
mod remote;
#[path = "../gemini/tool_server.rs"]
#[expect(dead_code, reason = "shared with the suite of the CLI itself; each uses a part")]
mod tool_server;
mod turns;
