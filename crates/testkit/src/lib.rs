//! What the tests and benchmarks stand on: a scripted agent, fakes of the APIs that real agents call, those agents,
//! and eyes on the process table. Shares no code with the gateway: a fake that used its codecs would hide their mistakes.

#![expect(clippy::disallowed_methods, reason = "a test kit starts the programs it fakes")]

pub mod a2a_server;
pub mod fake_agent;
pub mod fuzz;
pub mod gemini_api;
pub mod model_api;
pub mod process_table;
pub mod programs;
pub mod raw_acp;
pub mod record;

pub use process_table::{open_fds, processes_with_tag, pss_kb, rss_kb, zombies_of};
pub use programs::{
    claude_command, codex_command, codex_settings, fake_agent_path, fake_gemini_api_path, gemini_command,
    opencode_command, opencode_settings, real_claude, real_claude_code, real_codex, real_codex_cli, real_gemini,
    real_gemini_a2a_server, real_opencode, real_qwen, write_script,
};
pub use record::Record;
