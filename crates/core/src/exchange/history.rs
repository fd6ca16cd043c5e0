//! A conversation as one prompt, for an agent that has not heard it.

use crate::model::{Message, Prompt, Role};

/// A conversation in one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedHistory {
    pub prompt: Prompt,
    /// Messages that did not fit.
    pub left_out: usize,
}

/// Puts a conversation into one prompt of about `budget` bytes. What the system says and the last message of the user are
/// always whole, and so are the newest calls with their results, since those are what is new; of the rest, the newest
/// that fit.
pub fn fit(conversation: &[Message], budget: usize) -> FittedHistory {
    let last_user = conversation.iter().rposition(|message| message.role == Role::User);
    let last_answer = conversation.iter().rposition(|message| message.role == Role::Assistant);
    let has_results = |answer: &usize| conversation[*answer..].iter().any(|message| message.role == Role::Tool);
    let results = last_answer.filter(has_results);
    let is_result = |at: usize| results.is_some_and(|first| at >= first);
    let is_kept_always = |at: usize| conversation[at].role == Role::System || Some(at) == last_user || is_result(at);
    let cost = |at: usize| conversation[at].len() + HEADING;
    let whole: usize = (0..conversation.len()).filter(|at| is_kept_always(*at)).map(cost).sum();
    let mut room = budget.saturating_sub(whole);
    let mut first = conversation.len();
    while first > 0 {
        let at = first - 1;
        if !is_kept_always(at) {
            match room.checked_sub(cost(at)) {
                Some(rest) => room = rest,
                None => break,
            }
        }
        first = at;
    }
    let is_kept = |at: usize| at >= first || is_kept_always(at);
    let kept: Vec<Message> =
        (0..conversation.len()).filter(|at| is_kept(*at)).map(|at| conversation[at].detached()).collect();
    let left_out = conversation.len() - kept.len();
    FittedHistory { prompt: Prompt::of_conversation(kept), left_out }
}

/// What is new in a conversation that the agent knows.
pub fn news(messages: &[Message]) -> Prompt {
    Prompt::of_news(messages.iter().map(Message::detached).collect())
}

/// About what the name of a speaker and the lines around it take.
const HEADING: usize = 16;
