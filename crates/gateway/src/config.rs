//! The configuration: flags over environment over `.env` over `gembridge.toml` over defaults, each value with its source.
//!
//! Everything is read from the operator's own config folder (or the file named by `--config`). A project folder is
//! never looked at.

pub mod entries;
pub mod env;
pub mod error;
pub mod folders;
#[cfg(test)]
mod fuzz;
pub mod key;
pub mod source;
pub mod private_file;
pub mod schema;
pub mod settings;
pub mod show;
pub mod trust;
pub mod value;

mod agents;
mod dotenv;
mod file;
pub mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gembridge_drivers::profile::Profile;

pub use env::Environment;
pub use error::ConfigError;
pub use folders::Folders;
pub use key::Key;
pub use settings::Settings;
pub use source::Source;

/// What the configuration is made from.
#[derive(Clone)]
pub struct Sources {
    pub environment: Environment,
    /// The file named by `--config`, which must exist.
    pub file: Option<PathBuf>,
    pub flags: Vec<Flag>,
}

/// A setting that was typed.
#[derive(Clone)]
pub struct Flag {
    pub name: &'static str,
    pub key: Key,
    pub value: String,
}

/// Everything that the operator decided.
pub struct Config {
    pub settings: Settings,
    pub folders: Folders,
    pub file: ConfigFile,
    /// The environment with the config folder's `.env` filled in.
    pub environment: Environment,
    /// What was passed over, for the log.
    pub warnings: Vec<String>,
    source_of: BTreeMap<Key, Source>,
    /// `[agents]` as it was written, for `config show`.
    agents: toml::Table,
}

/// The settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFile {
    Read(PathBuf),
    /// Where it would be.
    Missing(PathBuf),
}

impl ConfigFile {
    pub fn path(&self) -> &Path {
        match self {
            Self::Read(path) | Self::Missing(path) => path,
        }
    }
}

impl Config {
    pub fn load(sources: Sources) -> Result<Self, ConfigError> {
        let folders = Folders::from_environment(&sources.environment)?;
        let mut layers = Layers::default();
        let warnings = layers.add_models_file(&folders.config.join("models.json"));
        let file = layers.add_file(sources.file, &folders.config)?;
        let environment = layers.add_variables(&sources.environment, &folders.config.join(".env"))?;
        layers.add_flags(sources.flags)?;
        let agents = layers.table.get("agents").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let settings = Settings::try_from_table(layers.table)?;
        let misspelt = variables::misspelt(&environment)
            .into_iter()
            .map(|(name, meant)| format!("variable `{name}` means nothing; did you mean `{meant}`?"));
        let warnings = warnings.into_iter().chain(misspelt).collect();
        Ok(Self { settings, folders, file, environment, warnings, source_of: layers.source_of, agents })
    }

    /// The profile of every agent: the built-in ones with the operator's changes, and the operator's own.
    pub fn profiles(&self) -> Result<Vec<Profile>, ConfigError> {
        agents::profiles(self)
    }

    /// Where the value of `key` comes from.
    pub fn source(&self, key: &Key) -> &Source {
        self.source_of.get(key).unwrap_or(&Source::Default)
    }
}

impl Settings {
    fn try_from_table(table: toml::Table) -> Result<Self, ConfigError> {
        // Each layer was checked on its own, so this can only fail by a mistake of ours.
        table.try_into().map_err(|error: toml::de::Error| ConfigError::Invalid(error.message().to_owned()))
    }
}

/// The layers joined so far, lowest first.
#[derive(Default)]
struct Layers {
    table: toml::Table,
    source_of: BTreeMap<Key, Source>,
}

impl Layers {
    /// The mapping of the original proxy. A file that is no mapping is passed over with a warning.
    fn add_models_file(&mut self, path: &Path) -> Option<String> {
        let text = match private_file::read_text(path) {
            Ok(text) => text?,
            Err(error) => return Some(format!("`models.json` is passed over: {error}")),
        };
        let mapping = match serde_json::from_str::<BTreeMap<String, value::ModelName>>(&text) {
            Ok(mapping) => mapping,
            Err(error) => {
                let expected = r#"expected a mapping such as {"gpt-4": "gemini-2.5-pro"}"#;
                return Some(format!("`{}` is passed over: {error}; {expected}", path.display()));
            }
        };
        for (name, model) in mapping {
            let value = toml::Value::String(model.as_str().to_owned());
            self.set(&Key::dotted("models").child(&name), value, Source::ModelsFile { path: path.to_owned() });
        }
        None
    }

    fn add_file(&mut self, named: Option<PathBuf>, config_folder: &Path) -> Result<ConfigFile, ConfigError> {
        let is_named = named.is_some();
        let path = named.unwrap_or_else(|| config_folder.join("gembridge.toml"));
        let text = match private_file::read_text(&path)? {
            Some(text) => text,
            None if is_named => {
                return Err(ConfigError::Unreadable { path, error: rustix::io::Errno::NOENT.into() });
            }
            None => return Ok(ConfigFile::Missing(path)),
        };
        let file = file::parse(&path, &text)?;
        for (key, line) in file.lines {
            let found = key.parts().iter().try_fold(None, |at: Option<&toml::Value>, part| {
                Some(Some(match at {
                    None => file.table.get(part)?,
                    Some(value) => value.get(part)?,
                }))
            });
            if let Some(Some(value)) = found {
                self.set(&key, value.clone(), Source::File { path: path.clone(), line });
            }
        }
        Ok(ConfigFile::Read(path))
    }

    fn add_variables(&mut self, environment: &Environment, dotenv: &Path) -> Result<Environment, ConfigError> {
        let text = private_file::read_text(dotenv)?;
        let entries = text.map(|text| dotenv::parse(dotenv, &text)).transpose()?.unwrap_or_default();
        let filled = environment.or(entries.iter().map(|entry| (entry.name.clone(), entry.value.clone())));
        let agents: Vec<_> = self
            .table
            .get("agents")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        let agents: Vec<_> = agents.iter().map(String::as_str).collect();
        // The file first, all of it; then the environment, all of it: a native name in the file is weaker than an
        // original name in the environment.
        let from_file = dotenv::as_environment(&entries);
        for assignment in variables::read(&from_file, &agents)? {
            let line = entries.iter().find(|entry| entry.name == assignment.variable).map_or(0, |entry| entry.line);
            let source = Source::DotEnv { path: dotenv.to_owned(), line, variable: assignment.variable.clone() };
            self.assign(assignment, source)?;
        }
        for assignment in variables::read(environment, &agents)? {
            let source = Source::Environment { variable: assignment.variable.clone() };
            self.assign(assignment, source)?;
        }
        Ok(filled)
    }

    fn assign(&mut self, assignment: variables::Assignment, source: Source) -> Result<(), ConfigError> {
        check(&assignment.key, &assignment.value).map_err(|problem| match &source {
            Source::DotEnv { path, line, .. } => ConfigError::InFile {
                path: path.clone(),
                line: *line,
                problem: format!("`{}`: {problem}", assignment.variable),
            },
            _ => ConfigError::InVariable { variable: assignment.variable.clone(), problem },
        })?;
        self.set(&assignment.key, assignment.value, source);
        Ok(())
    }

    fn add_flags(&mut self, flags: Vec<Flag>) -> Result<(), ConfigError> {
        for flag in flags {
            let value = toml::Value::String(flag.value);
            check(&flag.key, &value).map_err(|problem| ConfigError::InFlag { flag: flag.name, problem })?;
            self.set(&flag.key, value, Source::Flag { name: flag.name });
        }
        Ok(())
    }

    fn set(&mut self, key: &Key, value: toml::Value, source: Source) {
        put(&mut self.table, key.parts(), value);
        self.source_of.insert(key.clone(), source);
    }
}

/// Whether `value` alone makes valid settings.
fn check(key: &Key, value: &toml::Value) -> Result<(), String> {
    let mut table = toml::Table::new();
    put(&mut table, key.parts(), value.clone());
    match table.try_into::<Settings>() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.message().lines().collect::<Vec<_>>().join(", ")),
    }
}

fn put(table: &mut toml::Table, parts: &[String], value: toml::Value) {
    match parts {
        [] => {}
        [last] => drop(table.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let inner = table.entry(first.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
