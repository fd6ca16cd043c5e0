//! What a command shows of a turn: for a terminal, for a pipe, or as JSON.

use std::io::{self, Write as _};
use std::time::Duration;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Ask, Event};
use gembridge_unified::{Context, Fold, Init, Line, Report};

use crate::render::style::Style;
use crate::render::{Renderer, ask, spinner};
use crate::terminal::{Terminal, write_stderr};

/// Where the entries of a turn go. Called in their order; an error ends the turn.
pub trait TurnOutput: Send {
    fn entry(&mut self, entry: &LogEntry) -> io::Result<()>;

    /// The agent has been silent for `waited` since the turn began.
    fn waiting(&mut self, what: &str, waited: Duration);

    /// Shows a question that a person shall answer.
    fn question(&mut self, ask: &Ask);
}

/// Everything, as a person reads it.
pub struct TerminalOutput {
    renderer: Renderer,
    style: Style,
    has_spinner: Spinner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spinner {
    /// Standard error is no terminal.
    Never,
    Gone,
    Shown,
}

impl TerminalOutput {
    pub fn new(terminal: Terminal) -> Self {
        let style = Style::of(terminal.stdout);
        let has_spinner = if terminal.stderr.is_terminal { Spinner::Gone } else { Spinner::Never };
        Self { renderer: Renderer::new(style), style, has_spinner }
    }

    fn clear_spinner(&mut self) {
        if self.has_spinner == Spinner::Shown {
            write_stderr(spinner::CLEAR);
            self.has_spinner = Spinner::Gone;
        }
    }
}

impl TurnOutput for TerminalOutput {
    fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        let shown = self.renderer.event(&entry.event);
        if shown.is_empty() {
            return Ok(());
        }
        self.clear_spinner();
        print(&shown)
    }

    fn waiting(&mut self, what: &str, waited: Duration) {
        if self.has_spinner != Spinner::Never {
            write_stderr(&spinner::frame(what, waited));
            self.has_spinner = Spinner::Shown;
        }
    }

    fn question(&mut self, ask: &Ask) {
        self.clear_spinner();
        let question = format!("{}{}", self.renderer.fresh_line(), ask::question(ask, self.style));
        write_stderr(&question);
    }
}

/// The answer and nothing else, byte for byte: for a file or another program.
#[derive(Default)]
pub struct PipeOutput {
    /// The text so far does not end its last line.
    is_mid_line: bool,
}

impl TurnOutput for PipeOutput {
    fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        match &entry.event {
            Event::Text(text) if !text.is_empty() => {
                let text = text.to_str();
                self.is_mid_line = !text.ends_with('\n');
                print(&text)
            }
            Event::Ended(_) if self.is_mid_line => print("\n"),
            _ => Ok(()),
        }
    }

    fn waiting(&mut self, _: &str, _: Duration) {}

    fn question(&mut self, ask: &Ask) {
        write_stderr(&ask::question(ask, Style::Plain));
    }
}

/// One JSON object when the turn is over.
pub struct JsonOutput {
    fold: Fold,
    lines: Vec<Line>,
}

impl JsonOutput {
    pub fn new(context: Context) -> Self {
        Self { fold: Fold::new(context), lines: Vec::new() }
    }
}

impl TurnOutput for JsonOutput {
    fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        // Deltas are repeated in their messages.
        self.lines.extend(self.fold.push(entry).into_iter().filter(|line| !matches!(line, Line::Delta(_))));
        match &entry.event {
            Event::Ended(_) => match Report::from_lines(std::mem::take(&mut self.lines)) {
                Some(report) => print(&format!("{}\n", serde_json::to_string(&report)?)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn waiting(&mut self, _: &str, _: Duration) {}

    fn question(&mut self, ask: &Ask) {
        write_stderr(&ask::question(ask, Style::Plain));
    }
}

/// One JSON message a line, as they come.
pub struct StreamOutput {
    fold: Fold,
}

impl StreamOutput {
    pub fn begin(context: Context, init: Init) -> io::Result<Self> {
        print(&format!("{}\n", serde_json::to_string(&Line::from(init))?))?;
        Ok(Self { fold: Fold::new(context) })
    }
}

impl TurnOutput for StreamOutput {
    fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        for line in self.fold.push(entry) {
            print(&format!("{}\n", serde_json::to_string(&line)?))?;
        }
        Ok(())
    }

    fn waiting(&mut self, _: &str, _: Duration) {}

    fn question(&mut self, ask: &Ask) {
        write_stderr(&ask::question(ask, Style::Plain));
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
