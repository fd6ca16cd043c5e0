//! The environment of a child, built from empty: only what is named arrives.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Names that every child gets when the source has them. `LC_*` comes along by prefix.
const BASE: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR", //
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY", //
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Values that do not depend on the source: a child talks to a program, not to a terminal.
const FIXED: &[(&str, &str)] = &[("TERM", "dumb"), ("NO_COLOR", "1")];

/// A complete environment. A child sees these variables, the tag of its run, and nothing else.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The base set and the variables listed in `names`, as far as `source` has them.
    pub fn from_empty<S: AsRef<str>>(source: &BTreeMap<OsString, OsString>, names: &[S]) -> Self {
        let wanted = |name: &OsStr| {
            name.as_bytes().starts_with(b"LC_")
                || BASE.iter().any(|base| name == *base)
                || names.iter().any(|listed| name == listed.as_ref())
        };
        let mut variables: BTreeMap<_, _> =
            source.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
        variables.extend(FIXED.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Self { variables }
    }

    /// Everything in `source`, for a caller whose children may see all that it sees itself.
    pub fn inherit(source: BTreeMap<OsString, OsString>) -> Self {
        Self { variables: source }
    }

    /// Sets one variable, whatever the source said.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Names only: values are secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn text(environment: &Environment) -> Vec<String> {
        environment.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn s15_only_the_base_set_and_listed_names_arrive() {
        let source = source(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("https_proxy", "http://p"),
            ("TERM", "xterm"),
            ("LOGIN_KEY", "k"),
            ("GEMBRIDGE_TOKEN", "canary"),
            ("AWS_SECRET_ACCESS_KEY", "canary"),
            ("REDIS_URL", "canary"),
        ]);
        let environment = Environment::from_empty(&source, &["LOGIN_KEY", "NOT_SET"]).with("EXTRA", "1");
        let expected =
            ["EXTRA=1", "LC_ALL=C", "LOGIN_KEY=k", "NO_COLOR=1", "PATH=/bin", "TERM=dumb", "https_proxy=http://p"];
        assert_eq!(text(&environment), expected);
    }

    #[test]
    fn debug_output_names_variables_but_never_shows_values() {
        let environment = Environment::default().with("LOGIN_KEY", "canary");
        assert_eq!(format!("{environment:?}"), r#"{"LOGIN_KEY"}"#);
    }
}
