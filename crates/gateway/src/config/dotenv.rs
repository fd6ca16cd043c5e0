//! The `.env` file of the config folder: `NAME=value` lines that fill in for variables that are not set.
//!
//! `dotenvy` is not used: it replaces `$NAME` in values from the environment of the process, which cannot be switched off
//! and would silently change a key with a `$` in it, and its errors have no line number but repeat the line, which may be
//! a secret.

use std::path::Path;

use super::env::Environment;
use super::error::ConfigError;

pub struct Entry {
    pub name: String,
    pub value: String,
    pub line: usize,
}

/// Reads the text of a `.env`; the last line of a name wins. A line that is none is refused without repeating it.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, ConfigError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = entry(line).map_err(|problem| ConfigError::InFile {
            path: path.to_owned(),
            line: at + 1,
            problem: problem.to_owned(),
        })?;
        entries.retain(|earlier| earlier.name != entry.0);
        entries.push(Entry { name: entry.0, value: entry.1, line: at + 1 });
    }
    Ok(entries)
}

/// The entries alone, as if they were an environment.
pub fn as_environment(entries: &[Entry]) -> Environment {
    Environment::default().or(entries.iter().map(|entry| (entry.name.clone(), entry.value.clone())))
}

fn entry(line: &str) -> Result<(String, String), &'static str> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').ok_or("expected `NAME=value`")?;
    let name = name.trim();
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Err("expected `NAME=value` with a name of letters, digits and `_`");
    }
    Ok((name.to_owned(), unquoted(value.trim())?))
}

/// Single quotes keep everything, double quotes know `\n`, `\"` and `\\`, bare values end at ` #`.
fn unquoted(value: &str) -> Result<String, &'static str> {
    let after_quote = |rest: &str| {
        let rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') { Ok(()) } else { Err("text follows the closing quote") }
    };
    if let Some(inner) = value.strip_prefix('\'') {
        let (text, rest) = inner.split_once('\'').ok_or("the closing `'` is missing")?;
        after_quote(rest)?;
        return Ok(text.to_owned());
    }
    let Some(inner) = value.strip_prefix('"') else {
        let end = value.find(" #").unwrap_or(value.len());
        return Ok(value[..end].trim_end().to_owned());
    };
    let mut text = String::new();
    let mut rest = inner.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                after_quote(rest.as_str())?;
                return Ok(text);
            }
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some(escaped @ ('"' | '\\' | '$')) => text.push(escaped),
                Some(other) => text.extend(['\\', other]),
                None => break,
            },
            other => text.push(other),
        }
    }
    Err("the closing `\"` is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_people_write_them() {
        let text = "# note\n\nPORT=8080\nexport HOST = 0.0.0.0 # all\nA='x # y'\nB=\"a \\\"q\\\" \\n z\" # end\nC=\nPORT=9090\n";
        let entries = parse(Path::new(".env"), text).unwrap();
        let read: Vec<_> =
            entries.iter().map(|entry| (entry.name.as_str(), entry.value.as_str(), entry.line)).collect();
        assert_eq!(
            read,
            [("HOST", "0.0.0.0", 4), ("A", "x # y", 5), ("B", "a \"q\" \n z", 6), ("C", "", 7), ("PORT", "9090", 8)]
        );
    }

    #[test]
    fn a_broken_line_is_named_by_its_number_and_not_repeated() {
        for text in [
            "A=1\ncanary\n",
            "A=1\nB='canary\n",
            "A=1\nB=\"canary\n",
            "A=1\nB C=canary\n",
            "A=1\n=canary",
            "A=1\nB='x'canary",
        ] {
            let message = parse(Path::new("/c/.env"), text).err().unwrap().to_string();
            assert!(message.starts_with("`/c/.env` line 2: "), "{message}");
            assert!(!message.contains("canary"), "{message}");
        }
    }
}
