//! What can be wrong with the configuration. All of it is told before anything is started.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`{}` line {line}: {problem}", path.display())]
    InFile { path: PathBuf, line: usize, problem: String },
    #[error("variable `{variable}`: {problem}; change it or unset it")]
    InVariable { variable: String, problem: String },
    #[error("flag `{flag}`: {problem}")]
    InFlag { flag: &'static str, problem: String },
    #[error("cannot read `{}`: {}; check that it exists and that you may read it", path.display(), reason(error))]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("cannot write `{}`: {}; check its folder's permissions and the free space", path.display(), reason(error))]
    Unwritable { path: PathBuf, error: io::Error },
    #[error("neither `HOME` nor `{variable}` is set to an absolute path; set one of them")]
    NoFolder { variable: &'static str },
    #[error("{0}")]
    Invalid(String),
}

/// The system's words without the number behind them.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
