//! Characters that an agent split in two. A character beyond the basic plane is two escapes in JSON; an agent that cuts
//! its text between them sends halves, which are no characters for most clients. The first half waits for the second.

use std::borrow::Cow;

use crate::model::Text;
use bytes::Bytes;

/// The length of `\ud83d`.
const ESCAPE: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Halves {
    waiting: Option<[u8; ESCAPE]>,
}

/// The same text twice: as the body of a JSON string, and as characters.
pub(super) struct Joined<'a> {
    pub escaped: Cow<'a, [u8]>,
    pub plain: Cow<'a, str>,
}

impl Halves {
    /// The text, without the half that stands alone at its end and with the one that waited before it.
    pub(super) fn join<'a>(&mut self, text: &'a Text) -> Joined<'a> {
        let mut escaped = text.to_escaped();
        if let Some(half) = self.waiting.take() {
            let joined = [&half[..], &escaped].concat();
            escaped = Cow::Owned(joined);
        }
        if let Some(half) = half_at_end(&escaped) {
            self.waiting = Some(half);
            let end = escaped.len() - ESCAPE;
            match &mut escaped {
                Cow::Borrowed(bytes) => *bytes = &bytes[..end],
                Cow::Owned(bytes) => bytes.truncate(end),
            }
        }
        let plain = match &escaped {
            // Nothing was joined or held back: the text itself knows how to unescape.
            Cow::Borrowed(bytes) if bytes.len() == text.len() => text.to_str(),
            other => Cow::Owned(Text::escaped(Bytes::copy_from_slice(other)).to_str().into_owned()),
        };
        Joined { escaped, plain }
    }

    /// What still waits when nothing more comes.
    pub(super) fn rest(&mut self) -> Option<[u8; ESCAPE]> {
        self.waiting.take()
    }
}

/// The first half of a pair at the end of the body of a JSON string.
fn half_at_end(escaped: &[u8]) -> Option<[u8; ESCAPE]> {
    let start = escaped.len().checked_sub(ESCAPE)?;
    let half: [u8; ESCAPE] = escaped[start..].try_into().ok()?;
    let is_first_half = matches!(half, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', third, fourth]
        if third.is_ascii_hexdigit() && fourth.is_ascii_hexdigit());
    // A backslash that is itself escaped begins nothing.
    let backslashes = escaped[..start].iter().rev().take_while(|byte| **byte == b'\\').count();
    (is_first_half && backslashes % 2 == 0).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[&'static str]) -> Vec<String> {
        let mut halves = Halves::default();
        let join = |piece: &&'static str| {
            let text = Text::escaped(Bytes::from_static(piece.as_bytes()));
            let Joined { escaped, plain } = halves.join(&text);
            assert_eq!(Text::escaped(Bytes::copy_from_slice(&escaped)).to_str(), plain);
            String::from_utf8(escaped.into_owned()).unwrap()
        };
        pieces.iter().map(join).collect()
    }

    #[test]
    fn the_halves_of_a_character_come_out_together() {
        assert_eq!(joined(&["a\\ud83d", "\\ude00b"]), ["a", "\\ud83d\\ude00b"]);
        assert_eq!(joined(&["\\ud83d", "\\ude00\\ud83d"]), ["", "\\ud83d\\ude00"]);
        assert_eq!(joined(&["\\uD83D", "\\uDE00", "x"]), ["", "\\uD83D\\uDE00", "x"]);
    }

    #[test]
    fn an_escaped_backslash_begins_no_half() {
        assert_eq!(joined(&["\\\\ud83d", "x"]), ["\\\\ud83d", "x"]);
        assert_eq!(joined(&["\\\\\\ud83d", "\\ude00"]), ["\\\\", "\\ud83d\\ude00"]);
    }

    #[test]
    fn whole_characters_do_not_wait() {
        assert_eq!(joined(&["\\ud83d\\ude00", "é", "\\u00e9"]), ["\\ud83d\\ude00", "é", "\\u00e9"]);
    }
}
