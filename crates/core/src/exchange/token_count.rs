//! The tokens of answers: thoughts are part of the output, cached ones part of the input.

use super::token_estimate as estimate;
use crate::model::{Content, Usage};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// With `cached`.
    pub input: u64,
    /// With `reasoning`.
    pub output: u64,
    pub cached: u64,
    pub reasoning: u64,
}

impl TokenCount {
    pub fn total(&self) -> u64 {
        self.input + self.output
    }

    fn add_output(&mut self, other: &Self) {
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}

/// The tokens of all answers of a request. They answer the same prompt, which counts once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenTally {
    sum: Option<TokenCount>,
}

impl TokenTally {
    /// Adds one answer; one that never began adds nothing.
    pub(super) fn add(&mut self, one: TokenCount) {
        if one == TokenCount::default() {
            return;
        }
        let sum = self.sum.get_or_insert_default();
        if one.input > sum.input {
            sum.input = one.input;
            sum.cached = one.cached;
        }
        sum.add_output(&one);
    }

    pub(super) fn sum(&self) -> Option<TokenCount> {
        self.sum
    }
}

/// The tokens of one answer, which may take several turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerTokens {
    /// In turns that are over.
    before: TokenCount,
    /// In this turn, as the agent says.
    told: Usage,
    /// In this turn, by our own measure.
    counted: Counted,
}

/// In quarters of a token.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    prompt: u64,
    text: u64,
    thought: u64,
}

impl AnswerTokens {
    /// What the agent was sent.
    pub(super) fn prompt(&mut self, content: &[Content]) {
        let texts = content.iter().filter_map(|block| match block {
            Content::Text(text) | Content::Document { text, .. } => Some(text),
            _ => None,
        });
        self.counted.prompt += texts.map(|text| estimate::of_text(&text.to_str())).sum::<u64>();
    }

    pub(super) fn text(&mut self, text: &str) {
        self.counted.text += estimate::of_text(text);
    }

    pub(super) fn thought(&mut self, text: &str) {
        self.counted.thought += estimate::of_text(text);
    }

    pub(super) fn told(&mut self, usage: &Usage) {
        self.told.merge(usage);
    }

    /// Whether anything of the answer is out in this turn.
    pub(super) fn has_output(&self) -> bool {
        self.counted.text > 0 || self.counted.thought > 0
    }

    /// The answer goes on in another turn.
    pub(super) fn begin_turn(&mut self) {
        *self = Self { before: self.sum(), ..Self::default() };
    }

    /// The agent's word counts. Not every agent has one, none has it before its turn is over, and some say that it
    /// was nothing where they failed to count.
    pub(super) fn sum(&self) -> TokenCount {
        let told = of_turn(&self.told);
        let turn = if told.total() == 0 { self.counted.in_tokens() } else { told };
        let mut sum = self.before;
        sum.input += turn.input;
        sum.cached += turn.cached;
        sum.add_output(&turn);
        sum
    }
}

impl Counted {
    fn in_tokens(self) -> TokenCount {
        TokenCount {
            input: estimate::tokens(self.prompt),
            output: estimate::tokens(self.text + self.thought),
            cached: 0,
            reasoning: estimate::tokens(self.thought),
        }
    }
}

/// Agents differ in whether thoughts are part of the output, and cached tokens part of the input. Where the agent
/// gives a total, that tells; without one both count as apart from the other, unless that cannot be.
fn of_turn(usage: &Usage) -> TokenCount {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let (thought, cached) = (usage.thought.unwrap_or(0), usage.cached_read.unwrap_or(0));
    let thoughts_inside = thought <= output && usage.total == Some(input + output);
    let output = if thoughts_inside { output } else { output + thought };
    let cached_apart = cached > input || usage.total == Some(input + cached + output);
    let input = if cached_apart { input + cached } else { input };
    TokenCount { input, output, cached, reasoning: thought }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(usage: Usage) -> (u64, u64, u64) {
        let usage = of_turn(&usage);
        (usage.input, usage.output, usage.total())
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
    fn the_agents_word_counts_and_else_our_own() {
        let mut spent = AnswerTokens::default();
        spent.prompt(&[Content::text("twelve chars"), Content::text("日")]);
        spent.thought("so so");
        spent.text("four");
        let ours = spent.sum();
        assert_eq!((ours.input, ours.output, ours.total()), (4, 3, 7));
        assert_eq!(ours.reasoning, 2);
        spent.told(&Usage { input: Some(10), output: Some(5), ..Usage::default() });
        let theirs = spent.sum();
        assert_eq!((theirs.input, theirs.output, theirs.total()), (10, 5, 15));
        // Another turn of the same answer costs as well.
        spent.begin_turn();
        spent.prompt(&[Content::text("again")]);
        spent.text("four");
        let both = spent.sum();
        assert_eq!((both.input, both.output, both.total()), (12, 6, 18));
    }

    #[test]
    fn a_report_of_nothing_but_zeros_is_no_word() {
        let mut spent = AnswerTokens::default();
        spent.prompt(&[Content::text("eight ch")]);
        spent.text("four");
        let ours = spent.sum();
        assert_eq!((ours.input, ours.output, ours.total()), (2, 1, 3));
        let zeros = Usage { input: Some(0), output: Some(0), thought: Some(0), ..Usage::default() };
        spent.told(&Usage { total: Some(0), cached_read: Some(0), ..zeros });
        assert_eq!(spent.sum(), ours);
        spent.told(&Usage { input: Some(7), ..Usage::default() });
        assert_eq!(spent.sum().total(), 7, "what it counted counts");
    }

    #[test]
    fn the_prompt_of_several_answers_counts_once() {
        let mut spent = AnswerTokens::default();
        spent.prompt(&[Content::text("eight ch")]);
        spent.text("four");
        let mut tally = TokenTally::default();
        tally.add(TokenCount::default());
        assert_eq!(tally.sum(), None, "it never began");
        tally.add(spent.sum());
        tally.add(spent.sum());
        let sum = tally.sum().unwrap();
        assert_eq!((sum.input, sum.output, sum.total()), (2, 2, 4));
    }
}
