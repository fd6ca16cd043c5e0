//! Tokens as this dialect counts them: thoughts are part of the completion, cached ones part of the prompt.

use gembridge_core::model::Usage;

use crate::openai::wire;

/// The tokens of all answers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::openai) struct Tally {
    sum: Option<wire::Usage>,
}

impl Tally {
    /// Adds what one agent reported; one that reported nothing adds nothing.
    pub(in crate::openai) fn add(&mut self, usage: &Usage) {
        if usage.is_empty() {
            return;
        }
        let one = of_turn(usage);
        let sum = self.sum.get_or_insert(wire::Usage {
            prompt_tokens: 0,
            completion_tokens: 0,
            total_tokens: 0,
            prompt_tokens_details: wire::PromptTokens { cached_tokens: 0 },
            completion_tokens_details: wire::CompletionTokens { reasoning_tokens: 0 },
        });
        sum.prompt_tokens += one.prompt_tokens;
        sum.completion_tokens += one.completion_tokens;
        sum.total_tokens += one.total_tokens;
        sum.prompt_tokens_details.cached_tokens += one.prompt_tokens_details.cached_tokens;
        sum.completion_tokens_details.reasoning_tokens += one.completion_tokens_details.reasoning_tokens;
    }

    pub(in crate::openai) fn sum(&self) -> Option<wire::Usage> {
        self.sum
    }
}

/// Agents differ in whether thoughts are part of the output, and cached tokens part of the input. Where the agent
/// gives a total, that tells; without one both count as apart from the other, unless that cannot be.
fn of_turn(usage: &Usage) -> wire::Usage {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let (thought, cached) = (usage.thought.unwrap_or(0), usage.cached_read.unwrap_or(0));
    let thoughts_inside = thought <= output && usage.total == Some(input + output);
    let completion_tokens = if thoughts_inside { output } else { output + thought };
    let cached_apart = cached > input || usage.total == Some(input + cached + completion_tokens);
    let prompt_tokens = if cached_apart { input + cached } else { input };
    wire::Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        prompt_tokens_details: wire::PromptTokens { cached_tokens: cached },
        completion_tokens_details: wire::CompletionTokens { reasoning_tokens: thought },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(usage: Usage) -> (u64, u64, u64) {
        let usage = of_turn(&usage);
        (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    }

    #[test]
    fn a_completion_includes_its_thoughts_once() {
        let usage = Usage { input: Some(10), output: Some(5), thought: Some(3), ..Usage::default() };
        assert_eq!(tokens(usage), (10, 8, 18));
        assert_eq!(tokens(Usage { total: Some(18), ..usage }), (10, 8, 18));
        assert_eq!(tokens(Usage { total: Some(15), ..usage }), (10, 5, 15));
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt_once() {
        let usage = Usage { input: Some(10), output: Some(5), cached_read: Some(4), ..Usage::default() };
        assert_eq!(tokens(usage), (10, 5, 15));
        assert_eq!(tokens(Usage { total: Some(19), ..usage }), (14, 5, 19));
        assert_eq!(tokens(Usage { cached_read: Some(40), ..usage }), (50, 5, 55));
    }

    #[test]
    fn nothing_reported_is_no_usage() {
        let mut tally = Tally::default();
        tally.add(&Usage::default());
        assert_eq!(tally.sum(), None);
    }
}
