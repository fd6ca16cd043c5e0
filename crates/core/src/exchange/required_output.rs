//! What an answer must be beyond text: nothing of it goes out before it is known to be that, and an agent that gave something
//! else is asked again, a few times.

use std::sync::Arc;

use crate::model::{Opaque, Prompt};
use crate::tool_host::Format;

/// What a client insists on.
#[derive(Clone, Debug, Default)]
pub enum RequiredOutput {
    #[default]
    Nothing,
    /// The agent calls one of the tools that are offered.
    Call,
    /// The answer has this form.
    Output(Arc<dyn Format>),
}

impl RequiredOutput {
    /// What the agent is told beside the prompt, so that it need not be asked twice.
    pub fn instruction(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Call => Some("Answer this by calling one of the tools that are offered to you, not in prose.".into()),
            Self::Output(format) => Some(format.instruction()),
        }
    }
}

/// What an agent said in a turn, kept until it is decided whether that is the answer.
pub(super) struct HeldAnswer {
    required: Required,
    /// How often the agent may still be asked again.
    chances: usize,
    text: String,
    output: Option<Opaque>,
}

enum Required {
    Call,
    Output(Arc<dyn Format>),
}

/// What becomes of a turn that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This is the answer, whatever else was said.
    Output(Opaque),
    /// The agent gets another chance, with this prompt.
    Again(Prompt),
    /// It had its chances. The message says what is wrong and what the agent said.
    Failed(String),
}

/// What an answer is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    Call,
    Output,
}

/// A tool is called or it is not: saying it twice more does not help.
const CALL_CHANCES: usize = 1;
const OUTPUT_CHANCES: usize = 2;

impl HeldAnswer {
    /// `None`: everything goes out as it comes.
    pub(super) fn new(required: RequiredOutput) -> Option<Self> {
        let (required, chances) = match required {
            RequiredOutput::Nothing => return None,
            RequiredOutput::Call => (Required::Call, CALL_CHANCES),
            RequiredOutput::Output(format) => (Required::Output(format), OUTPUT_CHANCES),
        };
        Some(Self { required, chances, text: String::new(), output: None })
    }

    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The last one counts.
    pub(super) fn output(&mut self, output: &Opaque) {
        self.output = Some(output.clone());
    }

    /// What may stand beside a call: prose is no answer in a form.
    pub(super) fn beside_a_call(&mut self) -> String {
        match self.required {
            Required::Output(_) => String::new(),
            Required::Call => self.take_text(),
        }
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Decides about a turn that the agent ended by itself. Another one begins with nothing said.
    ///
    /// A call that reaches the client ends the answer before its turn ends, so there was none.
    pub(super) fn check(&mut self) -> Verdict {
        let (again, failed) = match &self.required {
            Required::Call => (
                "Your answer was not used: it calls no tool. Call one of the tools that are offered to you, with fitting \
                 arguments, and say nothing else."
                    .to_owned(),
                format!("the agent called no tool, and said: {}", brief(&self.text)),
            ),
            Required::Output(format) => {
                let wrong = match self.output.take().map_or_else(|| format.find_in(&self.text), Ok) {
                    Ok(output) => return Verdict::Output(output),
                    Err(wrong) => brief(&wrong),
                };
                let instruction = format.instruction();
                let said = brief(&self.text);
                (
                    format!("Your answer was not used: {wrong}. Give the whole answer again. {instruction}"),
                    format!("the answer does not have the form that was asked for: {wrong}; the agent said: {said}"),
                )
            }
        };
        let Some(left) = self.chances.checked_sub(1) else { return Verdict::Failed(failed) };
        self.chances = left;
        self.text.clear();
        Verdict::Again(Prompt::text(again))
    }

    pub(super) fn unmet(&self) -> Unmet {
        match self.required {
            Required::Output(_) => Unmet::Output,
            Required::Call => Unmet::Call,
        }
    }
}

/// As much of a text as an error message carries.
const BRIEF: usize = 2_000;

fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[derive(Debug)]
    struct Braces;

    impl Format for Braces {
        fn find_in(&self, text: &str) -> Result<Opaque, String> {
            if text.starts_with('{') { Ok(opaque(text)) } else { Err("no object in it".into()) }
        }

        fn instruction(&self) -> String {
            "Write an object.".into()
        }
    }

    fn opaque(text: &str) -> Opaque {
        Opaque(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// What becomes of turns in which the agent says these, one after another.
    fn verdicts(required: RequiredOutput, turns: &[&str]) -> Vec<Verdict> {
        let mut held = HeldAnswer::new(required).expect("something is required");
        let verdict = |said: &&str| {
            held.text(said);
            held.check()
        };
        turns.iter().map(verdict).collect()
    }

    fn braces() -> RequiredOutput {
        RequiredOutput::Output(Arc::new(Braces))
    }

    #[test]
    fn whoever_demands_nothing_takes_everything() {
        assert!(HeldAnswer::new(RequiredOutput::Nothing).is_none());
        assert_eq!(RequiredOutput::Nothing.instruction(), None);
    }

    #[test]
    fn prose_instead_of_a_call_gets_one_more_chance() {
        let [Verdict::Again(_), Verdict::Failed(message)] =
            &verdicts(RequiredOutput::Call, &["it is sunny", "still sunny"])[..]
        else {
            panic!("it has one chance")
        };
        assert!(message.ends_with("and said: still sunny"), "{message}");
    }

    #[test]
    fn the_last_output_wins_over_the_text_and_the_text_counts_without_one() {
        let output = opaque("{\"a\":1}");
        let mut held = HeldAnswer::new(braces()).expect("a form is required");
        held.text("{\"b\":2}");
        held.output(&opaque("{}"));
        held.output(&output);
        assert_eq!(held.check(), Verdict::Output(output));
        assert_eq!(verdicts(braces(), &["{\"b\":2}"]), [Verdict::Output(opaque("{\"b\":2}"))]);
    }

    #[test]
    fn an_answer_in_the_wrong_form_is_repaired_twice_with_the_validators_words() {
        let long = "x".repeat(10_000);
        let turns = verdicts(braces(), &["well", "well", &long]);
        for verdict in &turns[..2] {
            let Verdict::Again(prompt) = verdict else { panic!("there are chances left") };
            let prompt = prompt.plain_text();
            assert!(prompt.contains("no object in it") && prompt.ends_with("Write an object."), "{prompt}");
        }
        let Verdict::Failed(message) = &turns[2] else { panic!("no chance is left") };
        assert!(message.contains("no object in it") && message.len() < 5_000, "{message}");
    }
}
