//! Text that stays in the shape in which it arrived.
//!
//! Most dialects carry text as a JSON string. Unescaping it on the way in and escaping it again on the way out
//! costs more than everything else that happens to a token, so a [`Text`] keeps the escaped body and unescapes
//! only for a reader that needs characters.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A piece of text: plain, or the body of a JSON string that nobody had to unescape yet.
#[derive(Clone)]
pub struct Text {
    bytes: Bytes,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Escaped,
}

impl Text {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { bytes: Bytes::from(text.into().into_bytes()), form: Form::Plain }
    }

    /// A slice of UTF-8, which is not copied.
    pub fn shared(utf8: Bytes) -> Self {
        Self { bytes: utf8, form: Form::Plain }
    }

    /// The same with bytes of its own, where they may be a slice of something larger.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { bytes: Bytes::copy_from_slice(&self.bytes), form: self.form }
    }

    /// Takes the body of a JSON string (without its quotes) as it stood in a parsed document.
    pub fn escaped(body: Bytes) -> Self {
        Self { bytes: body, form: Form::Escaped }
    }

    /// The characters.
    pub fn to_str(&self) -> Cow<'_, str> {
        let raw = String::from_utf8_lossy(&self.bytes);
        match self.form {
            Form::Escaped if raw.contains('\\') => Cow::Owned(unescape(&raw)),
            Form::Escaped | Form::Plain => raw,
        }
    }

    /// The body of a JSON string with these characters, ready to stand between two quotes.
    pub fn to_escaped(&self) -> Cow<'_, [u8]> {
        match self.form {
            Form::Escaped => Cow::Borrowed(&self.bytes),
            Form::Plain if self.bytes.iter().all(|byte| is_unescaped(*byte)) => Cow::Borrowed(&self.bytes),
            Form::Plain => Cow::Owned(escape(&self.to_str()).into_bytes()),
        }
    }

    /// The bytes it takes, as carried. Zero exactly when there is no character.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where this text lies inside `frame`, if it is a slice of it.
    pub fn range_in(&self, frame: &Bytes) -> Option<std::ops::Range<usize>> {
        let start = (self.bytes.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
        let end = start.checked_add(self.bytes.len())?;
        (self.form == Form::Escaped && end <= frame.len()).then_some(start..end)
    }
}

/// A byte that stands for itself in a JSON string.
fn is_unescaped(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\'
}

fn escape(text: &str) -> String {
    use fmt::Write as _;

    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < '\u{20}' => {
                write!(out, "\\u{:04x}", u32::from(control)).expect("writing to a String cannot fail");
            }
            other => out.push(other),
        }
    }
    out
}

/// Reads escapes as JSON defines them; a lone surrogate or a broken escape becomes U+FFFD.
fn unescape(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut tail = rest.chars();
        match tail.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let (character, used) = unicode_escape(&rest[1..]);
                out.push(character);
                rest = &rest[1 + used..];
                continue;
            }
            Some(itself @ ('"' | '\\' | '/')) => out.push(itself),
            Some(_) | None => {
                out.push(char::REPLACEMENT_CHARACTER);
                continue;
            }
        }
        rest = tail.as_str();
    }
    out.push_str(rest);
    out
}

/// Reads what follows `\u`: the character and how many bytes it took.
fn unicode_escape(text: &str) -> (char, usize) {
    let unit = |text: &str| {
        let hex = text.get(..4).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u32::from_str_radix(hex, 16).ok()
    };
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if !(0xD800..0xDC00).contains(&first) {
        return (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4);
    }
    let second = text[4..].strip_prefix("\\u").and_then(unit).filter(|low| (0xDC00..0xE000).contains(low));
    match second {
        Some(low) => {
            let scalar = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
        }
        None => (char::REPLACEMENT_CHARACTER, 4),
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

impl Hash for Text {
    /// Those that are equal have the same, whatever form they are in.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_str().hash(state);
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        (self.form == other.form && self.bytes == other.bytes) || self.to_str() == other.to_str()
    }
}

impl Eq for Text {}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_str())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(escaped: &'static str, plain: &str) {
        assert_eq!(Text::escaped(Bytes::from_static(escaped.as_bytes())).to_str(), plain);
    }

    #[test]
    fn escapes_are_read_as_json_defines_them() {
        check("plain", "plain");
        check(r#"a\nb\t\"c\"\\d\/"#, "a\nb\t\"c\"\\d/");
        check(r"\u00e9\u4e2d", "é中");
        check(r"\ud83d\ude00!", "😀!");
    }

    #[test]
    fn a_broken_escape_becomes_the_replacement_character_and_never_panics() {
        check(r"\ud83d", "\u{fffd}");
        check(r"\ud83dx", "\u{fffd}x");
        check(r"\u12", "\u{fffd}12");
        check("end\\", "end\u{fffd}");
        check(r"\ud83d\u0041", "\u{fffd}A");
        check("\\u4é中", "\u{fffd}4é中");
    }

    #[test]
    fn plain_text_survives_escaping_and_unescaping() {
        for sample in ["", "plain", "\"quoted\" \\ \n\r\t\u{1}\u{7f}", "é 中 😀 \u{202e}rtl"] {
            let escaped = Text::plain(sample).to_escaped().into_owned();
            assert_eq!(Text::escaped(Bytes::from(escaped)).to_str(), sample);
        }
    }

    #[test]
    fn a_slice_of_a_frame_knows_its_place() {
        let frame = Bytes::from_static(b"{\"text\":\"hello\"}");
        let text = Text::escaped(frame.slice(9..14));
        assert_eq!(text.range_in(&frame), Some(9..14));
        assert_eq!(Text::plain("hello").range_in(&frame), None);
    }

    #[test]
    fn an_escape_that_json_does_not_know_becomes_the_replacement_character() {
        check(r"a\xb", "a\u{fffd}xb");
        check(r"\u+123", "\u{fffd}+123");
        check(r"\ud83d\u+e00", "\u{fffd}\u{fffd}+e00");
        check("\\😀", "\u{fffd}😀");
    }

    proptest::proptest! {
        #[test]
        fn any_text_survives_escaping_and_unescaping(plain in proptest::prelude::any::<String>()) {
            let text = Text::plain(plain.clone());
            let escaped = Bytes::from(text.to_escaped().into_owned());
            proptest::prop_assert!(!escaped.iter().any(|byte| *byte < 0x20), "no control character is left");
            let back = Text::escaped(escaped);
            proptest::prop_assert_eq!(back.to_str(), plain);
            proptest::prop_assert_eq!(back, text);
        }

        #[test]
        fn arbitrary_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(byte(), 0..64)) {
            let text = Text::escaped(Bytes::from(bytes.clone()));
            proptest::prop_assert_eq!(text.is_empty(), bytes.is_empty());
            let again = Text::plain(text.to_str().into_owned());
            proptest::prop_assert_eq!(&again, &text);
        }
    }

    /// Any byte, the ones that escapes are made of more often.
    fn byte() -> impl proptest::strategy::Strategy<Value = u8> {
        proptest::prop_oneof![proptest::prelude::any::<u8>(), proptest::sample::select(&b"\\\\\\uudDcC89+\"n/"[..])]
    }
}
