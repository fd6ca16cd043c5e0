//! A session as one page that needs nothing else: no script, no font, no request. Everything from the session is escaped.

use std::io::{self, Write};

use gembridge_transcripts::{Facts, Located, Summary};
use gembridge_unified::{Block, Body, Role, Source, UnifiedMessage};

use super::Export;
use super::markdown::{known, speaker};
use crate::command::sessions::clip::clipped;
use crate::command::sessions::show::{named_only, plain};
use crate::command::sessions::tool_line::about;

/// Characters of an input or an output.
const MOST: usize = 20_000;

/// Bytes of a picture in base64 that is shown.
const LARGEST_PICTURE: usize = 4 << 20;

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; color: GrayText; }
dd { margin: 0; overflow-wrap: anywhere; }
section { margin: 1.5rem 0; padding-left: 1rem; border-left: 3px solid #8884; }
section.user { border-color: #2f6fde; }
section.assistant { border-color: #2e9e5b; }
h2 { font-size: .85rem; margin: 0 0 .25rem; color: GrayText; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
details { margin: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary.failed { color: #c33; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .5rem; }
img { max-width: 100%; }
</style>
";

pub struct Html {
    summary: Summary,
}

impl Html {
    pub fn new(summary: Summary) -> Self {
        Self { summary }
    }
}

impl Export for Html {
    fn begin(&mut self, out: &mut dyn Write, session: &Located) -> io::Result<()> {
        let title = escaped(self.summary.title.as_deref().unwrap_or("Session"));
        write!(out, "{HEAD}<title>{title}</title>\n<h1>{title}</h1>\n<dl>\n")?;
        for (name, value) in known(session, &self.summary) {
            writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
        }
        writeln!(out, "</dl>")
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        let class = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        };
        if matches!(&message.content, Body::Blocks(blocks) if blocks.is_empty()) {
            return Ok(());
        }
        writeln!(out, "<section class=\"{class}\">\n<h2>{}</h2>", escaped(speaker(message)))?;
        match &message.content {
            Body::Text(text) if message.role == Role::System => folded(out, Look::Plain, "context", text)?,
            Body::Text(text) => writeln!(out, "<div class=\"text\">{}</div>", escaped(text))?,
            Body::Blocks(blocks) => blocks.iter().try_for_each(|found| block(out, found))?,
        }
        writeln!(out, "</section>")
    }

    fn end(&mut self, out: &mut dyn Write, _: &Facts) -> io::Result<()> {
        writeln!(out, "</html>")
    }
}

fn block(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    match block {
        Block::Text { text } => writeln!(out, "<div class=\"text\">{}</div>", escaped(text)),
        Block::Thinking { thinking } => folded(out, Look::Plain, "thinking", thinking),
        Block::ToolUse { name, input, .. } => {
            folded(out, Look::Plain, &format!("{name} {}", about(input)), &format!("{input:#}"))
        }
        Block::ToolResult { content, is_error, exit_code, .. } => {
            let has_failed = *is_error || exit_code.is_some_and(|code| code != 0);
            let code = exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            let (look, word) = if has_failed { (Look::Failed, "failed") } else { (Look::Plain, "result") };
            folded(out, look, &format!("{word}{code}"), &plain(content))?;
            if let Body::Blocks(parts) = content {
                parts.iter().try_for_each(|part| picture(out, part))?;
            }
            Ok(())
        }
        Block::Image { .. } => picture(out, block),
        other => writeln!(out, "<div class=\"text\">{}</div>", escaped(&named_only(other))),
    }
}

#[derive(Clone, Copy)]
enum Look {
    Plain,
    Failed,
}

fn folded(out: &mut dyn Write, look: Look, title: &str, body: &str) -> io::Result<()> {
    let class = match look {
        Look::Plain => "",
        Look::Failed => " class=\"failed\"",
    };
    let (title, body) = (escaped(title), escaped(&clipped(body, MOST)));
    writeln!(out, "<details><summary{class}>{title}</summary><pre>{body}</pre></details>")
}

/// A picture out of the session itself; nothing is fetched.
fn picture(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let Block::Image { source } = block else { return Ok(()) };
    let is_base64 =
        |data: &str| data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    match source {
        Source::Base64 { media_type, data }
            if KINDS.contains(&media_type.as_str()) && data.len() <= LARGEST_PICTURE && is_base64(data) =>
        {
            writeln!(out, "<img alt=\"\" src=\"data:{media_type};base64,{data}\">")
        }
        _ => writeln!(out, "<div class=\"text\">[image]</div>"),
    }
}

/// Text as text, in an element and in an attribute alike. Control characters become visible.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            // Neither obeyed nor lost: control characters, and those that turn the direction of writing.
            steering
                if steering.is_control() || matches!(steering, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s27_text_of_a_session_is_never_markup() {
        assert_eq!(escaped("<img src=x onerror='a\"&'>"), "&lt;img src=x onerror=&#39;a&quot;&amp;&#39;&gt;");
        assert_eq!(escaped("a\u{202e}b\u{0}\n"), "a\u{fffd}b\u{fffd}\n");
    }

    #[test]
    fn a_picture_is_shown_only_if_it_is_one() {
        let shown = |media_type: &str, data: &str| {
            let source = Source::Base64 { media_type: media_type.to_owned(), data: data.to_owned() };
            let mut out = Vec::new();
            picture(&mut out, &Block::Image { source }).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(shown("image/png", "aGk=").contains("<img"));
        for (media_type, data) in [("image/svg+xml", "aGk="), ("image/png", "\"><script>")] {
            assert_eq!(shown(media_type, data), "<div class=\"text\">[image]</div>\n");
        }
    }
}
