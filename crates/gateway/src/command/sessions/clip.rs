//! Outputs of tools are cut for reading: a log of a megabyte hides the conversation.

use std::borrow::Cow;

/// The beginning of a text, with a note of what is missing.
pub fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            Cow::Owned(format!("{}\n… {missing} more characters", &text[..end]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_how_much_is_missing() {
        assert_eq!(clipped("äöü", 3), "äöü");
        assert_eq!(clipped("äöüß!", 3), "äöü\n… 2 more characters");
    }
}
