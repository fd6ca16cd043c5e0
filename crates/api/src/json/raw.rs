//! Values that are passed on as they were written: schemas first of all.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::value::RawValue;

use super::Skipped;

/// A value as it stands in the body. No key stands twice in it, and it is not nested without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    pub text: &'a str,
    /// What kind of value it is.
    pub kind: Skipped,
}

/// Deeper than any schema that means something.
const DEEPEST: usize = 100;

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        let depth = depth(text);
        if depth > DEEPEST {
            return Err(D::Error::custom(format_args!("a value is nested {depth} deep; {DEEPEST} is the most")));
        }
        let kind = serde_json::from_str(text).map_err(D::Error::custom)?;
        Ok(Self { text, kind })
    }
}

/// How deep the objects and arrays of sound JSON are nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        for (json, expected) in [("1", 0), ("{}", 1), (r#"[{"a":[]},[]]"#, 3), (r#"{"[[\"[":"\\"}"#, 1)] {
            assert_eq!(depth(json), expected, "{json}");
        }
    }

    #[test]
    fn a_value_is_kept_as_it_was_written_unless_it_plays_tricks() {
        let raw: Raw<'_> = serde_json::from_str(r#" {"b": 1.0, "a":[ ]} "#).unwrap();
        assert_eq!((raw.text, raw.kind), (r#"{"b": 1.0, "a":[ ]}"#, Skipped::Object));
        assert!(serde_json::from_str::<Raw<'_>>(r#"{"a":{"b":1,"b":2}}"#).is_err());
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(serde_json::from_str::<Raw<'_>>(&nested(100)).is_ok());
        assert!(serde_json::from_str::<Raw<'_>>(&nested(101)).is_err());
        assert!(serde_json::from_str::<Raw<'_>>(&nested(100_000)).is_err());
    }
}
