//! What is searched for: words that must all stand in a passage, phrases in quotes, and beginnings of words (`inde*`).

use super::IndexError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// In small letters.
    pub text: String,
    is_beginning: bool,
}

/// How much of a passage is shown before and after the first word.
const AROUND: usize = 90;

impl Query {
    pub fn parse(text: &str) -> Result<Self, IndexError> {
        let mut terms = Vec::new();
        // Every second piece stands between quotes.
        for (number, piece) in text.split('"').enumerate() {
            if number % 2 == 1 {
                terms.extend(Term::of(piece.trim()));
            } else {
                terms.extend(piece.split_whitespace().filter_map(Term::of));
            }
        }
        if terms.is_empty() { Err(IndexError::NoWord) } else { Ok(Self { terms }) }
    }

    pub(super) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The query in the language of the index. All that a person typed stands in quotes there, and so commands nothing.
    pub(super) fn expression(&self) -> String {
        let terms = self.terms.iter().map(|term| {
            let end = if term.is_beginning { "*" } else { "" };
            format!("\"{}\"{end}", term.text)
        });
        terms.collect::<Vec<_>>().join(" AND ")
    }

    /// A passage around the first of the words, in one line.
    pub(super) fn snippet(&self, body: &str) -> String {
        let lower = body.to_lowercase();
        let first = self.terms.iter().filter_map(|term| lower.find(&term.text)).min().unwrap_or(0);
        // Small letters may be longer or shorter than the capitals that they stand for: near enough for a beginning.
        let start = body.floor_char_boundary(first.saturating_sub(AROUND).min(body.len()));
        let end = body.ceil_char_boundary((first + 2 * AROUND).min(body.len()));
        // Begins and ends with a whole word where one is near.
        let start =
            if start == 0 { 0 } else { body[start..end].find(char::is_whitespace).map_or(start, |at| start + at) };
        let end = if end == body.len() {
            end
        } else {
            body[start..end].rfind(char::is_whitespace).map_or(end, |at| start + at)
        };
        let line = body[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (if start > 0 { "…" } else { "" }, if end < body.len() { "…" } else { "" });
        format!("{before}{line}{after}")
    }
}

impl Term {
    fn of(text: &str) -> Option<Self> {
        let (text, is_beginning) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let has_word = text.chars().any(char::is_alphanumeric);
        has_word.then(|| Self { text: text.to_lowercase(), is_beginning })
    }

    /// How often it stands in a text of small letters.
    pub fn count(&self, lower: &str) -> usize {
        lower.matches(&self.text).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_phrases_and_beginnings_are_told_apart_and_nothing_is_a_command() {
        for (typed, expression) in [
            ("Flaky test", "\"flaky\" AND \"test\""),
            ("\"Flaky  test\" ci", "\"flaky  test\" AND \"ci\""),
            ("inde*", "\"inde\"*"),
            ("a OR NEAR(b) - col:x", "\"a\" AND \"or\" AND \"near(b)\" AND \"col:x\""),
            ("\"open", "\"open\""),
        ] {
            assert_eq!(Query::parse(typed).unwrap().expression(), expression);
        }
        for empty in ["", " ", "\"\"", "* - !"] {
            assert!(matches!(Query::parse(empty), Err(IndexError::NoWord)), "{empty}");
        }
    }

    #[test]
    fn a_snippet_is_a_line_around_the_first_word() {
        let query = Query::parse("needle").unwrap();
        assert_eq!(query.snippet("a\n needle"), "a needle");
        let long = format!("{} Needle {}", "hay ".repeat(100), "straw ".repeat(100));
        let snippet = query.snippet(&long);
        assert!(snippet.starts_with("…hay") && snippet.ends_with("straw…") && snippet.contains("Needle"), "{snippet}");
        assert!(snippet.chars().count() < 300);
        // Letters whose small form has another length.
        assert!(!query.snippet(&format!("{}needle", "İ".repeat(200))).is_empty());
    }
}
