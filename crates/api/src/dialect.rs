//! What every dialect shares whose clients keep their own history: from an HTTP request to an exchange, and from the pieces
//! of its answers to the body of a response. A dialect adds its wire format: what its fields are called and how pieces look.

mod answer;
mod answer_body;
mod caller;
mod error;
mod open_calls;
mod raw_json;
mod recent;
mod source;
mod template;
mod tool;
mod words;

pub(crate) mod media;

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::exchange::Exchanges;
use tokio::sync::Semaphore;

pub(crate) use answer::{Asked, WholeEncoder};
pub(crate) use answer_body::{AnswerBody, StreamEncoder};
pub(crate) use caller::Caller;
pub(crate) use error::{FieldNames, error_type, problem};
pub(crate) use open_calls::OpenCalls;
pub(crate) use raw_json::{JSON, arguments, json, quoted};
pub(crate) use recent::{Recent, RecentLimits};
pub use source::Source;
pub(crate) use template::{HOLE, Template};
pub(crate) use tool::{LARGEST_SCHEMA, check_tools, client_tool, client_tool_within, form, keep, schema};
pub(crate) use words::{Ignored, brief, check_stop, parse, shortened};

/// Whether a client sees the agent's thoughts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoughts {
    Shown,
    LeftOut,
}

/// What stands before a model's name where a client takes none but those of its vendor. It changes nothing.
pub(crate) const VENDOR_PREFIX: &str = "anthropic/";

#[derive(Clone, Debug)]
pub struct DialectConfig {
    /// How long the status of a response waits for the agent's first sign.
    pub first_sign: Duration,
    /// A stream that is silent for this long shows that it lives.
    pub keep_alive: Duration,
}

impl Default for DialectConfig {
    fn default() -> Self {
        Self { first_sign: Duration::from_secs(10), keep_alive: Duration::from_secs(15) }
    }
}

/// What the routes of all dialects share.
pub struct Dialects {
    pub(crate) exchanges: Arc<Exchanges>,
    pub(crate) config: DialectConfig,
    /// Held by the one large request that is being read.
    large_requests: Arc<Semaphore>,
}

impl Dialects {
    pub fn new(exchanges: Arc<Exchanges>, config: DialectConfig) -> Arc<Self> {
        Arc::new(Self { exchanges, config, large_requests: Arc::new(Semaphore::new(1)) })
    }
}
