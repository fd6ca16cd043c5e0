//! Agents without processes, for tests: [`AgentDesk`] lets a test open and play each agent itself, [`ScriptedAgents`] plays
//! all of them by a script. Behind the feature `test-support`.

mod desk;
mod played;
mod scripted;

use std::time::Duration;

pub use self::desk::{AgentDesk, DeskDriver, FakeAgent, OpenRequest, desk_driver};
pub use self::played::Order;
pub use self::scripted::{Prompted, ScriptedAgents};
use crate::driver::{AgentStop, Signal, Update};
use crate::model::{Event, Failure, FailureKind, Stop, Usage};

/// Long enough for a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Something that the agent says, in no dialect.
pub fn update(event: Event) -> Signal {
    Signal::Update(Update::ours(event))
}

pub fn text(text: &str) -> Signal {
    update(Event::Text(text.into()))
}

pub fn thought(text: &str) -> Signal {
    update(Event::Thought(text.into()))
}

pub fn done() -> Signal {
    stopped(Stop::EndTurn)
}

pub fn stopped(stop: Stop) -> Signal {
    Signal::Done { stop: AgentStop::Stopped(stop), usage: None }
}

pub fn done_with(usage: Usage) -> Signal {
    Signal::Done { stop: AgentStop::Stopped(Stop::EndTurn), usage: Some(usage) }
}

pub fn done_cancelled() -> Signal {
    Signal::Done { stop: AgentStop::Cancelled, usage: None }
}

/// The agent's process ended with these words.
pub fn crashed(message: &str) -> Failure {
    Failure::new(FailureKind::Crashed, message)
}
