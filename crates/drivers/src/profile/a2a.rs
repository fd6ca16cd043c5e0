//! How an agent is reached that is an A2A server.

use hyper::Uri;
use serde::Deserialize;

use super::ProfileError;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2a {
    /// Where a server runs already. Only the operator's configuration names one; without it the profile's command is started.
    #[serde(skip)]
    pub address: Option<Uri>,
    /// The variable with the key for that server.
    #[serde(skip)]
    pub key_variable: Option<String>,
    #[serde(default)]
    pub cancel: CancelBy,
    /// How the profile's command is started, where no address is named.
    pub server: Option<A2aServer>,
}

/// A server that we start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2aServer {
    /// The variable that names its port. It is told 0, so that the system chooses.
    pub port_variable: String,
    pub runtime: Runtime,
    pub session_settings: SessionSettings,
}

/// What the server is written in: by what it is kept on loopback and behind a key, where it does neither by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    Node,
}

/// How the folder of a session tells the server of a client's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionSettings {
    /// `.gemini/settings.json`, which is read when a task begins; the first message names the folder.
    Gemini,
}

/// How a turn is ended before its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelBy {
    /// By cancelling its task, which takes no message afterwards. The conversation goes on in another.
    #[default]
    Task,
    /// By closing its connection, after which the task goes on. For servers whose tasks are whole conversations.
    Connection,
}

/// An address of the configuration, as far as it can be checked without asking there.
pub(super) fn address(agent: &str, url: &str) -> Result<Uri, ProfileError> {
    let bad = |why: &str| ProfileError::BadUrl { agent: agent.to_owned(), url: url.to_owned(), why: why.to_owned() };
    let address: Uri = url.parse().map_err(|_| bad("it cannot be read"))?;
    if !matches!(address.scheme_str(), Some("http" | "https")) {
        return Err(bad("it begins with neither `http://` nor `https://`"));
    }
    if address.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(bad("it has a name or a password in it; name a variable with the key in `key_variable`"));
    }
    match address.host() {
        Some(host) if !host.is_empty() => Ok(address),
        _ => Err(bad("it has no host")),
    }
}
