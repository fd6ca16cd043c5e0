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
    #[error("`{}` is not a regular file; remove what lies there", path.display())]
    NotRegular { path: PathBuf },
    #[error(
        "`{}` is locked by another process that has not let go for seconds; end it, or wait, and try again",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error(
        "`{}` belongs to user {owner}, who could read or change what gembridge keeps there; remove it, or give it to the \
         user that gembridge runs as with `chown`",
        path.display()
    )]
    ForeignOwner { path: PathBuf, owner: u32 },
    #[error(
        "`{}` can be written by other users; run `chmod 700` on it after a look at what lies there, or choose another folder",
        path.display()
    )]
    OpenFolder { path: PathBuf },
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
