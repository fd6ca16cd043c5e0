//! `gembridge.toml`: read once, with the line of every value, and refused with a sentence that names the line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use gembridge_drivers::profile::nearest;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::key::Key;
use super::schema::Node;
use super::settings::Settings;

/// A file that was read and understood.
pub struct File {
    pub table: toml::Table,
    /// The line of each value.
    pub lines: BTreeMap<Key, usize>,
}

/// Reads the text of a settings file. `path` is for messages only.
pub fn parse(path: &Path, text: &str) -> Result<File, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| malformed(path, text, &error, &[]))?;
    let mut walk = Walk { path, text, root: &Node::root(), spans: Vec::new() };
    walk.table(document.get_ref(), walk.root, &Key::default())?;
    let spans = walk.spans;
    // The typed reading finds wrong values; its result is not needed, since layers are joined as tables.
    let _checked: Settings = typed(path, text, &spans)?;
    let table = typed(path, text, &spans)?;
    let lines = spans
        .into_iter()
        .filter(|place| place.is_leaf)
        .map(|place| (place.key, line_of(text, place.span.start)))
        .collect();
    Ok(File { table, lines })
}

fn typed<T: DeserializeOwned>(path: &Path, text: &str, spans: &[KeySpan]) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| malformed(path, text, &error, spans))
}

/// Where a key and its value stand in the text.
struct KeySpan {
    key: Key,
    span: Range<usize>,
    is_leaf: bool,
}

struct Walk<'a> {
    path: &'a Path,
    text: &'a str,
    root: &'a Node,
    spans: Vec<KeySpan>,
}

impl Walk<'_> {
    fn table(&mut self, table: &DeTable<'_>, node: &Node, at: &Key) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = at.child(name.get_ref());
            let Some(inner) = node.get(name.get_ref()) else {
                return Err(self.unknown(&key, name.span().start, node));
            };
            let span = name.span().start..value.span().end.max(name.span().end);
            match (value.get_ref(), inner) {
                (DeValue::Table(deeper), Node::Section(_) | Node::Names(_)) => {
                    self.spans.push(KeySpan { key: key.clone(), span, is_leaf: false });
                    self.table(deeper, inner, &key)?;
                }
                _ => self.spans.push(KeySpan { key, span, is_leaf: true }),
            }
        }
        Ok(())
    }

    fn unknown(&self, key: &Key, at: usize, node: &Node) -> ConfigError {
        let siblings: Vec<_> = match node {
            Node::Section(entries) => entries.iter().map(|(name, _)| name.as_str()).collect(),
            Node::Names(_) | Node::Leaf => Vec::new(),
        };
        let elsewhere =
            || self.root.leaves().into_iter().find(|known| known.last() == key.last()).map(|known| known.to_string());
        let way_out = match nearest(key.last(), &siblings) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => match elsewhere() {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known here: `{}`", siblings.join("`, `")),
            },
        };
        ConfigError::InFile {
            path: self.path.to_owned(),
            line: line_of(self.text, at),
            problem: format!("unknown key `{key}`; {way_out}"),
        }
    }
}

fn malformed(path: &Path, text: &str, error: &toml::de::Error, spans: &[KeySpan]) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    // The innermost key around the error; the message alone does not say which one it is.
    let key = spans
        .iter()
        .filter(|place| place.span.start <= span.start && span.end <= place.span.end)
        .min_by_key(|place| place.span.len());
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let problem = match key {
        Some(place) => format!("`{}`: {message}", place.key),
        None => message,
    };
    ConfigError::InFile { path: path.to_owned(), line: line_of(text, span.start), problem }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = parse(Path::new("/c/gembridge.toml"), text).err().expect("was accepted");
        error.to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_key() {
        for (text, expected) in [
            ("[server]\nprot = 1\n", "`/c/gembridge.toml` line 2: unknown key `server.prot`; did you mean `port`?"),
            ("\n[sever]\nport = 1\n", "`/c/gembridge.toml` line 2: unknown key `sever`; did you mean `server`?"),
            ("port = 1\n", "`/c/gembridge.toml` line 1: unknown key `port`; did you mean `server.port`?"),
            (
                "[agents.mine]\ncomand = 'x'\n",
                "`/c/gembridge.toml` line 2: unknown key `agents.mine.comand`; did you mean `command`?",
            ),
            (
                "[turn]\ncolour = 1\n",
                "`/c/gembridge.toml` line 2: unknown key `turn.colour`; known here: `idle`, `total`",
            ),
        ] {
            assert_eq!(refusal(text), expected);
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line_and_what_is_expected() {
        for (text, expected) in [
            ("[server]\n\nport = 70000\n", "line 3: `server.port`: `70000` is not a port from 0 to 65535"),
            ("[turn]\nidle = 'soon'\n", "line 2: `turn.idle`: `soon` is not a duration: whole seconds"),
            ("[log]\nlevel = 'loud'\n", "line 2: `log.level`: unknown variant `loud`, expected one of `error`, `warn`"),
            ("[log]\nfile = 'here.log'\n", "line 2: `log.file`: `here.log` is not an absolute path"),
            ("server = 3\n", "line 1: `server`: invalid type: integer `3`"),
            (
                "[agents.x]\nargs = '--acp'\n",
                "line 2: `agents.x.args`: invalid type: string \"--acp\", expected a sequence",
            ),
            ("[server\n", "line 1: "),
            ("[server]\nport = 1\nport = 2\n", "line 3: "),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn s16_a_refused_file_does_not_repeat_its_secrets() {
        for text in [
            "[auth]\nbearer_token = canary\n",
            "[auth]\nbearer_token = 'canary\n",
            "[auth]\nbearer_token = ['canary']\n",
        ] {
            assert!(!refusal(text).contains("canary"), "{}", refusal(text));
        }
    }

    #[test]
    fn every_value_knows_its_line() {
        let file =
            parse(Path::new("x"), "[server]\nport = 1\n\n[agents.mine]\ncommand = 'm'\nlimits = { spare = 1 }\n")
                .unwrap();
        assert_eq!(file.lines[&Key::dotted("server.port")], 2);
        assert_eq!(file.lines[&Key::dotted("agents.mine.command")], 5);
        assert_eq!(file.lines[&Key::dotted("agents.mine.limits.spare")], 6);
    }
}
