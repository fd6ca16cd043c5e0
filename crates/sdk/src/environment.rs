//! The environment of this process, which agents inherit: a library follows its caller.

use gembridge_drivers::profile::Environment;

/// Names and values that are text.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate that reads the environment")]
pub(crate) fn of_this_process() -> Environment {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}
