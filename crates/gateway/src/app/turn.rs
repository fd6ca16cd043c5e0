//! One turn from prompt to end: entries are shown, questions answered, Ctrl-C obeyed.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Instant;

use gembridge_core::log::{Backpressure, Batch, From};
use gembridge_core::model::{Answer, Ask, AskBody, ClientId, Event, Outcome, Prompt, TurnId};
use gembridge_core::session::{Joined, Presence, SessionHandle, SessionReader};
use gembridge_core::store::Logs;

use super::bridge::core_error;
use super::input::{Input, Typed};
use super::interrupt::{Interrupt, Interrupts};
use super::output::TurnOutput;
use crate::command::run::Permissions;
use crate::exit::CommandError;
use crate::render::{ask, spinner};
use crate::terminal::write_stderr;

/// There is one client in this process.
const THIS_CLIENT: ClientId = ClientId(1);

/// Who answers the agent's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The person at the keyboard.
    Person,
    /// The person's flag said yes to all of them.
    Allow,
    /// Nobody is there.
    Nobody,
}

/// How a turn came to its end.
pub enum Turned {
    Ended(Outcome),
    /// The person wants to leave, and did not wait for the end.
    Left,
}

/// A session with this process as its client.
pub struct Conversation<'a> {
    session: &'a SessionHandle,
    reader: SessionReader,
    answers: Answers,
    /// Held where this process answers the agent's questions, so that they wait for it.
    _presence: Option<Presence>,
    input: Input,
    interrupts: Interrupts,
    /// What the wait is for, as the spinner says it.
    waiting_for: String,
}

impl<'a> Conversation<'a> {
    pub async fn join(
        session: &'a SessionHandle,
        logs: Arc<dyn Logs>,
        answers: Answers,
        input: Input,
        agent: &str,
    ) -> Result<Self, CommandError> {
        let interrupts = Interrupts::new().map_err(anyhow::Error::from)?;
        let joined = session.join(From::Now, Backpressure::HoldAgent).await.map_err(core_error)?;
        let Joined { attachment, presence, .. } = joined;
        let presence = (answers != Answers::Nobody).then_some(presence);
        let waiting_for = format!("waiting for {agent}");
        // What stands still for longer than the session waits comes back and reads on.
        let reader = SessionReader::new(session.clone(), attachment, logs).holding_the_agent();
        Ok(Self { session, reader, answers, _presence: presence, input, interrupts, waiting_for })
    }

    pub async fn turn(&mut self, prompt: &str, output: &mut dyn TurnOutput) -> Result<Turned, CommandError> {
        let accepted = self.session.prompt(Prompt::text(prompt), THIS_CLIENT).await.map_err(core_error)?;
        let mut shown = Shown { began: Instant::now(), has_answer: false };
        let mut is_cancelled = false;
        let mut tick = tokio::time::interval(spinner::PERIOD);
        loop {
            tokio::select! {
                batch = self.reader.next() => {
                    let batch = batch.map_err(core_error)?;
                    if let Some(turned) = self.show(&batch, accepted.turn, output, &mut shown).await? {
                        return Ok(turned);
                    }
                }
                interrupt = self.interrupts.next() => {
                    if is_cancelled || interrupt == Interrupt::Leave {
                        return Ok(Turned::Left);
                    }
                    is_cancelled = true;
                    self.session.cancel_turn(accepted.turn).await.map_err(core_error)?;
                }
                _ = tick.tick(), if !shown.has_answer => output.waiting(&self.waiting_for, shown.began.elapsed()),
            }
        }
    }

    /// What the person types between turns.
    pub async fn prompt(&mut self, prompt: &str) -> Typed {
        tokio::select! {
            typed = self.input.prompt(prompt) => typed,
            interrupt = self.interrupts.next() => match interrupt {
                Interrupt::CtrlC => Typed::Interrupted,
                Interrupt::Leave => Typed::End,
            },
        }
    }

    async fn show(
        &mut self,
        batch: &Batch,
        turn: TurnId,
        output: &mut dyn TurnOutput,
        shown: &mut Shown,
    ) -> Result<Option<Turned>, CommandError> {
        for entry in batch.iter().filter(|entry| entry.turn.is_none() || entry.turn == Some(turn)) {
            match output.entry(entry) {
                Ok(()) => {}
                // A reader that went away early (`| head`) has seen what it wanted.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Some(Turned::Left)),
                Err(error) => return Err(anyhow::anyhow!("cannot write to standard output: {error}").into()),
            }
            match &entry.event {
                Event::Asked(ask) => {
                    shown.has_answer = true;
                    if let Some(left) = self.answer(ask, output).await? {
                        return Ok(Some(left));
                    }
                }
                Event::Ended(outcome) => return Ok(Some(Turned::Ended(outcome.clone()))),
                Event::Text(_) | Event::Thought(_) | Event::Content(_) | Event::ToolCall(_) | Event::Plan(_) => {
                    shown.has_answer = true;
                }
                // What an agent reports of itself is no answer yet.
                _ => {}
            }
        }
        Ok(None)
    }

    async fn answer(&mut self, asked: &Ask, output: &mut dyn TurnOutput) -> Result<Option<Turned>, CommandError> {
        let answer = match self.answers {
            Answers::Allow => asked.allow_once().unwrap_or_else(|| asked.reject()),
            Answers::Nobody => asked.reject(),
            Answers::Person => {
                forget_typed_ahead();
                output.question(asked);
                tokio::select! {
                    answer = by_hand(asked, &mut self.input, output) => answer,
                    interrupt = self.interrupts.next() => match interrupt {
                        Interrupt::Leave => return Ok(Some(Turned::Left)),
                        Interrupt::CtrlC => {
                            write_stderr("\n");
                            self.session.cancel().await.map_err(core_error)?;
                            return Ok(None);
                        }
                    },
                }
            }
        };
        match self.session.answer(asked.id, answer, THIS_CLIENT).await {
            // Somebody, or a clock, was faster.
            Ok(()) | Err(gembridge_core::error::Error::NotAsked) => Ok(None),
            Err(error) => Err(core_error(error)),
        }
    }
}

/// What was typed before a question came was not meant for it.
fn forget_typed_ahead() {
    let stdin = std::io::stdin();
    if stdin.is_terminal()
        && let Err(error) = rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush)
    {
        tracing::debug!(%error, "what was typed ahead is kept");
    }
}

struct Shown {
    began: Instant,
    has_answer: bool,
}

/// Asks until the answer is one; the end of the input says no.
async fn by_hand(asked: &Ask, input: &mut Input, output: &mut dyn TurnOutput) -> Answer {
    loop {
        let Typed::Line(typed) = input.line().await else { return asked.reject() };
        if let Some(answer) = ask::answer(asked, &typed) {
            return answer;
        }
        if let AskBody::Permission { .. } = asked.body {
            output.question(asked);
        }
    }
}

impl Answers {
    /// By what was allowed, and by whether somebody sits at the keyboard.
    pub fn by(permissions: Permissions, is_attended: bool) -> Self {
        match permissions {
            Permissions::Allow => Self::Allow,
            Permissions::Ask | Permissions::AllowHarmless if is_attended => Self::Person,
            Permissions::Ask | Permissions::AllowHarmless | Permissions::Deny => Self::Nobody,
        }
    }
}
