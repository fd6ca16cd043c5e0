//! A program's version as three numbers, read from whatever its `--version` prints.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de::Error as _};

/// `major.minor.patch`; what follows (`-nightly.3`) does not decide anything here and is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// The first version in a text such as `goose 1.2.3`, `v0.61.0` or `0.61.0-nightly`.
    pub fn find_in(text: &str) -> Option<Self> {
        text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '/' | '@')).find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            word.contains('.').then(|| word.parse().ok()).flatten()
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a version; write it as `1.2.3`")]
pub struct BadVersion(String);

impl FromStr for Version {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadVersion(text.to_owned());
        let plain = text.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = plain.split('.').map(str::parse::<u32>);
        let mut next = || numbers.next().transpose().map_err(|_| bad());
        let (Some(major), minor, patch) = (next()?, next()?, next()?) else { return Err(bad()) };
        if next()?.is_some() {
            return Err(bad());
        }
        Ok(Self { major, minor: minor.unwrap_or(0), patch: patch.unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (text, found) in [
            ("0.61.0\n", Some(Version::new(0, 61, 0))),
            ("v22.1\n", Some(Version::new(22, 1, 0))),
            ("goose 1.2.3 (abc 4.5.6)", Some(Version::new(1, 2, 3))),
            ("@acme/agent@2.6.0-rc.1", Some(Version::new(2, 6, 0))),
            ("no version here 7", None),
            ("1.2.3.4", None),
            ("", None),
        ] {
            assert_eq!(Version::find_in(text), found, "in `{text}`");
        }
    }

    #[test]
    fn versions_order_by_number_not_by_text() {
        assert!(Version::new(0, 9, 0) < Version::new(0, 34, 0));
        assert!(Version::new(0, 61, 0) > Version::new(0, 60, 99));
    }
}
