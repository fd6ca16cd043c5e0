//! The ACP driver under the session core, against agents that are real processes.

#[path = "../support/agent_fixture.rs"]
mod agent_fixture;

mod basics;
mod calls;
mod crashes;
mod fence;
mod flow;
mod guests;
mod hangs;
mod noise;
mod own_tools;
mod permissions;
mod pool;
mod quirks;
mod races;
mod trees;
mod updates;
mod workspace;
