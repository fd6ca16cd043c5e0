//! The events of a turn as this dialect's answer. Chunks and whole answers come from one reading of the events; they
//! differ only in where the pieces go.

mod chunk;
mod cut;
mod reading;
mod surrogate;
mod tool;
mod usage;
mod whole;

pub(super) use chunk::Chunks;
pub(super) use reading::{Ending, Reading, ReadingOptions, is_done_for_the_prompt};
pub(super) use usage::Tally;
pub(super) use whole::Wholes;

/// What is the same in every chunk of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub id: String,
    /// UNIX time in seconds.
    pub created: u64,
    pub model: String,
    pub system_fingerprint: String,
}

/// Takes the pieces of one answer. Text comes as the body of a JSON string.
pub(super) trait Pieces {
    fn text(&mut self, escaped: &[u8]);
    fn thought(&mut self, escaped: &[u8]);
}
