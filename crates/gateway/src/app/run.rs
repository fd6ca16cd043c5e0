//! `gembridge run`: one prompt in, one answer out.

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Ask, ClientId, Event, Failure, FailureKind, Outcome, Prompt, TurnId};
use gembridge_core::session::SessionHandle;
use gembridge_unified::{Context as UnifiedContext, Fold, Init, Line, Originals, Report};

use super::follow::{Follower, Happening};
use super::house::House;
use crate::cli::args::OutputFormat;
use crate::command::Context;
use crate::command::run::RunRequest;
use crate::config::settings::Policy;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::terminal::{self, escape};

/// The only client of its session.
const CLIENT: ClientId = ClientId(1);

pub async fn run(request: &RunRequest, context: &Context) -> CommandResult {
    let house = House::build(&request.session, context)?;
    if let Some(notice) = &house.notice {
        terminal::write_stderr(&format!("gembridge: {notice}\n"));
    }
    let done = turn(request, context, &house).await;
    house.close().await;
    done
}

async fn turn(request: &RunRequest, context: &Context, house: &House) -> CommandResult {
    let session = house.session(&request.session).await?;
    let mut follower = Follower::attach(&session).await?;
    let prompt = Prompt::text(request.prompt.clone());
    let accepted = session.prompt(prompt, CLIENT).await.map_err(|error| CommandError::from(error.into_failure()))?;
    let mut printer = Printer::new(request, context, house, &session)?;
    let outcome = follow(&mut follower, &session, accepted.turn, request.session.policy, &mut printer).await?;
    printer.finish()?;
    if let Outcome::Interrupted(failure) = &outcome {
        complain(failure, context);
    }
    Ok(ExitCode::of_outcome(&outcome))
}

/// Prints the turn as it comes, to its end.
async fn follow(
    follower: &mut Follower,
    session: &SessionHandle,
    turn: TurnId,
    policy: Policy,
    printer: &mut Printer,
) -> Result<Outcome, CommandError> {
    let mut asked_to_stop = false;
    loop {
        match follower.next().await {
            Happening::Entries(batch) => {
                for entry in batch.iter().filter(|entry| entry.turn.is_none_or(|of| of == turn)) {
                    printer.entry(entry)?;
                    match &entry.event {
                        Event::Asked(ask) => answer(session, ask, policy).await,
                        Event::Ended(outcome) => return Ok(outcome.clone()),
                        _ => {}
                    }
                }
            }
            Happening::Interrupted | Happening::Terminated if asked_to_stop => return Ok(Outcome::Cancelled),
            Happening::Interrupted | Happening::Terminated => {
                asked_to_stop = true;
                session.cancel().await.map_err(|error| CommandError::from(error.into_failure()))?;
            }
            Happening::Gone => {
                let error = session.describe().await.err();
                let failure = error.map_or_else(
                    || Failure::new(FailureKind::Internal, "the session's log ended before the turn did"),
                    gembridge_core::error::Error::into_failure,
                );
                return Ok(Outcome::Interrupted(failure));
            }
        }
    }
}

/// Nobody sits there to be asked: the answer is what the command line says.
async fn answer(session: &SessionHandle, ask: &Ask, policy: Policy) {
    let yes = (policy == Policy::Allow).then(|| ask.allow_once()).flatten();
    // A policy of the session may have answered it already.
    if let Err(error) = session.answer(ask.id, yes.unwrap_or_else(|| ask.reject()), CLIENT).await {
        tracing::debug!(%error, "a question was answered by somebody else");
    }
}

fn complain(failure: &Failure, context: &Context) {
    context.terminal.complain(&anyhow::Error::msg(failure.message.clone()));
    if let Some(tail) = &failure.stderr_tail {
        terminal::write_stderr(&format!("the agent's last words:\n{}\n", escape::text(tail)));
    }
}

/// The three ways of printing a turn.
enum Printer {
    Text { to_terminal: bool, ends_line: bool },
    Json { fold: Fold, lines: Vec<Line> },
    Stream { fold: Fold },
}

impl Printer {
    fn new(
        request: &RunRequest,
        context: &Context,
        house: &House,
        session: &SessionHandle,
    ) -> Result<Self, CommandError> {
        let owned = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let (session_id, agent) = (session.id().to_string(), house.agent.to_string());
        let (model, mode) = (owned(&request.session.model), owned(&request.session.mode));
        if request.output == OutputFormat::StreamJson {
            let cwd = request.session.workspace.clone();
            let init = Init { session_id: session_id.clone(), agent: agent.clone(), model: model.clone(), mode, cwd };
            print_json(&Line::from(init))?;
        }
        let fold = || Fold::new(UnifiedContext { session_id, agent, model, originals: Originals::Leave });
        Ok(match request.output {
            OutputFormat::Text => Self::Text { to_terminal: context.terminal.stdout.is_terminal, ends_line: true },
            OutputFormat::Json => Self::Json { fold: fold(), lines: Vec::new() },
            OutputFormat::StreamJson => Self::Stream { fold: fold() },
        })
    }

    fn entry(&mut self, entry: &LogEntry) -> Result<(), CommandError> {
        match self {
            Self::Text { to_terminal, ends_line } => {
                let Event::Text(text) = &entry.event else { return Ok(()) };
                let text = text.to_str();
                if !text.is_empty() {
                    *ends_line = text.ends_with('\n');
                }
                // What goes into a file or a pipe is the answer as it is.
                terminal::print(&if *to_terminal { escape::text(&text) } else { text })
            }
            Self::Json { fold, lines } => {
                lines.extend(fold.push(entry).into_iter().filter(|line| !matches!(line, Line::Delta(_))));
                Ok(())
            }
            Self::Stream { fold } => fold.push(entry).iter().try_for_each(print_json),
        }
    }

    fn finish(self) -> Result<(), CommandError> {
        match self {
            Self::Text { ends_line: true, .. } | Self::Stream { .. } => Ok(()),
            Self::Text { ends_line: false, .. } => terminal::print("\n"),
            Self::Json { lines, .. } => match Report::from_lines(lines) {
                Some(report) => print_json(&report),
                None => Ok(()),
            },
        }
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    let mut line = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
    line.push(b'\n');
    terminal::print(&String::from_utf8_lossy(&line))
}
