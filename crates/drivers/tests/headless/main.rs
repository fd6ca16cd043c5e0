//! The driver `headless` under the session core, and `execute`, against programs that are real processes.

#[path = "../support/agent_fixture.rs"]
#[expect(dead_code, reason = "shared with the suites of the other driver; each uses a part")]
mod agent_fixture;

mod executed;
mod recorded;
mod scripted;
mod turns;
