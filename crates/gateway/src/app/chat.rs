//! `gembridge chat`: turn after turn, until the person leaves.

use std::io::IsTerminal as _;
use std::time::Instant;

use super::bridge::{Bridge, core_error};
use super::input::{Input, Typed};
use super::interrupt::Interrupts;
use super::line_editor::{Commands, LineEditor};
use super::output::TerminalOutput;
use super::turn::{Answers, Conversation, Turned};
use crate::agents::Chosen;
use crate::command::Context;
use crate::command::run::SessionRequest;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::render::spinner;
use crate::render::style::Style;
use crate::terminal::{self, escape, write_stderr};

/// Said instead of a prompt, these end the chat.
const PARTING: [&str; 2] = ["/exit", "/quit"];

pub async fn chat(bridge: &Bridge, request: &SessionRequest, context: &Context) -> CommandResult {
    let is_attended = std::io::stdin().is_terminal();
    let style = Style::of(context.terminal.stdout);
    if is_attended {
        greet(bridge, style)?;
    }
    if wake(bridge, context).await? == Woken::NotWanted {
        return Ok(ExitCode::Cancelled);
    }
    let mut output = TerminalOutput::new(context.terminal);
    let answers = Answers::by(request.permissions, is_attended);
    let commands = Commands::default();
    let input = input(is_attended, style, &commands, context)?;
    let mut conversation =
        Conversation::join(&bridge.session, bridge.logs(), answers, input, &bridge.agent.profile.title).await?;
    loop {
        commands.replace(completed(bridge).await);
        let line = match conversation.prompt(if is_attended { "> " } else { "" }).await {
            Typed::Line(line) if PARTING.contains(&line.trim()) => break,
            Typed::Line(line) if line.trim().is_empty() => continue,
            Typed::Line(line) => line,
            Typed::Interrupted => {
                terminal::print(&format!("{}\n", style.dim("Ctrl-D or /exit leaves")))?;
                continue;
            }
            Typed::End => break,
        };
        match conversation.turn(&line, &mut output).await? {
            Turned::Ended(_) => {}
            Turned::Left => return Ok(ExitCode::Cancelled),
        }
    }
    if is_attended {
        terminal::print("\n")?;
    }
    Ok(ExitCode::Success)
}

/// A terminal gets a line editor; a pipe, and a terminal whose output goes elsewhere, is read as it comes.
fn input(is_attended: bool, style: Style, commands: &Commands, context: &Context) -> Result<Input, CommandError> {
    let input = if is_attended && context.terminal.stdout.is_terminal {
        let history = context.config.folders.state.join("chat_history");
        let editor = LineEditor::new(history, commands.clone(), style).map_err(anyhow::Error::from)?;
        Input::edited(editor)
    } else {
        Input::plain()
    };
    Ok(input.map_err(anyhow::Error::from)?)
}

/// What can be typed after a slash: our own words, and the commands that the agent has told of.
async fn completed(bridge: &Bridge) -> Vec<String> {
    let of_agent = match bridge.session.describe().await {
        Ok(described) => described.facts.commands.iter().map(|command| format!("/{}", command.name)).collect(),
        Err(_) => Vec::new(),
    };
    PARTING.iter().map(ToString::to_string).chain(of_agent).collect()
}

fn greet(bridge: &Bridge, style: Style) -> Result<(), CommandError> {
    let title = &bridge.agent.profile.title;
    let place = match &bridge.workspace {
        Some(folder) => format!("works in {}", escape::line(&folder.to_string_lossy())),
        None => "chats in an empty folder, without tools".to_owned(),
    };
    let demo = match &bridge.agent.chosen {
        Chosen::BuiltIn(lacking) => {
            let (problem, way_out) = (lacking.problem(), lacking.way_out());
            format!("{problem}: this is the built-in demo; type `help` for what it can show\n{way_out}\n")
        }
        Chosen::Named | Chosen::First => String::new(),
    };
    terminal::print(&format!(
        "{} {}\n{demo}{}\n",
        style.bold(title),
        style.dim(&place),
        style.dim("Ctrl-C cancels a turn, Ctrl-D leaves")
    ))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Awake,
    /// The person did not want to wait.
    NotWanted,
}

/// Starts the agent while the person reads the greeting, so that the first prompt need not wait for it.
async fn wake(bridge: &Bridge, context: &Context) -> Result<Woken, CommandError> {
    let mut interrupts = Interrupts::new().map_err(anyhow::Error::from)?;
    let mut tick = tokio::time::interval(spinner::PERIOD);
    let began = Instant::now();
    let has_spinner = context.terminal.stderr.is_terminal;
    let what = format!("starting {}", bridge.agent.profile.title);
    let waking = bridge.session.wake();
    tokio::pin!(waking);
    let woken = loop {
        tokio::select! {
            woken = &mut waking => break woken.map(|_| Woken::Awake).map_err(core_error),
            _ = interrupts.next() => break Ok(Woken::NotWanted),
            _ = tick.tick(), if has_spinner => write_stderr(&spinner::frame(&what, began.elapsed())),
        }
    };
    if has_spinner {
        write_stderr(spinner::CLEAR);
    }
    woken
}
