//! The kept end of a command's output.

/// Bytes as they came, the oldest dropped when there are too many. Becomes text only when it is looked at.
#[derive(Debug)]
pub(super) struct Output {
    keep: usize,
    bytes: Vec<u8>,
    truncated: bool,
}

impl Output {
    pub(super) fn keeping(keep: usize) -> Self {
        Self { keep, bytes: Vec::new(), truncated: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Cutting at twice the size makes the moves rare: each byte is moved at most once.
        if self.bytes.len() > self.keep.saturating_mul(2).max(4096) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.bytes.len() > self.keep {
            let from = self.bytes.len() - self.keep;
            // The rest of a character that was cut in half goes too.
            let halved = self.bytes[from..].iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.bytes.drain(..from + halved);
            self.truncated = true;
        }
    }

    /// The end of the output and, after it, of what was written as errors, together within the limit.
    pub(super) fn with_errors(&mut self, errors: &str) -> (String, bool) {
        self.cut();
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if !errors.is_empty() && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(errors);
        let mut from = text.len().saturating_sub(self.keep);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        (text.split_off(from), self.truncated || from > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Output;

    #[test]
    fn the_beginning_is_dropped_at_a_whole_character() {
        let mut output = Output::keeping(5);
        output.push("aé€x".as_bytes());
        assert_eq!(output.with_errors(""), ("€x".to_owned(), true));
        let mut output = Output::keeping(5);
        output.push(b"abcde");
        assert_eq!(output.with_errors(""), ("abcde".to_owned(), false));
    }

    #[test]
    fn errors_follow_the_output_on_a_line_of_their_own() {
        let mut output = Output::keeping(100);
        output.push(b"out");
        assert_eq!(output.with_errors("bad\n"), ("out\nbad\n".to_owned(), false));
        assert_eq!(Output::keeping(100).with_errors("bad"), ("bad".to_owned(), false));
    }

    #[test]
    fn nothing_is_kept_when_nothing_may_be() {
        let mut output = Output::keeping(0);
        output.push(b"abc");
        assert_eq!(output.with_errors("x"), (String::new(), true));
    }

    proptest! {
        #[test]
        fn what_is_kept_is_an_end_of_what_came_and_within_the_limit(pieces in proptest::collection::vec(".{0,50}", 0..200), keep in 0_usize..300) {
            let mut output = Output::keeping(keep);
            for piece in &pieces {
                output.push(piece.as_bytes());
            }
            let all = pieces.concat();
            let (text, truncated) = output.with_errors("");
            prop_assert!(text.len() <= keep);
            prop_assert!(all.ends_with(&text) );
            prop_assert_eq!(truncated, text.len() < all.len());
            prop_assert!(keep < 4 || text.len() + 3 >= keep.min(all.len()), "no more is dropped than needed");
        }
    }
}
