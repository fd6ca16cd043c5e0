//! Names of tools: as the client writes them, as agents take them, and as agents write them when they call.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// How agents write `server` and `tool` as one name.
const PREFIXES: [(&str, &str); 4] = [("mcp__", "__"), ("mcp_", "_"), ("", "__"), ("", "_")];
/// What is left of a name at least, however long the server's is: some characters of it, `_`, and the digits.
const LEAST: usize = 24;
const DIGITS: usize = 8;

/// How the names of one server's tools come out at agents.
#[derive(Debug)]
pub struct Naming {
    prefixes: Vec<String>,
    /// The longest name that still fits when an agent has put its prefix before it.
    room: usize,
}

impl Naming {
    pub fn new(server: &str, aliases: &[Arc<str>], limit: usize) -> Self {
        let servers = || std::iter::once(server).chain(aliases.iter().map(AsRef::as_ref));
        let prefixes: Vec<_> =
            servers().flat_map(|server| PREFIXES.map(|(before, after)| format!("{before}{server}{after}"))).collect();
        let longest = prefixes.iter().map(String::len).max().unwrap_or(0);
        Self { prefixes, room: limit.saturating_sub(longest).max(LEAST) }
    }

    /// The name under which agents see a tool: the client's own where agents take it, else what agents take of it and
    /// some digits that tell it from all others. Names of the agents' own tools are no reason to change it: every agent puts
    /// our server's name before it.
    pub fn shown<T>(&self, name: &str, taken: &HashMap<Arc<str>, T>) -> Arc<str> {
        let sound = !name.is_empty() && name.len() <= self.room && name.chars().all(is_sound);
        if sound && !taken.contains_key(name) {
            return name.into();
        }
        let kept: String = name
            .chars()
            .map(|character| if is_sound(character) { character } else { '_' })
            .take(self.room - DIGITS - 1)
            .collect();
        // Another name may read like this one and its digits.
        (0..=taken.len())
            .map(|attempt| Arc::from(format!("{kept}_{}", digits(name, attempt))))
            .find(|shown: &Arc<str>| !taken.contains_key(shown.as_ref()))
            .unwrap_or_else(|| name.into())
    }

    /// The tool that an agent means by a name: the name itself, or what is left of it without the server's.
    pub fn find<'a, T>(&self, called: &str, tools: &'a HashMap<Arc<str>, T>) -> Option<&'a T> {
        let mut rest = called;
        loop {
            if let Some(tool) = tools.get(rest) {
                return Some(tool);
            }
            rest = self.prefixes.iter().find_map(|prefix| rest.strip_prefix(prefix.as_str()))?;
        }
    }
}

/// A character that every agent passes on to its model as it is.
fn is_sound(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn digits(name: &str, attempt: usize) -> String {
    let digest = Sha256::new().chain_update(attempt.to_le_bytes()).chain_update(name).finalize();
    digest.iter().take(DIGITS / 2).fold(String::with_capacity(DIGITS), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("writing to a String cannot fail");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming() -> Naming {
        Naming::new("host-tools", &["gembridge".into()], 64)
    }

    /// Names as a list of tools would show them, one after another.
    fn shown(names: &[&str]) -> Vec<Arc<str>> {
        let mut taken = HashMap::new();
        let naming = naming();
        names
            .iter()
            .map(|name| {
                let shown = naming.shown(name, &taken);
                taken.insert(shown.clone(), *name);
                shown
            })
            .collect()
    }

    #[test]
    fn a_name_that_agents_take_stays_as_it_is() {
        assert_eq!(shown(&["get_weather", "a-b", "X"]), ["get_weather".into(), "a-b".into(), Arc::from("X")]);
    }

    #[test]
    fn a_name_that_agents_do_not_take_is_shortened_and_stays_apart_from_its_likes() {
        let long = "x".repeat(60);
        let names = [long.as_str(), &format!("{long}y"), "dotted.name", "dotted/name", "", "zürich"];
        let all = shown(&names);
        for (index, name) in all.iter().enumerate() {
            assert!(name.len() + "mcp__host-tools__".len() <= 64, "{name}");
            assert!(name.chars().all(is_sound), "{name}");
            assert!(!all[..index].contains(name), "{all:?}");
        }
        assert!(all[2].starts_with("dotted_name_"), "{all:?}");
        assert_eq!(all, shown(&names), "the same names are shown the same way every time");
    }

    #[test]
    fn a_client_that_takes_the_shortened_name_itself_does_not_get_the_other_tool() {
        let hostile = shown(&["a.b"])[0].to_string();
        let both = shown(&[hostile.as_str(), "a.b"]);
        assert_ne!(both[0], both[1]);
    }

    #[test]
    fn the_name_of_the_server_is_taken_off_as_often_as_it_stands_there() {
        let tools =
            HashMap::from([(Arc::from("look"), 1), (Arc::from("mcp_host-tools_odd"), 2), (Arc::from("odd"), 3)]);
        let naming = naming();
        for (called, meant) in [
            ("look", Some(&1)),
            ("mcp_host-tools_look", Some(&1)),
            ("mcp__gembridge__look", Some(&1)),
            ("host-tools_look", Some(&1)),
            ("host-tools__look", Some(&1)),
            ("mcp_host-tools_mcp_host-tools_look", Some(&1)),
            ("gembridge_mcp__host-tools__look", Some(&1)),
            ("mcp_host-tools_odd", Some(&2)),
            ("mcp_host-tools_mcp_host-tools_odd", Some(&2)),
            ("mcp__host-tools__odd", Some(&3)),
            ("mcp_other_look", None),
            ("lookup", None),
            ("", None),
        ] {
            assert_eq!(naming.find(called, &tools), meant, "{called}");
        }
    }
}
