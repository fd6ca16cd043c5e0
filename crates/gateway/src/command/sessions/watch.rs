//! `gembridge sessions watch`: a session as it is written, by whichever agent.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::time::Duration;

use gembridge_transcripts::{Damage, Located, Piece, ReadOptions, read, summarise};
use gembridge_unified::{Block, Body, UnifiedMessage};

use super::show::{Detail, Page, heading};
use super::{named, scan};
use crate::cli::args::sessions::WatchArgs;
use crate::command::Context;
use crate::exit::CommandError;
use crate::render::style::Style;

/// How often the session's files are looked at.
const PERIOD: Duration = Duration::from_millis(200);

pub fn run(args: &WatchArgs, context: &Context) -> Result<(), CommandError> {
    let scan = scan(context)?;
    let session = named(args.id.as_deref(), &scan)?;
    let style = Style::of(context.terminal.stdout);
    let mut output = if args.json {
        Output::Lines
    } else {
        let summary = summarise(session);
        write(&heading(session.agent.name(), &summary, style))?;
        Output::Page(Page::new(style, Detail::Lines))
    };
    match follow(session, args, &mut output) {
        // Whoever read it has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::anyhow!("cannot write to standard output: {error}").into()),
        Ok(never) => match never {},
    }
}

/// Reads the session again whenever it has changed: some agents rewrite what they wrote before.
fn follow(session: &Located, args: &WatchArgs, output: &mut Output) -> io::Result<std::convert::Infallible> {
    let options: ReadOptions = args.reading.options();
    let mut seen = Seen::default();
    // Asked before it is read: what is written meanwhile is read once more, and never missed.
    let mut version = session.live_version();
    let (messages, _) = contents(session, options);
    let from = messages.len().saturating_sub(args.last);
    for (number, message) in messages.iter().enumerate() {
        let news = seen.news(message);
        if number >= from {
            output.show(message, &news)?;
        }
    }
    loop {
        std::thread::sleep(PERIOD);
        let present = session.live_version();
        if present.is_some() && present == version {
            continue;
        }
        version = present;
        // A line that is being written is damaged until it is whole, so damage is not told here.
        for message in &contents(session, options).0 {
            let news = seen.news(message);
            output.show(message, &news)?;
        }
    }
}

fn contents(session: &Located, options: ReadOptions) -> (Vec<UnifiedMessage>, Vec<Damage>) {
    let (mut messages, mut damages) = (Vec::new(), Vec::new());
    read(session, options, &mut |piece| match piece {
        Piece::Message(message) => messages.push(*message),
        Piece::Damage(damage) => damages.push(damage),
    });
    (messages, damages)
}

/// What was shown of each message: the hashes of its blocks.
#[derive(Default)]
struct Seen {
    blocks: HashMap<String, Vec<u64>>,
}

impl Seen {
    /// The blocks of a message that are new or have changed. They count as seen from now on.
    fn news(&mut self, message: &UnifiedMessage) -> Vec<Block> {
        let blocks = match &message.content {
            Body::Text(text) => vec![Block::Text { text: text.clone() }],
            Body::Blocks(blocks) => blocks.clone(),
        };
        let hashes: Vec<_> = blocks.iter().map(hash).collect();
        let before = self.blocks.insert(message.id.clone(), hashes.clone()).unwrap_or_default();
        let is_new = |place: usize| before.get(place) != Some(&hashes[place]);
        blocks.into_iter().enumerate().filter(|(place, _)| is_new(*place)).map(|(_, block)| block).collect()
    }
}

fn hash(block: &Block) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(block).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

enum Output {
    /// A message a line; one that has grown comes again, whole, under the same id.
    Lines,
    Page(Page),
}

impl Output {
    fn show(&mut self, message: &UnifiedMessage, news: &[Block]) -> io::Result<()> {
        if news.is_empty() {
            return Ok(());
        }
        match self {
            Self::Lines => print(&format!("{}\n", serde_json::to_string(message)?)),
            Self::Page(page) => print(&page.blocks(message.role, news)),
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn write(text: &str) -> Result<(), CommandError> {
    crate::terminal::print(text)
}

#[cfg(test)]
mod tests {
    use gembridge_unified::Role;

    use super::*;

    fn message(blocks: &[&str]) -> UnifiedMessage {
        let blocks = blocks.iter().map(|text| Block::Text { text: (*text).to_owned() }).collect();
        UnifiedMessage {
            id: "m".to_owned(),
            role: Role::Assistant,
            content: Body::Blocks(blocks),
            timestamp: 0,
            tool: "t".to_owned(),
            model: None,
            usage: None,
            original: None,
        }
    }

    #[test]
    fn only_what_is_new_or_has_changed_is_shown() {
        let mut seen = Seen::default();
        let mut shown = |blocks: &[&str]| -> Vec<String> {
            let news = seen.news(&message(blocks));
            let text = |block| if let Block::Text { text } = block { text } else { String::new() };
            news.into_iter().map(text).collect()
        };
        assert_eq!(shown(&["a"]), ["a"]);
        assert_eq!(shown(&["a"]), [] as [&str; 0]);
        assert_eq!(shown(&["a", "b"]), ["b"]);
        assert_eq!(shown(&["a", "c", "d"]), ["c", "d"]);
    }
}
