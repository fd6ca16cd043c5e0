//! What the command line asked for.

use std::{path::PathBuf, time::Duration};

use super::mode::{Mode, Quirk};

#[derive(Debug, Default)]
pub struct Options {
    pub modes: Vec<Mode>,
    pub quirks: Vec<Quirk>,
    pub without: Vec<String>,
    pub tag: Option<String>,
    pub start_delay: Duration,
    pub record: Option<PathBuf>,
    pub state: Option<PathBuf>,
}

/// What to do with a command line.
pub enum Request {
    Run(Options),
    Help,
    Version,
}

const FLAGS_OF_REAL_AGENTS: [&str; 5] = ["--acp", "--experimental-acp", "--skip-trust", "--yolo", "--sandbox"];
const OPTIONS_OF_REAL_AGENTS: [&str; 3] = ["--model", "--approval-mode", "--policy"];

impl Options {
    pub fn has(&self, mode: &Mode) -> bool {
        self.modes.contains(mode)
    }

    pub fn quirk(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    pub fn offers(&self, capability: &str) -> bool {
        !self.without.iter().any(|name| name == capability)
    }

    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, String> {
        let mut options = Self::default();
        let mut speaks_acp_flag = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            if FLAGS_OF_REAL_AGENTS.contains(&name.as_str()) {
                speaks_acp_flag |= name == "--acp";
                continue;
            }
            match name.as_str() {
                "--help" | "-h" => return Ok(Request::Help),
                "--version" => return Ok(Request::Version),
                _ => {}
            }
            let mut value =
                || attached.clone().or_else(|| arguments.next()).ok_or(format!("option `{name}` needs a value"));
            match name.as_str() {
                "--mode" => options.modes.extend(listed(&value()?, Mode::parse)?),
                "--quirk" => options.quirks.extend(listed(&value()?, Quirk::parse)?),
                "--without" => {
                    options.without.extend(listed(&value()?, |word| Ok(word.to_owned()))?);
                }
                "--tag" => options.tag = Some(value()?),
                "--start-delay-ms" => {
                    let text = value()?;
                    let ms = text.parse().map_err(|_| format!("`{text}` is not a number of milliseconds"))?;
                    options.start_delay = Duration::from_millis(ms);
                }
                "--record" => options.record = Some(value()?.into()),
                "--state" => options.state = Some(value()?.into()),
                name if OPTIONS_OF_REAL_AGENTS.contains(&name) => drop(value()?),
                name => return Err(format!("argument `{name}` is not known; `--help` lists all")),
            }
        }
        if speaks_acp_flag && options.quirk(Quirk::NoAcpFlag) {
            return Err("unknown argument: acp".into());
        }
        Ok(Request::Run(options))
    }
}

fn listed<T>(list: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    list.split(',').map(parse).collect()
}
