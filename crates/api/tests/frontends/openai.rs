//! The OpenAI API over real HTTP, with agents that are played by the tests.

mod bodies;
mod conversations;
mod cuts;
mod departures;
mod failures;
mod formats;
pub mod golden;
mod models;
mod queue;
mod repeats;
mod streams;
pub mod support;
mod tools;
