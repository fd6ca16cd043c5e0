//! Answers in this dialect's words. One writer for whole answers and for events: the last event of a stream is the whole
//! response, so that a stream keeps every item in any case.

mod answer;
mod events;
mod object;

pub(super) use answer::Answer;
pub(super) use events::Framing;
pub(super) use object::{AnswerForm, Echo, Head, Thoughts};
