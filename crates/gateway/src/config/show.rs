//! `config show`: every value with its source, secrets as a placeholder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::{Config, ConfigFile, Key, Source};

/// One line of the listing.
#[derive(Serialize)]
pub struct Shown {
    pub key: String,
    pub value: Value,
    #[serde(rename = "origin")]
    pub source: Source,
}

/// Every value that the settings have, in the order of their sections.
pub fn values(config: &Config) -> Vec<Shown> {
    let mut shown = Vec::new();
    // Settings are plain data with string keys, which always serialise.
    let tree = serde_json::to_value(&config.settings).unwrap_or_default();
    collect(config, &tree, &Key::default(), &mut shown);
    // Of an agent only what was chosen: the rest is its profile's.
    let agents = serde_json::to_value(&config.agents).unwrap_or_default();
    collect(config, &agents, &Key::dotted("agents"), &mut shown);
    shown
}

/// The keys whose values differ, as far as they may be shown.
pub fn differences(one: &Config, other: &Config) -> Vec<String> {
    let of = |config: &Config| -> BTreeMap<String, Value> {
        values(config).into_iter().map(|shown| (shown.key, shown.value)).collect()
    };
    let (one, other) = (of(one), of(other));
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    keys.into_iter().filter(|key| one.get(*key) != other.get(*key)).cloned().collect()
}

fn collect(config: &Config, value: &Value, at: &Key, shown: &mut Vec<Shown>) {
    match value {
        Value::Object(entries) => {
            for (name, inner) in entries {
                collect(config, inner, &at.child(name), shown);
            }
        }
        leaf => shown.push(Shown { key: at.to_string(), value: leaf.clone(), source: config.source(at).clone() }),
    }
}

/// For people: aligned columns.
pub fn text(config: &Config) -> String {
    let shown: Vec<_> = values(config)
        .into_iter()
        .map(|shown| {
            (
                shown.key,
                if shown.value.is_null() { "not set".to_owned() } else { shown.value.to_string() },
                shown.source,
            )
        })
        .collect();
    let width = |column: fn(&(String, String, Source)) -> &str| {
        shown.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
    };
    let (keys, values) = (width(|row| &row.0), width(|row| &row.1).min(48));
    let mut out = String::new();
    let file = match &config.file {
        ConfigFile::Read(path) => format!("# {}", path.display()),
        ConfigFile::Missing(path) => format!("# {} (not there; defaults apply)", path.display()),
    };
    writeln!(out, "{file}").expect("writing to a String cannot fail");
    for (key, value, source) in &shown {
        writeln!(out, "{key:keys$}  {value:values$}  {source}").expect("writing to a String cannot fail");
    }
    out
}

/// For programs.
pub fn json(config: &Config) -> Value {
    serde_json::json!({
        "file": config.file.path(),
        "file_found": matches!(config.file, ConfigFile::Read(_)),
        "folders": {
            "config": config.folders.config,
            "state": config.folders.state,
            "cache": config.folders.cache,
        },
        "warnings": config.warnings,
        "values": values(config),
    })
}
