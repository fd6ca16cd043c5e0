//! Several gateways as one: three built binaries and a real `redis-server`.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod behind_nginx;
mod found_anywhere;
mod gateways;
mod membership;
mod redis_faults;
mod redis_server;
mod shared_keys;
