//! `gembridge sessions export`: one session as a file, written as it is read.

mod html;
mod json;
mod markdown;

use std::io::{self, BufWriter, Write};

use gembridge_transcripts::{Facts, Located, Piece, ReadOptions, Summary, read, summarise};
use gembridge_unified::{Originals, UnifiedMessage};

use super::{named, scan, warn};
use crate::cli::args::sessions::ExportFormat;
use crate::command::Context;
use crate::exit::CommandError;
use crate::terminal::escape::EscapingWriter;

/// One format. Called with the session, then each message in its order, then the end.
trait Export {
    fn begin(&mut self, out: &mut dyn Write, session: &Located) -> io::Result<()>;
    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write, facts: &Facts) -> io::Result<()>;
}

pub fn run(
    id: Option<&str>,
    format: ExportFormat,
    options: ReadOptions,
    context: &Context,
) -> Result<(), CommandError> {
    let scan = scan(context)?;
    let session = named(id, &scan)?;
    let (mut export, options): (Box<dyn Export>, _) = match format {
        ExportFormat::Json => (Box::new(json::Json::default()), options),
        ExportFormat::Jsonl => (Box::new(json::Lines::default()), options),
        ExportFormat::Markdown => (Box::new(markdown::Markdown::new(first(session))), plain(options)),
        ExportFormat::Html => (Box::new(html::Html::new(first(session))), plain(options)),
    };
    let mut out = output(format, context.terminal.stdout.is_terminal);
    let mut damages = Vec::new();
    let mut written = export.begin(&mut out, session);
    let facts = read(session, options, &mut |piece| match piece {
        Piece::Message(message) if written.is_ok() => written = export.message(&mut out, &message),
        Piece::Message(_) => {}
        Piece::Damage(damage) => damages.push(damage),
    });
    let written = written.and_then(|()| export.end(&mut out, &facts)).and_then(|()| out.flush());
    warn(&damages);
    match written {
        // A reader that went away early has seen what it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write to standard output: {error}").into())
        }
        _ => Ok(()),
    }
}

/// A file gets the document as it is. On a terminal, control characters of a session must not steer it. JSON stays as it is
/// there too, since another escape would break it; its own rules escape those below U+0020 only.
fn output(format: ExportFormat, is_terminal: bool) -> Box<dyn Write> {
    let out = BufWriter::with_capacity(256 << 10, io::stdout().lock());
    match format {
        ExportFormat::Markdown | ExportFormat::Html if is_terminal => Box::new(EscapingWriter(out)),
        _ => Box::new(out),
    }
}

/// Documents for people begin with what is known when all was read.
fn first(session: &Located) -> Summary {
    summarise(session)
}

/// They show no originals.
fn plain(options: ReadOptions) -> ReadOptions {
    ReadOptions { originals: Originals::Leave, ..options }
}
