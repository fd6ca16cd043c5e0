//! The driver `a2a` under the session core, against servers that speak either version.

#[path = "../support/agent_fixture.rs"]
#[expect(dead_code, reason = "shared with the suites of the other drivers; each uses a part")]
mod agent_fixture;

mod failures;
mod permissions;
mod remote;
mod turns;
