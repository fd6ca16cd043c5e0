//! `gembridge run`: one turn, in the format that was asked for.

use std::io::IsTerminal as _;

use gembridge_core::model::{Event, Outcome};
use gembridge_unified::{Context as UnifiedContext, Init, Originals};

use super::bridge::Bridge;
use super::input::Input;
use super::output::{JsonOutput, PipeOutput, StreamOutput, TerminalOutput, TurnOutput};
use super::turn::{Answers, Conversation, Turned};
use crate::cli::args::OutputFormat;
use crate::command::Context;
use crate::command::run::{Author, RunRequest};
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::render::style::Style;
use crate::terminal::{Terminal, escape, write_stderr};

pub async fn run(bridge: &Bridge, request: &RunRequest, context: &Context) -> CommandResult {
    let mut output = output(bridge, request, context.terminal)?;
    // A prompt that came through a pipe leaves nobody to ask.
    let is_attended = request.session.author == Author::Person
        && std::io::stdin().is_terminal()
        && context.terminal.stderr.is_terminal;
    let input = if is_attended { Input::plain().map_err(anyhow::Error::from)? } else { Input::none() };
    let answers = Answers::by(request.session.permissions, is_attended);
    let title = &bridge.agent.profile.title;
    let mut conversation = Conversation::join(&bridge.session, bridge.logs(), answers, input, title).await?;
    match conversation.turn(&request.prompt, output.as_mut()).await? {
        Turned::Left => Ok(ExitCode::Cancelled),
        Turned::Ended(Outcome::Interrupted(failure)) => {
            if context.terminal.stderr.is_terminal {
                last_words(failure.stderr_tail.as_deref().unwrap_or_default(), Style::of(context.terminal.stderr));
            }
            Err(failure.into())
        }
        Turned::Ended(outcome) => Ok(ExitCode::of_outcome(&outcome)),
    }
}

fn output(bridge: &Bridge, request: &RunRequest, terminal: Terminal) -> Result<Box<dyn TurnOutput>, CommandError> {
    let session_id = bridge.session.id().to_string();
    let agent = bridge.agent.profile.name.clone();
    let model = request.session.model.as_deref().map(str::to_owned);
    let unified = UnifiedContext {
        session_id: session_id.clone(),
        agent: agent.clone(),
        model: model.clone(),
        originals: Originals::Leave,
    };
    Ok(match request.output {
        OutputFormat::Text if terminal.stdout.is_terminal => Box::new(WithoutFailure(TerminalOutput::new(terminal))),
        OutputFormat::Text => Box::<PipeOutput>::default(),
        OutputFormat::Json => Box::new(JsonOutput::new(unified)),
        OutputFormat::StreamJson => {
            let mode = request.session.mode.as_deref().map(str::to_owned);
            let init = Init { session_id, agent, model, mode, cwd: bridge.workspace.clone() };
            Box::new(StreamOutput::begin(unified, init).map_err(anyhow::Error::from)?)
        }
    })
}

/// A failure of the only turn is the failure of the command, told once on standard error.
struct WithoutFailure(TerminalOutput);

impl TurnOutput for WithoutFailure {
    fn entry(&mut self, entry: &gembridge_core::log::LogEntry) -> std::io::Result<()> {
        match &entry.event {
            Event::Ended(Outcome::Interrupted(_)) => {
                let quiet_end = Event::Ended(Outcome::Finished(gembridge_core::model::Stop::EndTurn));
                self.0.entry(&gembridge_core::log::LogEntry { event: quiet_end, ..entry.clone() })
            }
            _ => self.0.entry(entry),
        }
    }

    fn waiting(&mut self, what: &str, waited: std::time::Duration) {
        self.0.waiting(what, waited);
    }

    fn question(&mut self, ask: &gembridge_core::model::Ask) {
        self.0.question(ask);
    }
}

/// The end of what the agent wrote to its standard error.
fn last_words(tail: &str, style: Style) {
    let lines: Vec<_> = tail.lines().collect();
    for line in &lines[lines.len().saturating_sub(8)..] {
        write_stderr(&format!("{}\n", style.dim(&format!("  {}", escape::line(line)))));
    }
}
