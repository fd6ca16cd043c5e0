//! The name of a setting: the path of keys that leads to it.

use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<String>);

impl Key {
    /// A key whose parts contain no dots: `server.port`.
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    #[must_use]
    pub fn child(&self, part: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.to_owned());
        Self(parts)
    }

    pub fn parts(&self) -> &[String] {
        &self.0
    }

    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The native variable: `GEMBRIDGE_SERVER_PORT`.
    pub fn variable(&self) -> String {
        let parts = self.0.iter().map(|part| part.to_ascii_uppercase().replace('-', "_"));
        format!("GEMBRIDGE_{}", parts.collect::<Vec<_>>().join("_"))
    }
}

/// As it would be written in TOML.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            let is_bare =
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            if is_bare { f.write_str(part)? } else { write!(f, "\"{}\"", part.escape_debug())? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_in_toml_and_as_a_variable() {
        assert_eq!(Key::dotted("server.acp_port").to_string(), "server.acp_port");
        assert_eq!(Key::dotted("server.acp_port").variable(), "GEMBRIDGE_SERVER_ACP_PORT");
        assert_eq!(Key::dotted("models").child("gpt-3.5").to_string(), "models.\"gpt-3.5\"");
    }
}
