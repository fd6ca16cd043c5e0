//! What an agent wrote about a tool call, taken apart: the description in parentheses and the working folder in brackets.

const WORKING_DIR: &str = "[current working directory ";

/// What a tool call's text says besides the command itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    pub description: Option<String>,
    pub working_dir: Option<String>,
}

/// Reads a tool call's content text first and its title second: versions differ in where they put the two.
///
/// A content text that says anything has said it all: the title is then the bare command, whose parentheses are its own.
pub fn parse(content_text: Option<&str>, title: Option<&str>) -> Parsed {
    let from_content = content_text.map(parse_text).unwrap_or_default();
    if from_content != Parsed::default() {
        return from_content;
    }
    title.map(parse_text).unwrap_or_default()
}

/// `ls -F [current working directory /w] (List files (detailed))`: the last folder and the last balanced group of parentheses.
fn parse_text(text: &str) -> Parsed {
    let groups = balanced_groups(text);
    // A folder named inside a description is the model's text, not the agent's word.
    let folder = working_dirs(text)
        .rfind(|folder| !groups.iter().any(|group| group.open < folder.open && folder.close < group.close));
    let inside_folder =
        |group: &Group| folder.as_ref().is_some_and(|folder| folder.open < group.open && group.close < folder.close);
    // `$(…)` is a command within the command.
    let described = groups.iter().rfind(|group| !inside_folder(group) && !text[..group.open].ends_with('$'));
    Parsed {
        description: described.and_then(|group| some_text(&text[group.open + 1..group.close])),
        working_dir: folder.as_ref().and_then(|folder| some_text(&text[folder.open + WORKING_DIR.len()..folder.close])),
    }
}

fn some_text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The byte positions of an opening mark and its closing one.
struct Group {
    open: usize,
    close: usize,
}

/// The outermost balanced groups of parentheses, in order; a parenthesis without a partner is ordinary text.
fn balanced_groups(text: &str) -> Vec<Group> {
    let mut open = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' => {
                if let Some(start) = open.pop() {
                    while groups.last().is_some_and(|inner| inner.open > start) {
                        groups.pop();
                    }
                    groups.push(Group { open: start, close: at });
                }
            }
            _ => {}
        }
    }
    groups
}

/// Every `[current working directory …]`, in order; brackets within the path are part of it when they are balanced.
fn working_dirs(text: &str) -> impl DoubleEndedIterator<Item = Group> {
    let starts: Vec<usize> = text.match_indices(WORKING_DIR).map(|(at, _)| at).collect();
    starts.into_iter().filter_map(move |open| {
        let rest = &text[open..];
        let close = matching_bracket(rest).or_else(|| rest.find(']'))?;
        Some(Group { open, close: open + close })
    })
}

fn matching_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::{Parsed, parse, parse_text};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Vector {
        why: String,
        content: Option<String>,
        title: Option<String>,
        description: Option<String>,
        working_dir: Option<String>,
    }

    #[test]
    fn every_vector_is_read_as_written() {
        let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../../fixtures/titles.json")).unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let parsed = parse(vector.content.as_deref(), vector.title.as_deref());
            let expected = Parsed { description: vector.description, working_dir: vector.working_dir };
            assert_eq!(parsed, expected, "{}", vector.why);
        }
    }

    /// Text with balanced parentheses only, up to a depth.
    fn balanced() -> impl Strategy<Value = String> {
        let leaf = "[a-zé\\[\\]: ]{0,6}";
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|inner| format!("({inner})")),
                (inner.clone(), inner).prop_map(|(left, right)| format!("{left}{right}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(content in proptest::option::of(".{0,40}"), title in proptest::option::of(".{0,40}")) {
            parse(content.as_deref(), title.as_deref());
        }

        #[test]
        fn brackets_and_parentheses_in_any_order_do_not_make_it_panic(text in r"[\[\]\(\)\$ é]{0,20}(\[current working directory )?[\[\]\(\)/w]{0,8}") {
            parse_text(&text);
        }

        #[test]
        fn a_balanced_description_at_the_end_is_found_whole(command in "[a-z \\-]{0,12}", inner in balanced()) {
            let parsed = parse_text(&format!("{command} ({inner})"));
            let trimmed = inner.trim();
            prop_assert_eq!(parsed.description.as_deref(), (!trimmed.is_empty()).then_some(trimmed));
        }

        #[test]
        fn a_folder_and_a_description_do_not_disturb_each_other(folder in "/[a-zé ()]{0,10}x", inner in "[a-z]{1,8}") {
            let parsed = parse_text(&format!("[current working directory {folder}] ({inner})"));
            prop_assert_eq!(parsed.working_dir, Some(folder));
            prop_assert_eq!(parsed.description, Some(inner));
        }
    }
}
