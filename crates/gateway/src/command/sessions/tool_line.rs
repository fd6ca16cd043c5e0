//! A call in a few words: what it was about.

use serde_json::Value;

/// The argument that tells most, by the names that Claude Code has for it.
const TELLING: [&str; 10] =
    ["command", "file_path", "pattern", "query", "url", "skill", "description", "prompt", "path", "title"];

/// One line, not escaped.
pub fn about(input: &Value) -> String {
    let told = TELLING.iter().find_map(|name| input.get(name)?.as_str()).filter(|told| !told.is_empty());
    let line = match (told, input) {
        (Some(told), _) => told.to_owned(),
        (None, Value::Null) => String::new(),
        (None, Value::Object(fields)) if fields.is_empty() => String::new(),
        (None, Value::String(text)) => text.clone(),
        (None, other) => other.to_string(),
    };
    first_line(&line, 100)
}

/// The first line that is not blank, cut at a length.
pub fn first_line(text: &str, most: usize) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_cut = lines.next().is_some();
    match first.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None if is_cut => format!("{first} …"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_told_by_its_telling_argument() {
        assert_eq!(about(&json!({"command": "ls\nwc", "description": "d"})), "ls …");
        assert_eq!(about(&json!({"file_path": "/a"})), "/a");
        assert_eq!(about(&json!({"odd": 1})), r#"{"odd":1}"#);
        assert_eq!(about(&json!({})), "");
        assert_eq!(about(&Value::Null), "");
    }
}
