//! What the tests and benchmarks stand on: a scripted agent, a fake Gemini API, the real Gemini CLI, and eyes on the
//! process table. Shares no code with the gateway: a fake that used its codecs would hide their mistakes.

#![expect(clippy::disallowed_methods, reason = "a test kit starts the programs it fakes")]

pub mod fake_agent;
