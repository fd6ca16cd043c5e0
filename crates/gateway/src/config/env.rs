//! The environment of this process: read here, once, and given to everything else as a map.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables by name. No `Debug`: values are secrets.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// What this process was started with.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn of_this_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// The value of `name`, unless it is unset, empty or not text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// Names and values that are text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }

    /// The same with `fallbacks` for names that are not set here.
    #[must_use]
    pub fn or(&self, fallbacks: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables = self.variables.clone();
        for (name, value) in fallbacks {
            variables.entry(name.into()).or_insert_with(|| value.into());
        }
        Self { variables }
    }

    /// Everything that is text, as the drivers take it.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self { variables: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}
