//! What can be wrong with a profile, an agent of the configuration, or a launch: each a sentence with the way out.

use std::path::PathBuf;

use super::nearest;

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("agent `{agent}` does not run with the driver `{driver}`; leave `driver` out")]
    NoDriver { agent: String, driver: &'static str },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("agent `{agent}` has no `command` and no `url`; name the program to start{}", meant(.nearest.as_deref()))]
    NoCommand { agent: String, nearest: Option<String> },
    #[error("agent `{agent}` cannot be reached at `{url}`: {why}")]
    BadUrl { agent: String, url: String, why: String },
    #[error("agent `{agent}` has both a `url` and a program; name one of them")]
    CommandAndUrl { agent: String },
    #[error("agent `{agent}` has a `key_variable` and no `url`; name the server that the key is for")]
    KeyWithoutUrl { agent: String },
    #[error("`{name}` is not a name for an agent; use lower-case letters, digits, `-` and `_`, 1 to 64 of them")]
    BadName { name: String },
    #[error("`{tool}` is not a tool of agent `{agent}`{}; it has {known}", meant(.nearest.as_deref()))]
    UnknownTool { agent: String, tool: String, nearest: Option<String>, known: String },
    #[error(
        "agent `{agent}`: `{method}` cannot be an extension method; its name begins with `_`, as in `_vendor/method`"
    )]
    BadExtension { agent: String, method: String },
    #[error("`{0}` is not a model name; use up to 128 of `A-Z a-z 0-9 . _ : / -`, and no `-` in front")]
    BadModel(String),
    #[error("agent `{agent}` has no approval mode `{mode}`; leave it out or use `default`")]
    NoMode { agent: String, mode: &'static str },
    #[error("approval mode `{mode}` needs a trusted workspace; trust the folder or use `default`")]
    ModeNeedsTrust { mode: &'static str },
    #[error("workspace `{}` is not an absolute path; write it from `/`", .0.display())]
    RelativeWorkspace(PathBuf),
    #[error("`{}` of `guest_read` or `guest_write` is not an absolute path; write it from `/`", .0.display())]
    RelativePath(PathBuf),
    #[error("agent `{agent}` in mode `agent` needs a folder to work in; set `workspace = \"/abs/path\"`")]
    NoWorkspace { agent: String },
    #[error("agent `{agent}` has no sandbox of its own; leave `sandbox` out")]
    NoSandbox { agent: String },
    #[error("profile `{agent}`: `{{{placeholder}}}` in `{template}` is not known{}", meant(.nearest.as_deref()))]
    UnknownPlaceholder { agent: String, template: String, placeholder: String, nearest: Option<String> },
    #[error("profile `{agent}`: file `{path}` is not under `{{state}}` or `{{private}}`; a launch writes nowhere else")]
    FileOutside { agent: String, path: String },
    #[error("`{variable}` is not set and agent `{agent}` needs it for `{template}`; set it")]
    MissingValue { agent: String, variable: &'static str, template: String },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

/// A TOML file that cannot be used, with the place and, for an unknown key, the one that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct FileError {
    pub file: String,
    pub line: usize,
    pub message: String,
}

impl FileError {
    /// From the error of the TOML reader; `text` is what it read.
    pub fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        Self { file: file.to_owned(), line, message: sentence(error.message()) }
    }

    /// For a check that the TOML reader cannot make: the line is that of the first mention of `key`.
    pub fn at_key(file: &str, text: &str, key: &str, message: impl Into<String>) -> Self {
        let line = text.find(key).map_or(1, |start| line_of(text, start));
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// What serde says of an unknown field or variant, with the valid ones in backticks, becomes a question; anything else stays, on one line.
fn sentence(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let kind = ["unknown field", "unknown variant"].into_iter().find(|kind| message.starts_with(kind));
    let (Some(kind), Some(key)) = (kind, quoted.next()) else { return message.trim_end().replace('\n', "; ") };
    let known: Vec<&str> = quoted.collect();
    let what = if kind == "unknown field" { "key" } else { "value" };
    let way_out = match nearest(key, &known) {
        Some(word) => format!("did you mean `{word}`?"),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("use one of `{}`", known.join("`, `")),
    };
    format!("unknown {what} `{key}`; {way_out}")
}

#[cfg(test)]
mod tests {
    use super::FileError;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its field names matter")]
    struct Sample {
        command: String,
        args: Option<Vec<String>>,
    }

    fn message_of(text: &str) -> String {
        let error = toml::from_str::<Sample>(text).unwrap_err();
        FileError::from_toml("x.toml", text, &error).to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
        assert_eq!(
            message_of("# first\ncommand = \"a\"\nagrs = []\n"),
            "x.toml:3: unknown key `agrs`; did you mean `args`?"
        );
        assert_eq!(
            message_of("command = \"a\"\ncolour = 1\n"),
            "x.toml:2: unknown key `colour`; use one of `command`, `args`"
        );
    }

    #[test]
    fn a_wrong_type_and_broken_syntax_name_their_line() {
        assert!(message_of("\ncommand = 1\n").starts_with("x.toml:2: invalid type: integer `1`, expected a string"));
        assert!(
            message_of("command = \"a\"\nargs = [\n").starts_with("x.toml:2:"),
            "{}",
            message_of("command = \"a\"\nargs = [\n")
        );
        assert!(message_of("args = []\n").contains("missing field `command`"));
    }
}
