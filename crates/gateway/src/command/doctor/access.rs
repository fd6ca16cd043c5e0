//! Who could get in or interfere: damaged lists, a weak token, folders of others.

use super::Check;
use crate::config::entries::Report;
use crate::config::trust::Trust;
use crate::config::{Config, ConfigError};
use crate::keys::{self, KeyFile};
use crate::origins::OriginFile;

pub fn checks(config: &Config) -> Vec<Check> {
    let mut checks = damaged_entries(config);
    checks.extend(weak_token(config));
    checks.extend(foreign_folders(config));
    checks
}

/// A list that cannot be read at all is told elsewhere.
fn damaged_entries(config: &Config) -> Vec<Check> {
    let of = |name: &'static str, reports: Result<Vec<Report>, ConfigError>, fix: &'static str| {
        let reports = reports.unwrap_or_default();
        reports.into_iter().map(move |report| Check::warn(name, report.to_string(), fix))
    };
    let keys = KeyFile::load(&config.folders).map(|file| file.reports());
    let origins = OriginFile::load(&config.folders).map(|file| file.reports());
    let trust = Trust::load(&config.folders.config).map(|trust| trust.reports());
    of("keys", keys, "look at that line, or run `gembridge keys revoke NAME` and `keys create NAME`")
        .chain(of("origins", origins, "look at that line, or remove it and run `gembridge origins allow` again"))
        .chain(of("trust", trust, "look at that line, or remove it and run `gembridge trust add` again"))
        .collect()
}

fn weak_token(config: &Config) -> Option<Check> {
    let weak = keys::weak_token(config.settings.auth.bearer_token.as_ref())?;
    Some(Check::warn(
        "token",
        weak,
        "set `BEARER_TOKEN` to the output of `openssl rand -hex 32`, or use `gembridge keys`",
    ))
}

fn foreign_folders(config: &Config) -> Option<Check> {
    let error = config.folders.check_owners().err()?;
    Some(Check::fail("private", error.to_string(), "until then no other command starts"))
}
