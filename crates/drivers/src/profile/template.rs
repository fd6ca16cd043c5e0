//! Text with placeholders such as `{state}`: the only way in which a value reaches an argument, a variable or a file of a launch.

use std::borrow::Cow;

use super::{ProfileError, nearest};

/// The words that may stand in braces. Anything else in braces of that shape is an error, found when the profile is read.
pub(super) const PLACEHOLDERS: &[&str] =
    &["home", "state", "private", "cache", "workspace", "login", "model", "mcp_server", "denied_tools", "native_tools"];

/// What the placeholders stand for in one launch.
pub(super) struct Values<'a> {
    pub agent: &'a str,
    pub home: Option<&'a str>,
    pub state: &'a str,
    pub private: &'a str,
    pub cache: &'a str,
    pub workspace: &'a str,
    pub login: Option<&'a str>,
    pub model: Option<&'a str>,
    pub mcp_server: &'a str,
    pub denied_tools: &'a [String],
    pub native_tools: &'a [String],
}

/// How a value is written into the text around it.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// As it is: arguments, variables, paths.
    Plain,
    /// As inside a double-quoted string, which JSON and TOML write alike: contents of files.
    Quoted,
}

/// Refuses a template that names something unknown, when the profile is read and not when it is launched.
pub(super) fn check(agent: &str, template: &str) -> Result<(), ProfileError> {
    for piece in pieces(template) {
        if let Piece::Placeholder(name) = piece
            && !PLACEHOLDERS.contains(&name)
        {
            return Err(unknown(agent, template, name));
        }
    }
    Ok(())
}

fn unknown(agent: &str, template: &str, placeholder: &str) -> ProfileError {
    ProfileError::UnknownPlaceholder {
        agent: agent.to_owned(),
        template: template.to_owned(),
        placeholder: placeholder.to_owned(),
        nearest: nearest(placeholder, PLACEHOLDERS).map(str::to_owned),
    }
}

pub(super) fn fill(template: &str, values: &Values<'_>, style: Style) -> Result<String, ProfileError> {
    let mut text = String::with_capacity(template.len());
    for piece in pieces(template) {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Placeholder(name) => text.push_str(&values.get(name, template, style)?),
        }
    }
    Ok(text)
}

impl Values<'_> {
    fn get(&self, name: &str, template: &str, style: Style) -> Result<Cow<'_, str>, ProfileError> {
        let missing = |variable| ProfileError::MissingValue {
            agent: self.agent.to_owned(),
            variable,
            template: template.to_owned(),
        };
        let value = match name {
            "home" => self.home.ok_or_else(|| missing("HOME"))?,
            "state" => self.state,
            "private" => self.private,
            "cache" => self.cache,
            "workspace" => self.workspace,
            "login" => self.login.unwrap_or_default(),
            "model" => self.model.unwrap_or_default(),
            "mcp_server" => self.mcp_server,
            "denied_tools" => return Ok(list(self.denied_tools, style)),
            "native_tools" => return Ok(list(self.native_tools, style)),
            _ => return Err(unknown(self.agent, template, name)),
        };
        Ok(match style {
            Style::Plain => Cow::Borrowed(value),
            Style::Quoted => {
                let quoted = serde_json::Value::from(value).to_string();
                Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
            }
        })
    }
}

/// `["a","b"]`, which JSON and TOML write alike; `a,b` in an argument or a variable.
fn list(words: &[String], style: Style) -> Cow<'static, str> {
    Cow::Owned(match style {
        Style::Plain => words.join(","),
        Style::Quoted => serde_json::Value::from(words).to_string(),
    })
}

enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Cuts a template at its placeholders: a brace, lower-case letters and underscores, a brace. JSON's own braces never look so.
fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut searched = 0;
        while let Some(open) = rest[searched..].find('{').map(|at| at + searched) {
            let name_length = rest[open + 1..].bytes().take_while(|b| b.is_ascii_lowercase() || *b == b'_').count();
            let close = open + 1 + name_length;
            if name_length > 0 && rest[close..].starts_with('}') {
                if open > 0 {
                    let (text, tail) = rest.split_at(open);
                    rest = tail;
                    return Some(Piece::Text(text));
                }
                let name = &rest[1..close];
                rest = &rest[close + 1..];
                return Some(Piece::Placeholder(name));
            }
            searched = open + 1;
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::{Style, Values, check, fill};

    fn values<'a>(denied: &'a [String], native: &'a [String]) -> Values<'a> {
        Values {
            agent: "x",
            home: None,
            state: "/s \"q\"",
            private: "/p",
            cache: "/c",
            workspace: "/w",
            login: Some("key"),
            model: None,
            mcp_server: "host-tools",
            denied_tools: denied,
            native_tools: native,
        }
    }

    #[test]
    fn placeholders_are_filled_and_the_braces_of_json_stay() {
        let denied = ["a".to_owned(), "b\"".to_owned()];
        let values = values(&denied, &[]);
        for (template, style, filled) in [
            ("{state}/x", Style::Plain, "/s \"q\"/x"),
            ("\"{state}\"", Style::Quoted, "\"/s \\\"q\\\"\""),
            (r#"{"a":{"b":"{login}"},"c":{}}"#, Style::Quoted, r#"{"a":{"b":"key"},"c":{}}"#),
            ("t = {denied_tools}", Style::Quoted, r#"t = ["a","b\""]"#),
            ("{native_tools}", Style::Quoted, "[]"),
            ("--off={denied_tools}", Style::Plain, "--off=a,b\""),
            ("{{private}}", Style::Plain, "{/p}"),
            ("{model}", Style::Plain, ""),
            ("", Style::Plain, ""),
            ("{", Style::Plain, "{"),
            ("{Home} {1}", Style::Plain, "{Home} {1}"),
        ] {
            assert_eq!(fill(template, &values, style).unwrap(), filled, "of `{template}`");
        }
    }

    #[test]
    fn a_placeholder_that_is_not_known_is_refused_by_name() {
        let error = check("x", "{stat}/a").unwrap_err().to_string();
        assert_eq!(error, "profile `x`: `{stat}` in `{stat}/a` is not known; did you mean `state`?");
        assert!(fill("{home}", &values(&[], &[]), Style::Plain).unwrap_err().to_string().contains("`HOME` is not set"));
    }
}
