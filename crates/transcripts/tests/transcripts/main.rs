//! The agents' own session files: recorded ones, and ones made for a single trap.

mod claude;
mod codex;
mod damage;
mod finding;
mod gemini;
mod gemini_tools;
mod golden;
mod home;
mod opencode;
mod properties;
mod qwen;
mod searching;
mod spending;
