//! The events of a turn as this dialect's answer. Chunks and whole answers come from one reading of the events; they
//! differ only in where the pieces go.

mod calls;
mod chunk;
mod cut;
mod demanded;
mod ending;
mod measure;
mod reading;
mod surrogate;
mod tool;
mod usage;
mod whole;

#[cfg(test)]
mod properties;

pub(super) use calls::{CallOptions, Strict};
pub(super) use chunk::Chunks;
pub(super) use demanded::Unmet;
pub(super) use ending::Ending;
pub(super) use reading::{Reading, ReadingOptions};
pub(super) use usage::Tally;
pub(super) use whole::Wholes;

use std::sync::Arc;

use super::wire;

/// What is the same in every chunk of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub id: String,
    /// UNIX time in seconds.
    pub created: u64,
    pub model: String,
    pub system_fingerprint: Arc<str>,
}

/// Takes the pieces of one answer. Text comes as the body of a JSON string.
pub(super) trait Pieces {
    fn text(&mut self, escaped: &[u8]);
    fn thought(&mut self, escaped: &[u8]);
    fn refusal(&mut self, escaped: &[u8]);
    /// The call at this place among those of the answer.
    fn call(&mut self, at: usize, call: wire::CalledTool);
    /// The only call, for clients of the older wording.
    fn function_call(&mut self, call: wire::CalledFunction);
}
