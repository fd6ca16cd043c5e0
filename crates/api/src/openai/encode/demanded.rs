//! An answer that its client insists to have in a certain form: nothing of it goes out before it is known to have it.

use gembridge_core::model::Opaque;
use gembridge_core::session::demand::{Delivered, Demand, Judge, Verdict};

/// What an agent said in a turn, kept until somebody decided about it.
pub(super) struct Demanded {
    judge: Judge,
    text: String,
    output: Option<Opaque>,
}

impl Demanded {
    /// `None`: everything goes out as it comes.
    pub(super) fn new(demand: Demand) -> Option<Self> {
        match demand {
            Demand::Nothing => None,
            Demand::Call | Demand::Output(_) => {
                Some(Self { judge: Judge::new(demand), text: String::new(), output: None })
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
        match self.judge.demand() {
            Demand::Output(_) => String::new(),
            Demand::Call | Demand::Nothing => self.take_text(),
        }
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The agent ended its turn. Another one begins with nothing said.
    pub(super) fn judge(&mut self) -> Verdict {
        let output = self.output.take();
        // A call that reaches the client ends the answer before its turn ends: those of before went back or were taken
        // back, and are none.
        let delivered = Delivered { text: &self.text, output: output.as_ref(), called: false, refused: false };
        let verdict = self.judge.judge(delivered);
        if matches!(verdict, Verdict::Again(_)) {
            self.text.clear();
        }
        verdict
    }

    pub(super) fn unmet(&self) -> Unmet {
        match self.judge.demand() {
            Demand::Output(_) => Unmet::Output,
            Demand::Call | Demand::Nothing => Unmet::Call,
        }
    }
}

/// What an answer is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::openai) enum Unmet {
    Call,
    Output,
}
