//! The face of OpenAI over real HTTP, with agents that are played by the tests.

mod bodies;
mod conversations;
mod cuts;
mod departures;
mod failures;
mod formats;
mod golden;
mod models;
mod queue;
mod scenarios;
mod streams;
mod support;
mod tools;
