//! Secrets in what a child says: the keys it was given, and whatever has the shape of one.

use crate::environment::Environment;

/// What must not leave by way of a log.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<Vec<u8>>,
}

/// Parts of the names of variables whose values are secrets.
const NAMES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// A shorter value is a word that stands in many texts.
const SHORTEST: usize = 8;
/// How the keys of well-known services begin, and how long they are at least.
const BEGINNINGS: [&[u8]; 7] = [b"AIza", b"ya29.", b"sk-", b"gb-", b"ghp_", b"github_pat_", b"eyJ"];
const SHORTEST_KEY: usize = 20;
const HIDDEN: &[u8] = b"[redacted]";

/// Never the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} secrets", self.values.len())
    }
}

impl Secrets {
    /// Those of an environment, by the names of its variables.
    pub fn of(environment: &Environment) -> Self {
        let is_secret = |name: &str| NAMES.iter().any(|part| name.to_ascii_uppercase().contains(part));
        let mut values: Vec<_> = environment
            .iter()
            .filter(|(name, value)| is_secret(&name.to_string_lossy()) && value.len() >= SHORTEST)
            .map(|(_, value)| value.as_encoded_bytes().to_vec())
            .collect();
        // One may contain another: the longest goes first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The same with a mark where a secret was.
    pub fn hide(&self, said: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(said.len());
        let mut rest = said;
        let mut in_word = false;
        while let Some((&first, others)) = rest.split_first() {
            let hidden = match self.values.iter().find(|value| rest.starts_with(value)) {
                Some(value) => value.len(),
                None if in_word => 0,
                None => shaped_like_a_key(rest),
            };
            if hidden > 0 {
                shown.extend_from_slice(HIDDEN);
                rest = &rest[hidden..];
                in_word = false;
            } else {
                shown.push(first);
                rest = others;
                in_word = first.is_ascii_alphanumeric();
            }
        }
        shown
    }
}

/// How much of the beginning of `text` is a key; 0 for none.
fn shaped_like_a_key(text: &[u8]) -> usize {
    if !BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
        return 0;
    }
    let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = text.iter().take_while(|byte| belongs(byte)).count();
    if length >= SHORTEST_KEY { length } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn hidden(said: &str) -> String {
        let environment = Environment::inherit(BTreeMap::from([
            ("VENDOR_API_KEY".into(), "given-to-the-agent".into()),
            ("SHORT_TOKEN".into(), "fake".into()),
            ("HOME".into(), "/home/somebody".into()),
        ]));
        String::from_utf8(Secrets::of(&environment).hide(said.as_bytes())).unwrap()
    }

    #[test]
    fn keys_that_a_child_was_given_and_keys_of_known_shapes_are_hidden() {
        for (said, shown) in [
            ("key=given-to-the-agent!", "key=[redacted]!"),
            ("?key=AIzaSyD0123456789abcdefghijklmnopqrstuvw&x", "?key=[redacted]&x"),
            ("Bearer ya29.a0AfB_byC-0123456789 refused", "Bearer [redacted] refused"),
            ("gb-0123456789abcdef0123456789abcdef", "[redacted]"),
            ("fake stays, /home/somebody too, and sk-short", "fake stays, /home/somebody too, and sk-short"),
            ("task-force-of-more-than-twenty-letters", "task-force-of-more-than-twenty-letters"),
        ] {
            assert_eq!(hidden(said), shown);
        }
    }
}
