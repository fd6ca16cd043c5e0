//! Where a value comes from. Every value of the configuration has one.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    Default,
    /// The mapping file of the original proxy.
    ModelsFile {
        path: PathBuf,
    },
    File {
        path: PathBuf,
        line: usize,
    },
    DotEnv {
        path: PathBuf,
        line: usize,
        variable: String,
    },
    Environment {
        variable: String,
    },
    Flag {
        name: &'static str,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::ModelsFile { path } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::DotEnv { path, line, variable } => write!(f, "{}:{line} {variable}", path.display()),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}
