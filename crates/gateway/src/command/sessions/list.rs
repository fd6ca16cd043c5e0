//! `gembridge sessions list`: what there is, in a line each.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gembridge_transcripts::{Agent, Located, Scan, Summary, summarise};
use gembridge_unified::UnifiedUsage;
use serde::Serialize;

use super::progress::Progress;
use super::{present_folder, scan, warn};
use crate::cli::args::sessions::ListSessionsArgs;
use crate::command::{Context, pretty};
use crate::exit::CommandError;
use crate::render::style::Style;
use crate::terminal::{self, escape};

/// One session, for programs.
#[derive(Debug, Serialize)]
struct Report {
    id: String,
    agent: &'static str,
    title: Option<String>,
    project: Option<PathBuf>,
    model: Option<String>,
    turns: u64,
    messages: u64,
    /// All tokens that were spent.
    tokens: u64,
    usage: UnifiedUsage,
    /// In milliseconds since 1970.
    started: Option<u64>,
    updated: u64,
    /// The sessions that its subagents wrote.
    subagents: Vec<String>,
    files: Vec<PathBuf>,
    /// How many places could not be read.
    damaged: usize,
}

pub fn run(args: &ListSessionsArgs, context: &Context) -> Result<(), CommandError> {
    let scan = scan(context)?;
    let chosen = chosen(args, &scan)?;
    let mut progress = Progress::new(context.terminal, "reading sessions", chosen.len());
    let mut reports = Vec::with_capacity(chosen.len());
    for (done, session) in chosen.iter().enumerate() {
        progress.at(done);
        let summary = summarise(session);
        warn(&summary.damages);
        // The gateway opens sessions ahead of time; one that was not used yet is nobody's conversation.
        if session.agent == Agent::Gembridge && summary.messages == 0 && summary.damages.is_empty() {
            continue;
        }
        reports.push(report(session, summary, &scan));
    }
    drop(progress);
    // A copied home has other times on its files than in them.
    reports.sort_by_key(|report| std::cmp::Reverse(report.updated));
    terminal::print(&if args.json {
        pretty(&serde_json::json!(reports))
    } else {
        let scope = if args.all { Scope::Every } else { Scope::One };
        table(&reports, &scan, scope, Style::of(context.terminal.stdout))
    })
}

/// The sessions that were asked for. Those of subagents stand with their session.
fn chosen<'a>(args: &ListSessionsArgs, scan: &'a Scan) -> Result<Vec<&'a Located>, CommandError> {
    let agent = args.agent.as_deref().map(agent).transpose()?;
    let found = if args.all { scan.sessions.iter().collect() } else { scan.of_project(&project(args)?)? };
    let is_wanted = |session: &&Located| session.parent.is_none() && agent.is_none_or(|agent| session.agent == agent);
    Ok(found.into_iter().filter(is_wanted).take(args.limit.unwrap_or(usize::MAX)).collect())
}

fn project(args: &ListSessionsArgs) -> Result<PathBuf, CommandError> {
    match &args.project {
        Some(folder) => Ok(real(folder)),
        None => Ok(real(&present_folder()?)),
    }
}

/// Agents write the real path of their folder. A folder that is gone still has sessions.
pub(super) fn real(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.canonicalize().unwrap_or(folder)
}

pub(super) fn agent(name: &str) -> Result<Agent, CommandError> {
    Agent::of_name(name).ok_or_else(|| {
        let names = Agent::ALL.map(Agent::name).join("`, `");
        CommandError::usage(format!("session files of agent `{name}` are not known; known are `{names}`, `gembridge`"))
    })
}

fn report(session: &Located, summary: Summary, scan: &Scan) -> Report {
    let facts = summary.facts;
    Report {
        id: session.id.clone(),
        agent: session.agent.name(),
        title: summary.title,
        project: facts.project,
        model: facts.model,
        turns: summary.turns,
        messages: summary.messages,
        tokens: facts.usage.total(),
        usage: facts.usage,
        started: facts.started,
        updated: facts.updated.unwrap_or(session.modified),
        subagents: scan.subagents(session).into_iter().map(|subagent| subagent.id.clone()).collect(),
        files: session.paths().to_vec(),
        damaged: summary.damages.len(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    One,
    Every,
}

fn table(reports: &[Report], scan: &Scan, scope: Scope, style: Style) -> String {
    let now = now();
    let mut ids: Vec<_> = scan.sessions.iter().map(|session| session.id.as_str()).collect();
    ids.sort_unstable();
    let mut rows = vec![["ID", "AGENT", "TITLE", "MODEL", "TURNS", "TOKENS", "AGE", "PROJECT"].map(str::to_owned)];
    for report in reports {
        let shown = |text: Option<&str>, most: usize| cut(&escape::line(text.unwrap_or("-")), most);
        let project = report.project.as_ref().map(|project| project.display().to_string());
        rows.push([
            escape::line(short(&report.id, &ids)).into_owned(),
            report.agent.to_owned(),
            shown(report.title.as_deref(), 40),
            shown(report.model.as_deref(), 24),
            report.turns.to_string(),
            amount(report.tokens),
            age(now.saturating_sub(report.updated)),
            shown(project.as_deref(), 60),
        ]);
    }
    let columns = if scope == Scope::Every { 8 } else { 7 };
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers stand to the right.
            let is_number = matches!(column, 4 | 5);
            if is_number { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:width$}  ") }
                .expect("writing to a String cannot fail");
        }
        let line = line.trim_end();
        out.push_str(&if number == 0 { style.dim(line) } else { line.to_owned() });
        out.push('\n');
    }
    out
}

/// As much of an id as means this session and no other. `sorted` are all ids.
pub(super) fn short<'a>(id: &'a str, sorted: &[&str]) -> &'a str {
    let least = if id.starts_with("ses_") { 12 } else { 8 };
    let at = sorted.partition_point(|other| *other < id);
    // Whatever shares the longest beginning stands next to it.
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| sorted.get(at));
    let shared = beside.map(|other| id.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count());
    let enough = shared.max().map_or(0, |shared| shared + 1).max(least);
    id.get(..enough).unwrap_or(id)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `950`, `3.1k`, `12M`.
pub(super) fn amount(count: u64) -> String {
    let (unit, name) = match count {
        0..=999 => return count.to_string(),
        1_000..=999_999 => (1_000, 'k'),
        _ => (1_000_000, 'M'),
    };
    let (whole, tenth) = (count / unit, count % unit * 10 / unit);
    if whole < 10 { format!("{whole}.{tenth}{name}") } else { format!("{whole}{name}") }
}

/// In milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

/// In the largest unit that fits.
pub(super) fn age(millis: u64) -> String {
    let minutes = millis / 60_000;
    match minutes {
        0 => "now".to_owned(),
        1..=59 => format!("{minutes} min"),
        60..=1_439 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shortened_to_what_no_other_begins_with() {
        let ids = ["01a1e3cf-d729", "01a1e3cf-d800", "41f6ab9a-7d9c", "ses_e1c2fd596ffe"];
        let shortened = ids.map(|id| short(id, &ids));
        assert_eq!(shortened, ["01a1e3cf-d7", "01a1e3cf-d8", "41f6ab9a", "ses_e1c2fd59"]);
    }

    #[test]
    fn amounts_and_ages_are_short() {
        for (count, shown) in [(0, "0"), (999, "999"), (3_084, "3.0k"), (12_444, "12k"), (2_500_000, "2.5M")] {
            assert_eq!(amount(count), shown);
        }
        for (minutes, shown) in [(0, "now"), (59, "59 min"), (60, "1 h"), (1_500, "1 d")] {
            assert_eq!(age(minutes * 60_000), shown);
        }
    }
}
