//! Makes text from outside harmless for a terminal: what would steer it is shown instead of obeyed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// For text of several lines: line breaks and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// For one line: nothing but printable characters stays.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes what is written to a terminal as [`text`] does. Each call must hold whole characters, as those of `write!` do: what is
/// cut within one is shown as damaged.
pub struct EscapingWriter<W>(pub W);

impl<W: io::Write> io::Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(text(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let must_go = |character: char| steers(character) && !is_kept(character);
    if !text.contains(must_go) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' if must_go('\n') => out.push_str("\\n"),
            '\t' if must_go('\t') => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            steering if must_go(steering) => {
                write!(out, "\\u{{{:x}}}", u32::from(steering)).expect("writing to a String cannot fail");
            }
            harmless => out.push(harmless),
        }
    }
    Cow::Owned(out)
}

/// Control characters of both sets, and those that turn the direction of writing, which can make one command look
/// like another.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_control_characters_are_shown_and_not_obeyed() {
        for (raw, shown) in [
            ("plain é 中 😀", "plain é 中 😀"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{9b}31mb", "a\\u{9b}31mb"),
            ("over\rwrite", "over\\rwrite"),
            ("bell\u{7} del\u{7f} nul\0", "bell\\u{7} del\\u{7f} nul\\u{0}"),
            ("rm \u{202e}txt.exe", "rm \\u{202e}txt.exe"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
        ] {
            assert_eq!(line(raw), shown);
            assert_eq!(text(raw), shown);
        }
    }

    #[test]
    fn line_breaks_and_tabs_stay_in_text_only() {
        assert_eq!(text("a\n\tb"), "a\n\tb");
        assert_eq!(line("a\n\tb"), "a\\n\\tb");
    }

    #[test]
    fn s16_what_is_written_piece_by_piece_is_escaped_as_well() {
        use std::io::Write as _;

        let mut out = EscapingWriter(Vec::new());
        for piece in ["a\u{1b}[2Jb", "c\u{9b}31md é 中"] {
            writeln!(out, "# {piece}").unwrap();
        }
        assert_eq!(String::from_utf8(out.0).unwrap(), "# a\\u{1b}[2Jb\n# c\\u{9b}31md é 中\n");
    }
}
