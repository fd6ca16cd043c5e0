//! Answers: a line of a stream, or a whole one.

use serde::Serialize;
use serde_json::value::RawValue;

/// A line of a stream; with everything in it, a whole answer.
#[derive(Debug, Default, Serialize)]
pub struct Line<'a> {
    pub model: &'a str,
    pub created_at: &'a str,
    /// Of a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Said<'a>>,
    /// Of a generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<&'a RawValue>,
    /// Of a generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<&'a RawValue>,
    pub done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_reason: Option<&'static str>,
    #[serde(flatten)]
    pub counts: Option<Counts>,
}

#[derive(Debug, Serialize)]
pub struct Said<'a> {
    pub role: &'static str,
    pub content: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tool_calls: &'a [Called],
}

#[derive(Debug, Serialize)]
pub struct Called {
    pub id: String,
    pub function: CalledFunction,
}

#[derive(Debug, Serialize)]
pub struct CalledFunction {
    pub index: usize,
    pub name: String,
    /// An object.
    pub arguments: Box<RawValue>,
}

/// What an answer took: times in nanoseconds, and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub total_duration: u64,
    pub load_duration: u64,
    pub prompt_eval_count: u64,
    pub prompt_eval_duration: u64,
    pub eval_count: u64,
    pub eval_duration: u64,
}
