//! The agents' own session files: recorded ones, and ones made for a single trap.

#[path = "suite/claude.rs"]
mod claude;
#[path = "suite/codex.rs"]
mod codex;
#[path = "suite/damage.rs"]
mod damage;
#[path = "suite/finding.rs"]
mod finding;
#[path = "suite/gemini.rs"]
mod gemini;
#[path = "suite/golden.rs"]
mod golden;
#[path = "suite/home.rs"]
mod home;
#[path = "suite/opencode.rs"]
mod opencode;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/qwen.rs"]
mod qwen;
