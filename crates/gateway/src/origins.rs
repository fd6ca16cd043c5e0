//! Whose pages may call the gateway: `origins.toml` of the config folder. Pages of this machine always may.

use std::path::PathBuf;

use serde::Serialize;
use toml::Value;

use crate::config::entries::{self, Entries, Report};
use crate::config::{ConfigError, Folders};

/// Schemes of browser extensions, whose host is the id of the extension.
const EXTENSIONS: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// One origin, as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Origin(String);

impl entries::Entry for Origin {
    const LIST: &'static str = "origins";
    const WRITTEN_BY: &'static str = "gembridge origins allow";

    fn decode(value: &Value) -> Result<Self, &'static str> {
        let origin = value.as_str().and_then(|text| normal(text).ok());
        origin.map(Self).ok_or("this is not an origin such as `https://app.example.org`")
    }
}

/// The list, as it is on disk.
#[derive(Clone, Debug)]
pub struct OriginFile(Entries<Origin>);

impl OriginFile {
    /// A file that is not there allows nothing beyond this machine.
    pub fn load(folders: &Folders) -> Result<Self, ConfigError> {
        Entries::load(Self::path(folders)).map(Self)
    }

    pub fn path(folders: &Folders) -> PathBuf {
        folders.config.join("origins.toml")
    }

    pub fn origins(&self) -> Vec<String> {
        self.0.good.iter().map(|origin| origin.0.clone()).collect()
    }

    /// What in it is damaged.
    pub fn reports(&self) -> Vec<Report> {
        self.0.reports()
    }
}

/// Adds an origin as browsers write it, which is returned.
pub fn allow(folders: &Folders, origin: &str) -> Result<String, ConfigError> {
    let origin = Origin(normal(origin).map_err(ConfigError::Invalid)?);
    entries::change(&OriginFile::path(folders), |entries: &mut Entries<Origin>| {
        if !entries.good.contains(&origin) {
            entries.good.push(origin.clone());
            entries.good.sort_by(|one, other| one.0.cmp(&other.0));
        }
        Ok(())
    })?;
    Ok(origin.0)
}

pub fn remove(folders: &Folders, origin: &str) -> Result<String, ConfigError> {
    let origin = Origin(normal(origin).map_err(ConfigError::Invalid)?);
    entries::change(&OriginFile::path(folders), |entries: &mut Entries<Origin>| {
        if !entries.good.contains(&origin) {
            let shown = &origin.0;
            let problem = format!("origin `{shown}` is not on the list; `gembridge origins list` shows what is");
            return Err(ConfigError::Invalid(problem));
        }
        entries.good.retain(|listed| *listed != origin);
        Ok(())
    })?;
    Ok(origin.0)
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
        allow(&folders, "https://b.example").unwrap();
        allow(&folders, "https://a.example").unwrap();
        allow(&folders, "https://A.example:443").unwrap();
        assert_eq!(OriginFile::load(&folders).unwrap().origins(), ["https://a.example", "https://b.example"]);
        remove(&folders, "https://a.example").unwrap();
        assert!(remove(&folders, "https://a.example").unwrap_err().to_string().contains("is not on the list"));
        assert_eq!(OriginFile::load(&folders).unwrap().origins(), ["https://b.example"]);
    }

    #[test]
    fn f5_a_damaged_origin_costs_itself_and_parallel_changes_lose_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        std::fs::write(OriginFile::path(&folders), "origins = ['https://a.example', 'canary', 7]\n").unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let folders = &folders;
                scope.spawn(move || allow(folders, &format!("https://{number}.example")).unwrap());
            }
        });
        let file = OriginFile::load(&folders).unwrap();
        assert_eq!(file.origins().len(), 17);
        assert_eq!(file.reports().len(), 2);
        assert!(file.reports().iter().all(|report| !report.to_string().contains("canary")));
    }
}
