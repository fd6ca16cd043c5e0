//! `gembridge agents`: which agents are known, which are installed, and how.

use std::fmt::Write as _;
use std::path::PathBuf;

use gembridge_drivers::detect::{Detection, FoundBy};
use gembridge_drivers::profile::{Execution, Profile, Version};
use serde::Serialize;

use crate::agents;
use crate::cli::args::AgentsArgs;
use crate::exit::{CommandResult, ExitCode};
use crate::render::style::Style;
use crate::terminal::{self, escape};

use super::{Context, pretty};

/// One agent, for programs. Names and paths only: no login is ever read.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    title: String,
    installed: bool,
    /// The one that is used when none is named.
    default: bool,
    path: Option<PathBuf>,
    found_by: Option<String>,
    version: Option<String>,
    /// The versions that it was tested with.
    tested: Vec<String>,
    login: Option<Login>,
    capabilities: Capabilities,
    /// How to get it, where it is missing.
    install: Option<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Login {
    kind: String,
    title: String,
    source: String,
    personal: bool,
}

impl Login {
    fn told(&self) -> String {
        super::login_told(&self.title, &self.source)
    }
}

#[derive(Debug, Serialize)]
struct Capabilities {
    driver: &'static str,
    mode: &'static str,
    approval_modes: Vec<&'static str>,
    native_tools: Vec<String>,
    sandbox: bool,
}

pub fn run(args: &AgentsArgs, context: &Context) -> CommandResult {
    let reports = reports(context);
    terminal::print(&if args.json {
        pretty(&serde_json::json!(reports))
    } else {
        listing(&reports, Style::of(context.terminal.stdout))
    })?;
    Ok(ExitCode::Success)
}

fn reports(context: &Context) -> Vec<Report> {
    let detections = agents::detect_all(&context.profiles, &context.config);
    let installed: Vec<_> = context
        .profiles
        .iter()
        .zip(&detections)
        .filter(|(profile, _)| !profile.command.own_binary)
        .filter_map(|(profile, detection)| Some((profile.clone(), detection.found.as_ref()?.program.clone())))
        .collect();
    let versions = agents::versions(&installed, &context.config);
    let version_of = |profile: &Profile| {
        let place = installed.iter().position(|(known, _)| known.name == profile.name)?;
        versions[place]
    };
    let default = agents::choose(&context.profiles, &context.config).ok().map(|agent| agent.profile.name);
    let pairs = context.profiles.iter().zip(detections);
    pairs.map(|(profile, detection)| report(profile, detection, version_of(profile), default.as_deref())).collect()
}

fn report(profile: &Profile, detection: Detection, version: Option<Version>, default: Option<&str>) -> Report {
    let install = agents::missing(&detection, profile);
    let found_by = detection.found.as_ref().map(|found| match &found.by {
        FoundBy::Command => "command of the settings".to_owned(),
        FoundBy::Variable(name) => format!("variable {name}"),
        FoundBy::Path => "PATH".to_owned(),
        FoundBy::UsualPlace => "a usual place".to_owned(),
        FoundBy::OwnBinary => "built in".to_owned(),
        FoundBy::Address => "url of the settings".to_owned(),
    });
    let version = if profile.command.own_binary {
        Some(env!("CARGO_PKG_VERSION").to_owned())
    } else {
        version.map(|version| version.to_string())
    };
    Report {
        name: profile.name.clone(),
        title: profile.title.clone(),
        installed: detection.found.is_some(),
        default: default == Some(profile.name.as_str()),
        path: detection.found.map(|found| found.program),
        found_by,
        version,
        tested: profile.tested.iter().map(Version::to_string).collect(),
        login: detection.login.map(|login| Login {
            kind: login.kind,
            title: login.title,
            source: login.source,
            personal: login.personal,
        }),
        capabilities: Capabilities {
            driver: profile.driver.as_str(),
            mode: match profile.chosen.execution {
                Execution::Chat => "chat",
                Execution::Agent => "agent",
            },
            approval_modes: profile.modes.keys().map(|mode| mode.as_str()).collect(),
            native_tools: profile.tools.native.clone(),
            sandbox: profile.sandbox.is_some(),
        },
        install,
        warnings: detection.warnings,
    }
}

fn listing(reports: &[Report], style: Style) -> String {
    let width = reports.iter().map(|report| report.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for report in reports {
        let name = format!("{:width$}", report.name);
        let line = match (&report.path, &report.install) {
            (Some(path), _) => {
                let default = if report.default { style.bold(" (default)") } else { String::new() };
                let version = report.version.as_deref().unwrap_or("of unknown version");
                let from = report.found_by.as_deref().unwrap_or_default();
                let path = escape::line(&path.to_string_lossy()).into_owned();
                let login = report
                    .login
                    .as_ref()
                    .map_or_else(String::new, |login| format!("; login: {}", escape::line(&login.told())));
                format!(
                    "{} {name}  {} {version}{default}{}",
                    style.green("✓"),
                    report.title,
                    style.dim(&format!("  {path} ({from}){login}"))
                )
            }
            (None, install) => {
                // The sentence begins with the agent's name, which stands in front already.
                let way_out = install
                    .as_deref()
                    .and_then(|sentence| sentence.split_once("; "))
                    .map_or("", |(_, way_out)| way_out);
                let install = format!("not installed; {}", escape::line(way_out));
                format!("{} {name}  {}", style.dim("·"), style.dim(&install))
            }
        };
        out.push_str(&line);
        out.push('\n');
        for warning in &report.warnings {
            writeln!(out, "  {}", style.yellow(&format!("! {}", escape::line(warning))))
                .expect("writing to a String cannot fail");
        }
    }
    out
}
