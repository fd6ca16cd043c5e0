//! Whose pages may call the gateway: `origins.toml` of the config folder. Pages of this machine always may.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::private_file;
use crate::config::{ConfigError, Folders};

/// Schemes of browser extensions, whose host is the id of the extension.
const EXTENSIONS: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    origins: Vec<String>,
}

/// The list, as it is on disk.
#[derive(Clone, Debug)]
pub struct OriginFile {
    path: PathBuf,
    origins: Vec<String>,
}

impl OriginFile {
    /// A file that is not there allows nothing beyond this machine.
    pub fn load(folders: &Folders) -> Result<Self, ConfigError> {
        let path = Self::path(folders);
        let file: File = private_file::read(&path, "gembridge origins allow")?;
        let origins: Result<Vec<_>, _> = file.origins.iter().map(|origin| normal(origin)).collect();
        let invalid = |problem| ConfigError::Invalid(format!("`{}`: {problem}", path.display()));
        let origins = origins.map_err(invalid)?;
        Ok(Self { path, origins })
    }

    pub fn path(folders: &Folders) -> PathBuf {
        folders.config.join("origins.toml")
    }

    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// Adds an origin as browsers write it, which is returned.
    pub fn allow(&mut self, origin: &str) -> Result<String, ConfigError> {
        let origin = normal(origin).map_err(ConfigError::Invalid)?;
        if !self.origins.contains(&origin) {
            self.origins.push(origin.clone());
            self.origins.sort();
            self.save()?;
        }
        Ok(origin)
    }

    pub fn remove(&mut self, origin: &str) -> Result<String, ConfigError> {
        let origin = normal(origin).map_err(ConfigError::Invalid)?;
        let Some(place) = self.origins.iter().position(|listed| *listed == origin) else {
            let problem = format!("origin `{origin}` is not on the list; `gembridge origins list` shows what is");
            return Err(ConfigError::Invalid(problem));
        };
        self.origins.remove(place);
        self.save()?;
        Ok(origin)
    }

    fn save(&self) -> Result<(), ConfigError> {
        let text = toml::to_string(&File { origins: self.origins.clone() })
            .map_err(|error| ConfigError::Invalid(format!("cannot write the origins: {error}")))?;
        private_file::write(&self.path, &text)
    }
}

/// Scheme, host and port as a browser sends them: lower case, and without the port that the scheme implies.
fn normal(typed: &str) -> Result<String, String> {
    let shown = typed.escape_debug();
    let wrong = || {
        format!("`{shown}` is not an origin, such as `https://app.example.org` or `chrome-extension://<the full id>`")
    };
    let text = typed.strip_suffix('/').unwrap_or(typed).to_ascii_lowercase();
    let (scheme, host) = text.split_once("://").ok_or_else(wrong)?;
    if EXTENSIONS.contains(&scheme) {
        let is_id = host.len() >= 8 && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        return if is_id { Ok(text) } else { Err(wrong()) };
    }
    let implied = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(wrong()),
    };
    let host: crate::config::value::HostName = host.parse().map_err(|_| wrong())?;
    let host = host.as_str();
    Ok(format!("{scheme}://{}", host.strip_suffix(implied).unwrap_or(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &std::path::Path) -> Folders {
        Folders { config: root.to_owned(), state: root.to_owned(), cache: root.to_owned() }
    }

    #[test]
    fn s3_an_origin_is_kept_as_browsers_write_it() {
        for (typed, kept) in [
            ("https://App.example", Some("https://app.example")),
            ("https://app.example:443/", Some("https://app.example")),
            ("http://app.example:8080", Some("http://app.example:8080")),
            ("http://[fd00::1]:80", Some("http://[fd00::1]")),
            (
                "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
                Some("chrome-extension://abcdefghijklmnopabcdefghijklmnop"),
            ),
            ("chrome-extension://*", None),
            ("https://*.example", None),
            ("https://app.example/path", None),
            ("https://user@app.example", None),
            ("app.example", None),
            ("file:///x", None),
            ("null", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(normal(typed).ok().as_deref(), kept, "{typed}");
        }
    }

    #[test]
    fn an_origin_is_allowed_listed_once_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let mut file = OriginFile::load(&folders).unwrap();
        file.allow("https://b.example").unwrap();
        file.allow("https://a.example").unwrap();
        file.allow("https://A.example:443").unwrap();
        assert_eq!(OriginFile::load(&folders).unwrap().origins(), ["https://a.example", "https://b.example"]);
        file.remove("https://a.example").unwrap();
        assert!(file.remove("https://a.example").unwrap_err().to_string().contains("is not on the list"));
        assert_eq!(OriginFile::load(&folders).unwrap().origins(), ["https://b.example"]);
    }
}
