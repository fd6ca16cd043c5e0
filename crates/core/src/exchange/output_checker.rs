//! What an answer must be beyond text, and what is done when it is not: the agent is asked again, a few times.

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

/// How a turn ended, as far as what is required is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// Everything that the agent said in the turn.
    pub text: &'a str,
    /// The last answer that it delivered in the form asked for.
    pub output: Option<&'a Opaque>,
    /// A tool of the client was called.
    pub called: bool,
    /// The agent said that it will not answer.
    pub refused: bool,
}

/// What becomes of a turn that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was asked for, or a refusal; either way it is the answer.
    Done,
    /// This is the answer, whatever else was said.
    Output(Opaque),
    /// The agent gets another chance, with this prompt.
    Again(Prompt),
    /// It had its chances. The message says what is wrong and what the agent said.
    Failed(String),
}

/// Checks the turns of one answer, one after another.
#[derive(Clone, Debug)]
pub struct OutputChecker {
    required: RequiredOutput,
    /// How often the agent may still be asked again.
    chances: usize,
}

/// A tool is called or it is not: saying it twice more does not help.
const CALL_CHANCES: usize = 1;
const OUTPUT_CHANCES: usize = 2;

impl OutputChecker {
    pub fn new(required: RequiredOutput) -> Self {
        let chances = match required {
            RequiredOutput::Nothing => 0,
            RequiredOutput::Call => CALL_CHANCES,
            RequiredOutput::Output(_) => OUTPUT_CHANCES,
        };
        Self { required, chances }
    }

    pub fn required(&self) -> &RequiredOutput {
        &self.required
    }

    /// Decides about a turn that the agent ended by itself.
    pub fn check(&mut self, delivered: Delivered<'_>) -> Verdict {
        if delivered.refused {
            return Verdict::Done;
        }
        match &self.required {
            RequiredOutput::Nothing => Verdict::Done,
            RequiredOutput::Call if delivered.called => Verdict::Done,
            RequiredOutput::Call => {
                let again = "Your answer was not used: it calls no tool. Call one of the tools that are offered to \
                             you, with fitting arguments, and say nothing else.";
                self.again_or(again.to_owned(), || {
                    format!("the agent called no tool, and said: {}", brief(delivered.text))
                })
            }
            RequiredOutput::Output(format) => {
                if let Some(output) = delivered.output {
                    return Verdict::Output(output.clone());
                }
                match format.find_in(delivered.text) {
                    Ok(output) => Verdict::Output(output),
                    Err(wrong) => {
                        let again = format!(
                            "Your answer was not used: {}. Give the whole answer again. {}",
                            brief(&wrong),
                            format.instruction()
                        );
                        self.again_or(again, || {
                            format!(
                                "the answer does not have the form that was asked for: {}; the agent said: {}",
                                brief(&wrong),
                                brief(delivered.text)
                            )
                        })
                    }
                }
            }
        }
    }

    fn again_or(&mut self, again: String, failed: impl FnOnce() -> String) -> Verdict {
        match self.chances.checked_sub(1) {
            Some(left) => {
                self.chances = left;
                Verdict::Again(Prompt::text(again))
            }
            None => Verdict::Failed(failed()),
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

    fn said(text: &str) -> Delivered<'_> {
        Delivered { text, output: None, called: false, refused: false }
    }

    #[test]
    fn whoever_demands_nothing_takes_everything() {
        let mut checker = OutputChecker::new(RequiredOutput::Nothing);
        assert_eq!(checker.check(said("")), Verdict::Done);
        assert_eq!(checker.required().instruction(), None);
    }

    #[test]
    fn prose_instead_of_a_call_gets_one_more_chance() {
        let mut checker = OutputChecker::new(RequiredOutput::Call);
        assert!(matches!(checker.check(said("it is sunny")), Verdict::Again(_)));
        let Verdict::Failed(message) = checker.check(said("still sunny")) else { panic!("it had its chance") };
        assert!(message.ends_with("and said: still sunny"), "{message}");
        assert_eq!(
            OutputChecker::new(RequiredOutput::Call).check(Delivered { called: true, ..said("") }),
            Verdict::Done
        );
    }

    #[test]
    fn the_last_output_wins_over_the_text_and_the_text_counts_without_one() {
        let mut checker = OutputChecker::new(RequiredOutput::Output(Arc::new(Braces)));
        let output = opaque("{\"a\":1}");
        let both = Delivered { output: Some(&output), ..said("{\"b\":2}") };
        assert_eq!(checker.check(both), Verdict::Output(output.clone()));
        assert_eq!(checker.check(said("{\"b\":2}")), Verdict::Output(opaque("{\"b\":2}")));
    }

    #[test]
    fn an_answer_in_the_wrong_form_is_repaired_twice_with_the_validators_words() {
        let mut checker = OutputChecker::new(RequiredOutput::Output(Arc::new(Braces)));
        for _ in 0..2 {
            let Verdict::Again(prompt) = checker.check(said("well")) else { panic!("there are chances left") };
            let prompt = prompt.plain_text();
            assert!(prompt.contains("no object in it") && prompt.ends_with("Write an object."), "{prompt}");
        }
        let long = "x".repeat(10_000);
        let Verdict::Failed(message) = checker.check(said(&long)) else { panic!("no chance is left") };
        assert!(message.contains("no object in it") && message.len() < 5_000, "{message}");
    }

    #[test]
    fn a_refusal_is_an_answer_whatever_was_demanded() {
        for required in [RequiredOutput::Call, RequiredOutput::Output(Arc::new(Braces))] {
            let refused = Delivered { refused: true, ..said("I will not") };
            assert_eq!(OutputChecker::new(required).check(refused), Verdict::Done);
        }
    }
}
