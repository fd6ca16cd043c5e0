//! Bytes of strangers as one harmless line of text for logs and errors.

use std::fmt::Write as _;

/// At most `limit` bytes of `bytes` on one line: control characters and bidirectional overrides come out escaped,
/// bytes that are not UTF-8 as `\xNN`, a cut is shown by `…`.
pub fn escape_excerpt(bytes: &[u8], limit: usize) -> String {
    let cut = &bytes[..bytes.len().min(limit)];
    let mut text = String::with_capacity(cut.len() + 8);
    for chunk in cut.utf8_chunks() {
        for char in chunk.valid().chars() {
            push_escaped(&mut text, char);
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").unwrap_or_else(|_| unreachable!("a String takes every write"));
        }
    }
    if cut.len() < bytes.len() {
        text.push('…');
    }
    text
}

fn push_escaped(text: &mut String, char: char) {
    let reorders =
        matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if char.is_control() || reorders {
        text.extend(char.escape_default());
    } else {
        text.push(char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_forge_a_log_line_comes_out_escaped() {
        let cases: &[(&[u8], &str)] = &[
            (b"plain", "plain"),
            (b"a\r\nERROR forged", "a\\r\\nERROR forged"),
            (b"\x1b[2Jgone", "\\u{1b}[2Jgone"),
            (b"\xff\xfeok", "\\xff\\xfeok"),
            ("grün \u{202e}dnib".as_bytes(), "grün \\u{202e}dnib"),
        ];
        for (input, expected) in cases {
            assert_eq!(escape_excerpt(input, 200), *expected);
        }
    }

    #[test]
    fn a_long_input_is_cut_and_says_so() {
        assert_eq!(escape_excerpt(&[b'x'; 300], 4), "xxxx…");
    }
}
