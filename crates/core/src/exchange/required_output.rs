//! An answer that its client insists to have in a certain form: nothing of it goes out before it is known to have it.

use super::output_checker::{Delivered, OutputChecker, RequiredOutput, Verdict};
use crate::model::Opaque;

/// What an agent said in a turn, kept until somebody decided about it.
pub(super) struct HeldAnswer {
    checker: OutputChecker,
    text: String,
    output: Option<Opaque>,
}

impl HeldAnswer {
    /// `None`: everything goes out as it comes.
    pub(super) fn new(required: RequiredOutput) -> Option<Self> {
        match required {
            RequiredOutput::Nothing => None,
            RequiredOutput::Call | RequiredOutput::Output(_) => {
                Some(Self { checker: OutputChecker::new(required), text: String::new(), output: None })
            }
        }
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
        match self.checker.required() {
            RequiredOutput::Output(_) => String::new(),
            RequiredOutput::Call | RequiredOutput::Nothing => self.take_text(),
        }
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The agent ended its turn. Another one begins with nothing said.
    pub(super) fn check(&mut self) -> Verdict {
        let output = self.output.take();
        // A call that reaches the client ends the answer before its turn ends: those of before went back or were taken
        // back, and are none.
        let delivered = Delivered { text: &self.text, output: output.as_ref(), called: false, refused: false };
        let verdict = self.checker.check(delivered);
        if matches!(verdict, Verdict::Again(_)) {
            self.text.clear();
        }
        verdict
    }

    pub(super) fn unmet(&self) -> Unmet {
        match self.checker.required() {
            RequiredOutput::Output(_) => Unmet::Output,
            RequiredOutput::Call | RequiredOutput::Nothing => Unmet::Call,
        }
    }
}

/// What an answer is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    Call,
    Output,
}
