//! The front ends, each over a real socket, with agents that are played by the tests; and the scenarios that all of them
//! share.

mod a2a;
mod acp;
mod captures;
mod goldens;
mod messages;
mod ollama;
mod openai;
mod responses;
mod scenarios;
