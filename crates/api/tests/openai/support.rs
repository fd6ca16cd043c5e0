//! A server with played agents, and a client that speaks plain HTTP.

pub mod agents;
pub mod http;
pub mod server;
pub mod tools;

use gembridge_core::driver::{AgentStop, Signal, Update};
use gembridge_core::model::{Event, Stop, Usage};

pub fn update(event: Event) -> Signal {
    Signal::Update(Update::ours(event))
}

pub fn text(text: &str) -> Signal {
    update(Event::Text(text.into()))
}

/// Text as an agent's JSON carries it.
pub fn escaped(body: &'static str) -> Signal {
    update(Event::Text(gembridge_core::model::Text::escaped(bytes::Bytes::from_static(body.as_bytes()))))
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
