//! A conversation as one prompt, for an agent that has not heard it.

use std::borrow::Cow;

use crate::model::{Content, Message, Part, Prompt, PromptAbilities, Role};

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

/// The conversation as an agent can be told it: what tools gave back reaches it by its tool server, whatever kind it is,
/// but not in a prompt.
pub fn for_prompts(conversation: &[Message], abilities: PromptAbilities) -> Cow<'_, [Message]> {
    let is_foreign = |content: &Content| !abilities.takes(content);
    let needs_words = |message: &Message| message.role == Role::Tool && message.content().any(is_foreign);
    if !conversation.iter().any(needs_words) {
        return Cow::Borrowed(conversation);
    }
    let in_words = |part: &Part| match part {
        Part::Content(content) if is_foreign(content) => Part::text(NOT_TOLD),
        part => part.clone(),
    };
    let message = |message: &Message| match message.role {
        Role::Tool => Message { role: message.role, parts: message.parts.iter().map(in_words).collect() },
        Role::System | Role::User | Role::Assistant => message.clone(),
    };
    conversation.iter().map(message).collect()
}

const NOT_TOLD: &str = "(something that is not text, and that cannot be shown here)";
