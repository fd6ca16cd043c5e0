//! `gembridge sessions resume`: goes on with a session of whichever agent.

use std::path::PathBuf;

use gembridge_transcripts::{Agent as Writer, Located};

use super::{scan, warn};
use crate::agents;
use crate::app::import::Import;
use crate::cli::args::sessions::ResumeArgs;
use crate::cli::args::{AgentArgs, OutputFormat};
use crate::command::Context;
use crate::command::run::{self, RunRequest, SessionRequest};
use crate::exit::{CommandError, CommandResult};

pub fn run(args: &ResumeArgs, context: &Context) -> CommandResult {
    let scan = scan(context)?;
    let session = scan.by_id(&args.id)?;
    if let Some(parent) = &session.parent {
        return Err(CommandError::usage(format!(
            "`{}` is the session of a subagent; go on with the one that started it: `gembridge sessions resume {parent}`",
            session.id
        )));
    }
    let author = run::author(args.prompt.as_deref().unwrap_or_default());
    let request = if session.agent == Writer::Gembridge {
        own(session, args, author, context)?
    } else {
        imported(session, args, author, context)?
    };
    let Some(prompt) = args.prompt.as_deref() else { return crate::app::chat(&request, context) };
    let output = if args.json { OutputFormat::Json } else { args.output_format };
    crate::app::run(&RunRequest { prompt: run::prompt(Some(prompt))?, session: request, output }, context)
}

/// A session of the gateway goes on with its own agent.
fn own(
    session: &Located,
    args: &ResumeArgs,
    author: run::Author,
    context: &Context,
) -> Result<SessionRequest, CommandError> {
    if args.agent.is_some() || args.chat {
        return Err(CommandError::usage(
            "a session of the gateway goes on with its own agent and folder; leave `--agent` and `--chat` out",
        ));
    }
    let id = session.id.parse().map_err(|_| CommandError::usage(format!("`{}` is not a session id", session.id)))?;
    // Replaced by the session's own agent when it is opened.
    let agent = agents::choose(&context.profiles, &context.config)?;
    run::session_with(agent, &AgentArgs { resume: Some(id), ..flags(args, None) }, author, context)
}

fn imported(
    session: &Located,
    args: &ResumeArgs,
    author: run::Author,
    context: &Context,
) -> Result<SessionRequest, CommandError> {
    let name = args.agent.as_deref().unwrap_or(session.agent.name());
    let agent = agents::named(name, &context.profiles, &context.config)?;
    let folder = if args.chat { None } else { session.project.clone().filter(|folder| folder.is_dir()) };
    let request = run::session_with(agent, &flags(args, folder), author, context)?;
    let is_writer = request.agent.profile.name == session.agent.name();
    let loads = (is_writer && request.workspace.is_some()).then(|| session.id.as_str().into());
    let (import, damages) = Import::of(session, loads, request.workspace.clone());
    warn(&damages);
    Ok(SessionRequest { import: Some(import), ..request })
}

fn flags(args: &ResumeArgs, cwd: Option<PathBuf>) -> AgentArgs {
    AgentArgs {
        agent: None,
        driver: None,
        model: args.model.clone(),
        mode: None,
        cwd,
        permissions: args.permissions,
        resume: None,
    }
}
