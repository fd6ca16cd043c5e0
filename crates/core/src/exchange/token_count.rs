//! The tokens of answers: thoughts are part of the output, cached ones part of the input.

use super::token_estimate as estimate;
use crate::model::{Content, Usage, UsageScope};

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

/// The tokens of one answer: the context of its last model call, and what was said in it. An answer may take several turns,
/// and a turn that waits for results of a client's tools has several answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerTokens {
    /// In turns of this answer that are over.
    before: TokenCount,
    /// In answers of this turn that are over, where there are any.
    earlier: Option<TokenCount>,
    /// In this turn, as the agent says.
    told: Usage,
    /// The whole context after a model call, where the agent says it.
    context: Option<u64>,
    /// In this turn, by our own measure.
    counted: Counted,
    work: Work,
}

/// Whether the model may have been called more than once for this answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Work {
    #[default]
    OneCall,
    WithTools,
}

/// In quarters of a token.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    prompt: u64,
    text: u64,
    thought: u64,
}

impl AnswerTokens {
    /// Of an answer to a request of about so many quarters of a token.
    pub(super) fn to(request: u64) -> Self {
        Self { counted: Counted { prompt: request, ..Counted::default() }, ..Self::default() }
    }

    /// The turn had answers before this one, which took so many.
    pub(super) fn go_on_from(&mut self, earlier: TokenCount) {
        self.earlier = Some(earlier);
    }

    /// All answers of this turn up to here, for the next one.
    pub(super) fn of_turn(&self) -> TokenCount {
        let mut sum = self.sum();
        if let Some(earlier) = self.earlier {
            sum.input += earlier.input;
            sum.add_output(&earlier);
        }
        sum
    }

    pub(super) fn text(&mut self, text: &str) {
        self.counted.text += estimate::of_text(text);
    }

    pub(super) fn thought(&mut self, text: &str) {
        self.counted.thought += estimate::of_text(text);
    }

    /// The agent used a tool of its own: it calls its model again with what came of it.
    pub(super) fn tool(&mut self) {
        self.work = Work::WithTools;
    }

    pub(super) fn told(&mut self, usage: &Usage) {
        self.told.merge(usage);
    }

    pub(super) fn context(&mut self, used: u64) {
        self.context = Some(used);
    }

    /// Whether anything of the answer is out in this turn.
    pub(super) fn has_output(&self) -> bool {
        self.counted.text > 0 || self.counted.thought > 0
    }

    /// The answer goes on in another turn, with these words of ours.
    pub(super) fn begin_turn(&mut self, prompt: &[Content]) {
        let texts = prompt.iter().filter_map(|block| match block {
            Content::Text(text) | Content::Document { text, .. } => Some(estimate::of_text(&text.to_str())),
            _ => None,
        });
        let prompt = self.counted.prompt + self.counted.text + texts.sum::<u64>();
        *self = Self { before: self.sum(), ..Self::to(prompt) };
    }

    /// The agent's word counts. Not every agent has one, few have it before the turn is over, and some say that it was
    /// nothing where they failed to count.
    pub(super) fn sum(&self) -> TokenCount {
        let turn = self.in_turn();
        // The newest context holds those before it.
        let mut sum = TokenCount { input: turn.input, cached: turn.cached, ..self.before };
        sum.add_output(&turn);
        sum
    }

    fn in_turn(&self) -> TokenCount {
        let own = self.counted.in_tokens();
        let told = of_report(&self.told);
        let by_context = self.context.map(|used| used.saturating_sub(own.output));
        if told.total() == 0 {
            return TokenCount { input: by_context.unwrap_or(own.input), ..own };
        }
        match (self.told.scope, &self.earlier) {
            (UsageScope::Call, _) => told,
            (UsageScope::Turn, None) => match by_context.filter(|_| self.work == Work::WithTools) {
                Some(input) => TokenCount { input, cached: told.cached.min(input), ..told },
                None => told,
            },
            // The report has the contexts of all calls of the turn: this answer's share is what is new in it.
            (UsageScope::Turn, Some(earlier)) => {
                let of_input = |all: u64| share(all, own.input, own.input + earlier.input);
                let of_output = |all: u64| share(all, own.output, own.output + earlier.output);
                let input = by_context.unwrap_or_else(|| of_input(told.input));
                TokenCount {
                    input,
                    output: of_output(told.output),
                    cached: of_input(told.cached).min(input),
                    reasoning: of_output(told.reasoning),
                }
            }
        }
    }
}

/// The share that a part of a whole has in something else, to the nearest.
fn share(all: u64, part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    let share = (u128::from(all) * u128::from(part) + whole / 2) / whole;
    u64::try_from(share).unwrap_or(all)
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
fn of_report(usage: &Usage) -> TokenCount {
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
        let usage = of_report(&usage);
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
        let mut spent = AnswerTokens::to(16);
        spent.thought("so so");
        spent.text("four");
        let ours = spent.sum();
        assert_eq!((ours.input, ours.output, ours.total()), (4, 3, 7));
        assert_eq!(ours.reasoning, 2);
        spent.told(&Usage { input: Some(10), output: Some(5), ..Usage::default() });
        let theirs = spent.sum();
        assert_eq!((theirs.input, theirs.output, theirs.total()), (10, 5, 15));
        // Another turn of the same answer says more, and its context holds the one before.
        spent.begin_turn(&[Content::text("again")]);
        spent.text("four");
        let both = spent.sum();
        assert_eq!((both.input, both.output, both.total()), (7, 6, 13));
    }

    #[test]
    fn a_report_of_nothing_but_zeros_is_no_word() {
        let mut spent = AnswerTokens::to(8);
        spent.text("four");
        let ours = spent.sum();
        assert_eq!((ours.input, ours.output, ours.total()), (2, 1, 3));
        let zeros = Usage { input: Some(0), output: Some(0), thought: Some(0), ..Usage::default() };
        spent.told(&Usage { total: Some(0), cached_read: Some(0), ..zeros });
        assert_eq!(spent.sum(), ours);
        spent.told(&Usage { input: Some(7), ..Usage::default() });
        assert_eq!(spent.sum().total(), 7, "what it counted counts");
    }

    /// Four answers of one turn whose requests have about 1 000 tokens each, as a client sees them.
    fn loop_of_four(last: impl FnOnce(&mut AnswerTokens)) -> Vec<TokenCount> {
        let mut earlier = None;
        let mut last = Some(last);
        let answers = [1_001, 1_003, 1_005, 1_007].into_iter().enumerate().map(|(number, request)| {
            let mut spent = AnswerTokens::to(request * estimate::TOKEN);
            if let Some(earlier) = earlier {
                spent.go_on_from(earlier);
            }
            spent.text("a call of 20 letters");
            if number == 3
                && let Some(last) = last.take()
            {
                last(&mut spent);
            }
            earlier = Some(spent.of_turn());
            spent.sum()
        });
        answers.collect()
    }

    #[test]
    fn each_answer_of_a_tool_loop_tells_the_context_of_its_own_call() {
        let inputs = |answers: &[TokenCount]| answers.iter().map(|one| one.input).collect::<Vec<_>>();
        let outputs = |answers: &[TokenCount]| answers.iter().map(|one| one.output).sum::<u64>();
        let estimated = loop_of_four(|_| {});
        assert_eq!(inputs(&estimated), [1_001, 1_003, 1_005, 1_007]);
        assert_eq!(outputs(&estimated), 20);
        // An agent that reports the sum of all calls when its turn ends.
        let summed = Usage { input: Some(4_016), output: Some(20), ..Usage::default() };
        let told = loop_of_four(|spent| spent.told(&summed));
        assert_eq!(inputs(&told), [1_001, 1_003, 1_005, 1_007], "and never 4016");
        assert_eq!((inputs(&told).iter().sum::<u64>(), outputs(&told)), (4_016, 20), "nothing counts twice");
        // One that reports its last call.
        let last = Usage { input: Some(1_009), output: Some(6), scope: UsageScope::Call, ..Usage::default() };
        let told = loop_of_four(|spent| spent.told(&last));
        assert_eq!((told[3].input, told[3].output), (1_009, 6));
        // One that says how full the context is, its answer included.
        let told = loop_of_four(|spent| {
            spent.context(1_012);
            spent.told(&summed);
        });
        assert_eq!((told[3].input, told[3].output), (1_007, 5));
    }

    #[test]
    fn an_agent_that_used_its_own_tools_tells_its_context_and_not_the_sum_of_its_calls() {
        let mut spent = AnswerTokens::to(400);
        spent.tool();
        spent.text("four");
        spent.told(&Usage { input: Some(300), output: Some(9), cached_read: Some(250), ..Usage::default() });
        assert_eq!(spent.sum().input, 300, "where it says no more, it is all that is known");
        spent.context(121);
        let sum = spent.sum();
        assert_eq!((sum.input, sum.output, sum.cached), (120, 9, 120));
    }

    #[test]
    fn the_prompt_of_several_answers_counts_once() {
        let mut spent = AnswerTokens::to(8);
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
