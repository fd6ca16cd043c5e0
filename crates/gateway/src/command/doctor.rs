//! `gembridge doctor`: what is good, what needs a look, what is broken, and the fix for each.

mod access;
mod agent;
mod cluster;
mod guests;
mod machine;

use std::fmt::Write as _;
use std::time::Duration;

use gembridge_core::model::Failure;
use serde::Serialize;

use crate::agents::Agent;
use crate::cli::args::DoctorArgs;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::render::style::Style;
use crate::terminal::{self, escape};

use super::{Context, pretty};

/// One real handshake with an agent: started, greeted, ended.
///
/// Called from the main thread, outside any event loop. Nothing of the agent is left when it returns.
pub trait Probe {
    fn initialize(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure>;
    /// The same with the home and the fence that a guest's process has.
    fn initialize_for_guests(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure>;
}

/// What the agent said of itself.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// From the start of the process to its session.
    pub took: Duration,
    pub name: Option<String>,
    pub version: Option<String>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), fix: None }
    }

    fn warn(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, detail: detail.into(), fix: Some(fix.into()) }
    }

    fn fail(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, detail: detail.into(), fix: Some(fix.into()) }
    }
}

pub fn run(args: &DoctorArgs, context: &Context) -> CommandResult {
    let checks = checks(context, &*crate::app::probe())?;
    let is_broken = checks.iter().any(|check| check.status == Status::Fail);
    terminal::print(&if args.json {
        pretty(&serde_json::json!({ "ok": !is_broken, "version": env!("CARGO_PKG_VERSION"), "checks": checks }))
    } else {
        listing(&checks, Style::of(context.terminal.stdout))
    })?;
    Ok(if is_broken { ExitCode::Failed } else { ExitCode::Success })
}

fn checks(context: &Context, probe: &dyn Probe) -> Result<Vec<Check>, CommandError> {
    let mut checks = vec![machine::settings_file(&context.config)];
    checks.extend(machine::private_paths(&context.config));
    checks.push(machine::trust(&context.config));
    checks.push(machine::admission(&context.config));
    checks.extend(access::checks(&context.config));
    match crate::agents::choose(&context.profiles, &context.config) {
        Ok(agent) => checks.extend(agent::checks(&agent, context, probe)),
        // A name that is not known is a mistake of the command line, not of the machine.
        Err(error) if error.code == ExitCode::Usage => return Err(error),
        Err(error) => checks.push(agent::missing(&error.error.to_string())),
    }
    checks.extend(guests::checks(context, probe));
    checks.extend(cluster::checks(context));
    checks.push(machine::client_tools());
    checks.push(machine::landlock());
    checks.push(machine::free_space(&context.config.folders.state));
    checks.push(machine::open_files());
    checks.push(machine::stale_cleanup(&context.config.folders));
    Ok(checks)
}

fn listing(checks: &[Check], style: Style) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let mark = match check.status {
            Status::Ok => style.green("✓"),
            Status::Warn => style.yellow("!"),
            Status::Fail => style.red("✗"),
        };
        writeln!(out, "{mark} {:width$}  {}", check.name, escape::line(&check.detail))
            .expect("writing to a String cannot fail");
        if let Some(fix) = &check.fix {
            writeln!(out, "  {:width$}  {}", "", style.dim(&format!("→ {}", escape::line(fix))))
                .expect("writing to a String cannot fail");
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let summary = match (count(Status::Fail), count(Status::Warn)) {
        (0, 0) => "all is well".to_owned(),
        (0, warnings) => format!("it works; {warnings} to look at"),
        (failures, warnings) => format!("{failures} broken, {warnings} to look at"),
    };
    out + &summary + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_its_mark_and_its_fix() {
        let checks = [
            Check::ok("a", "good"),
            Check::warn("long", "so-so", "do this"),
            Check::fail("b", "bad\u{1b}[2J", "do that"),
        ];
        assert_eq!(
            listing(&checks, Style::Plain),
            "✓ a     good\n! long  so-so\n        → do this\n✗ b     bad\\u{1b}[2J\n        → do that\n1 broken, 1 to look at\n"
        );
        assert!(listing(&checks[..1], Style::Plain).ends_with("all is well\n"));
    }
}
