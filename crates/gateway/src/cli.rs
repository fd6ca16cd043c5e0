//! The command line: what was typed ([`args`]) becomes what is meant (a configuration and a request).

pub mod args;

mod examples;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::config::{Environment, Flag, Key, Sources};
use crate::exit::{self, CommandError};
use args::{Args, Global};

/// The version, with the commit where whoever built it said which it is: `make package` does.
pub static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("GEMBRIDGE_COMMIT") {
    Some(commit) if !commit.is_empty() => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
    _ => env!("CARGO_PKG_VERSION").to_owned(),
});

/// What to do about a command line.
pub enum Parsed {
    Command(Box<Args>),
    /// Help or a version, for standard output.
    Text(String),
}

/// Reads the words after the program's name. `is_coloured` is for help.
pub fn parse(words: impl Iterator<Item = OsString>, is_coloured: bool) -> Result<Parsed, CommandError> {
    let name = OsString::from("gembridge");
    let matches = match command().try_get_matches_from(std::iter::once(name).chain(words)) {
        Ok(matches) => matches,
        Err(error) => return answer(&error, is_coloured),
    };
    match Args::from_arg_matches(&matches) {
        Ok(args) => Ok(Parsed::Command(Box::new(args))),
        Err(error) => answer(&error, is_coloured),
    }
}

/// The whole command line, with its examples and exit codes.
pub fn command() -> clap::Command {
    let command = Args::command().version(VERSION.as_str());
    let command = command.after_long_help(format!("{}\n{}", examples::TOP, exit::table()));
    examples::BY_COMMAND.iter().fold(command, |command, (name, examples)| {
        command.mut_subcommand(name, |sub| sub.after_long_help(format!("{examples}\n{}", exit::table())))
    })
}

fn answer(error: &clap::Error, is_coloured: bool) -> Result<Parsed, CommandError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            Ok(Parsed::Text(if is_coloured { text.ansi().to_string() } else { text.to_string() }))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(CommandError::usage(format!("a command is missing\n\n{}", error.render())))
        }
        _ => Err(CommandError::usage(sentence(&error.render().to_string()))),
    }
}

/// clap's paragraph as one sentence: what is wrong, what was meant, where to read on.
fn sentence(rendered: &str) -> String {
    let body = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let mut parts: Vec<String> = Vec::new();
    let mut usage = "gembridge".to_owned();
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("Usage: ") {
            usage = rest
                .split_whitespace()
                .take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
                .collect::<Vec<_>>()
                .join(" ");
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            parts.push(tip.to_owned());
        } else if line.starts_with("For more information") {
            break;
        } else if let Some(last) = parts.last_mut() {
            last.push(' ');
            last.push_str(line);
        } else {
            parts.push(line.to_owned());
        }
    }
    parts.push(format!("see `{usage} --help`"));
    // clap quotes literals with ', everything else of ours with backticks.
    parts.join("; ").replace('\'', "`")
}

impl Global {
    /// The settings that were typed, for every command alike.
    pub fn sources(&self, environment: Environment, mut flags: Vec<Flag>) -> Sources {
        if let Some(level) = self.log_level {
            let value = clap::ValueEnum::to_possible_value(&level).map(|value| value.get_name().to_owned());
            flags.extend(value.map(|value| Flag { name: "--log-level", key: Key::dotted("log.level"), value }));
        }
        Sources { environment, file: self.config.clone(), flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        match parse(line.split_whitespace().map(OsString::from), false) {
            Err(error) => error.error.to_string(),
            Ok(_) => panic!("`{line}` was accepted"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn what_was_mistyped_is_answered_in_one_sentence_with_what_was_meant() {
        for (line, expected) in [
            ("rum", "unrecognized subcommand `rum`; a similar subcommand exists: `run`; see `gembridge --help`"),
            (
                "run --agnt x",
                "unexpected argument `--agnt` found; a similar argument exists: `--agent`; see `gembridge run --help`",
            ),
            (
                "completions",
                "the following required arguments were not provided: <SHELL>; see `gembridge completions --help`",
            ),
        ] {
            assert_eq!(refusal(line), expected);
        }
        assert!(refusal("run --output-format yaml").starts_with(
            "invalid value `yaml` for `--output-format <FORMAT>` [possible values: text, json, stream-json]"
        ));
        assert!(refusal("run --timeout soon x").contains("a number of seconds from 1"));
        assert!(refusal("").starts_with("a command is missing"));
    }

    #[test]
    fn every_command_has_examples_and_exit_codes_in_its_help() {
        for sub in command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let help = sub.clone().render_long_help().to_string();
            assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{}: {help}", sub.get_name());
        }
    }
}
