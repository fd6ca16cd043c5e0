//! `gembridge serve` from outside: the built binary, real sockets, the demo agent and the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "serve/conversations.rs"]
mod conversations;
#[path = "serve/drain.rs"]
mod drain;
#[path = "serve/first_run.rs"]
mod first_run;
#[path = "serve/gateway.rs"]
mod gateway;
#[path = "serve/health.rs"]
mod health;
#[path = "serve/http.rs"]
mod http;
#[path = "serve/isolation.rs"]
mod isolation;
#[path = "serve/key_file.rs"]
mod key_file;
#[path = "serve/keys.rs"]
mod keys;
#[path = "serve/load.rs"]
mod load;
#[path = "serve/notify.rs"]
mod notify;
#[path = "serve/operations.rs"]
mod operations;
#[path = "serve/ops.rs"]
mod ops;
#[path = "serve/owners.rs"]
mod owners;
#[path = "serve/printed.rs"]
mod printed;
#[path = "serve/refusals.rs"]
mod refusals;
#[path = "serve/reload.rs"]
mod reload;
#[path = "serve/retention.rs"]
mod retention;
#[path = "serve/routes.rs"]
mod routes;
#[path = "serve/secrets.rs"]
mod secrets;
#[path = "serve/soak.rs"]
mod soak;
#[path = "serve/tickets.rs"]
mod tickets;
