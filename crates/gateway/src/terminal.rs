//! Standard output and standard error: whether they are terminals, whether they get colours, and what never reaches them raw.

pub mod escape;

use std::io::{self, IsTerminal as _, Write as _};

use crate::config::Environment;
use crate::exit::CommandError;

/// What is known of the terminal when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    pub stdout: Stream,
    pub stderr: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub is_terminal: bool,
    pub is_coloured: bool,
}

impl Terminal {
    pub fn detect(environment: &Environment) -> Self {
        let may_colour = environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb");
        let stream = |is_terminal| Stream { is_terminal, is_coloured: is_terminal && may_colour };
        Self { stdout: stream(io::stdout().is_terminal()), stderr: stream(io::stderr().is_terminal()) }
    }

    /// The same without colours.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.stdout.is_coloured = false;
        self.stderr.is_coloured = false;
        self
    }

    /// The one sentence of a command that failed. Text from outside may be part of it.
    pub fn complain(self, error: &anyhow::Error) {
        let sentence = escape::text(&format!("{error:#}")).into_owned();
        let name = if self.stderr.is_coloured { "\u{1b}[31mgembridge:\u{1b}[0m" } else { "gembridge:" };
        write_stderr(&format!("{name} {}\n", sentence.trim_end()));
    }
}

/// Prints the whole result of a command. A reader that went away early (`| head`) has seen what it wanted.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write to standard output: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Says something on standard error. There is nobody left to tell when that fails.
pub fn write_stderr(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
