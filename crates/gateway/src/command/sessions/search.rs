//! `gembridge sessions search`: words in what was said, the best session first, each with the command that goes on with it.

use std::fmt::Write as _;

use gembridge_transcripts::{Hit, Index, Query, Scan, Wanted};
use serde::Serialize;

use super::list::{age, now, short};
use super::progress::Progress;
use super::{list, scan, warn};
use crate::cli::args::sessions::SearchArgs;
use crate::command::{Context, pretty};
use crate::config::folders::ensure_private;
use crate::exit::{CommandError, ExitCode};
use crate::render::style::Style;
use crate::terminal::{self, escape};

/// One session, for programs.
#[derive(Debug, Serialize)]
struct Found {
    #[serde(flatten)]
    hit: Hit,
    /// The command that goes on with it.
    resume: String,
}

pub fn run(args: &SearchArgs, context: &Context) -> Result<(), CommandError> {
    let query = Query::parse(&args.words.join(" ")).map_err(|error| CommandError::usage(error.to_string()))?;
    let wanted = Wanted {
        agent: args.agent.as_deref().map(list::agent).transpose()?,
        project: args.project.as_ref().map(|folder| list::real(folder)),
    };
    let found = scan(context)?;
    ensure_private(&context.config.folders.cache)?;
    let failed = |error: gembridge_transcripts::IndexError| CommandError::new(ExitCode::Failed, error.to_string());
    let mut index = Index::open(context.config.folders.cache.join("sessions.db")).map_err(failed)?;
    let mut progress = Progress::new(context.terminal, "indexing sessions", 0);
    let damages = index.update(&found.sessions, &mut |done, total| progress.at_of(done, total)).map_err(failed)?;
    drop(progress);
    warn(&damages);
    let hits = index.search(&query, &wanted, args.limit).map_err(failed)?;
    let hits: Vec<_> = hits.into_iter().map(|hit| Found { resume: resume(&hit, &found), hit }).collect();
    if args.json {
        return terminal::print(&pretty(&serde_json::json!(hits)));
    }
    if hits.is_empty() {
        let sessions = found.sessions.len();
        terminal::write_stderr(&format!(
            "none of {sessions} sessions has all these words in one passage; try fewer, or the beginning of one: `inde*`\n"
        ));
        return Ok(());
    }
    terminal::print(&text(&hits, Style::of(context.terminal.stdout)))
}

/// A subagent's session cannot be gone on with; the one that started it can.
fn resume(hit: &Hit, scan: &Scan) -> String {
    let id = hit.parent.as_deref().unwrap_or(&hit.id);
    let mut ids: Vec<_> = scan.sessions.iter().map(|session| session.id.as_str()).collect();
    ids.sort_unstable();
    format!("gembridge sessions resume {}", short(id, &ids))
}

fn text(hits: &[Found], style: Style) -> String {
    let mut out = String::new();
    for Found { hit, resume } in hits {
        let title = hit.title.as_deref().unwrap_or("(no title)");
        let mut known = vec![hit.agent.to_owned()];
        known.extend(hit.model.clone());
        known.extend(hit.project.as_ref().map(|project| project.display().to_string()));
        known.push(age(now().saturating_sub(hit.updated)));
        if hit.passages > 1 {
            known.push(format!("{} passages", hit.passages));
        }
        let lines = [
            style.bold(&escape::line(title)),
            style.dim(&escape::line(&known.join(" · "))),
            format!("  {}", escape::line(&hit.snippet)),
            format!("  {}", style.green(&escape::line(resume))),
        ];
        writeln!(out, "{}\n", lines.join("\n")).expect("writing to a String cannot fail");
    }
    out.pop();
    out
}
