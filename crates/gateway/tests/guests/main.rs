//! What a guest, a key without the operator's rights, can make the real agents do: Claude Code, Codex, OpenCode and the
//! Gemini CLI behind the built binary, on fakes of the models they ask. The fake agent shows what reaches an agent at all.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../ws/client.rs"]
#[expect(dead_code, reason = "shared with the tests of the WebSocket, which use the rest")]
mod client;
mod commands;
mod files;
#[path = "../serve/gateway.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod gateway;
mod homes;
#[path = "../serve/http.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod http;
mod methods;
mod modes;
mod stage;
