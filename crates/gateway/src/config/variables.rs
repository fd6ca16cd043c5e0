//! Which variable means which setting: the native `GEMBRIDGE_*` names and those of the systems that came before.

use gembridge_drivers::profile::nearest;

use super::env::Environment;
use super::error::ConfigError;
use super::key::Key;
use super::schema::Node;

/// A setting that a variable names.
pub struct Assignment {
    pub key: Key,
    pub variable: String,
    pub value: toml::Value,
}

/// Names of the original systems. A native name wins over them.
const HONOURED: &[(&str, &str, Reading)] = &[
    ("HOST", "server.host", Reading::Text),
    ("PORT", "server.port", Reading::Text),
    ("GEMINI_PORT", "server.acp_port", Reading::Text),
    ("A2A_PORT", "server.a2a_port", Reading::Text),
    ("BEARER_TOKEN", "auth.bearer_token", Reading::Text),
    ("RATE_LIMIT_MAX_REQUESTS", "limits.requests", Reading::Text),
    ("RATE_LIMIT_WINDOW_MS", "limits.window", Reading::Milliseconds),
    ("GEMINI_CLI_TIMEOUT", "turn.total", Reading::Milliseconds),
    // After the switch, so that an exact level wins over it.
    ("GCS_DEBUG", "log.level", Reading::DebugSwitch),
    ("LOG_LEVEL", "log.level", Reading::Text),
    ("LOG_FILE", "log.file", Reading::Text),
    ("GEMINI_CLI_PATH", "agents.gemini.command", Reading::Text),
    ("GEMINI_MODEL", "agents.gemini.model", Reading::Text),
    ("GEMINI_APPROVAL_MODE", "agents.gemini.approval_mode", Reading::Text),
];

const AGENT_PREFIX: &str = "GEMBRIDGE_AGENTS_";

/// The settings of an agent that are one word and so can stand in a variable.
const AGENT_KEYS: &[&str] = &["approval_mode", "command", "mode", "model", "workspace"];

#[derive(Clone, Copy)]
enum Reading {
    Text,
    Milliseconds,
    /// Any value but `0` and `false` means the debug level.
    DebugSwitch,
}

/// Every setting that `environment` names, later ones winning. `agents` are the names known so far.
pub fn read(environment: &Environment, agents: &[&str]) -> Result<Vec<Assignment>, ConfigError> {
    let native = Node::root().leaves();
    let mut found = Vec::new();
    for (variable, key, reading) in HONOURED {
        let key = Key::dotted(key);
        // A native name decides alone: a stray `PORT` of another program cannot spoil it.
        let is_overruled = environment.get(&key.variable()).is_some();
        if let Some(text) = environment.get(variable).filter(|_| !is_overruled)
            && let Some(text) = reading.read(variable, text)?
        {
            found.push(Assignment { value: value(&key, &text), key, variable: (*variable).to_owned() });
        }
    }
    for key in native {
        let variable = key.variable();
        if let Some(text) = environment.get(&variable) {
            found.push(Assignment { value: value(&key, text), key, variable });
        }
    }
    for (variable, text) in environment.iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(key) = agent_key(variable, agents) {
            found.push(Assignment { value: value(&key, text), key, variable: variable.to_owned() });
        }
    }
    Ok(found)
}

/// The key that `connect` sends: a client's, and no setting of the gateway.
pub const CLIENT_KEY: &str = "GEMBRIDGE_KEY";

/// Variables that look like a misspelt native name, each with the name that was meant.
pub fn misspelt(environment: &Environment) -> Vec<(String, String)> {
    let known: Vec<_> = Node::root().leaves().iter().map(Key::variable).collect();
    let stray = environment.iter().map(|(name, _)| name).filter(|name| {
        name.starts_with("GEMBRIDGE_")
            && *name != CLIENT_KEY
            && !name.starts_with(AGENT_PREFIX)
            && !known.iter().any(|known| known == name)
    });
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    let meant = |name: &str| nearest(name, &known).map(|meant| (name.to_owned(), meant.to_owned()));
    stray.filter_map(meant).collect()
}

impl Reading {
    fn read(self, variable: &str, text: &str) -> Result<Option<String>, ConfigError> {
        match self {
            Self::Text => Ok(Some(text.to_owned())),
            Self::Milliseconds => match text.trim().parse::<u64>() {
                Ok(millis) => Ok(Some(format!("{millis}ms"))),
                Err(_) => Err(ConfigError::InVariable {
                    variable: variable.to_owned(),
                    problem: format!("`{text}` is not a number of milliseconds"),
                }),
            },
            Self::DebugSwitch => Ok((!matches!(text, "0" | "false")).then(|| "debug".to_owned())),
        }
    }
}

/// What a person may write more freely in a variable than in a file.
fn value(key: &Key, text: &str) -> toml::Value {
    let text = match key.to_string().as_str() {
        "log.level" => text.to_ascii_lowercase(),
        // A shell's user means the folder that the shell is in.
        "log.file" | "log.errors_file" => {
            std::path::absolute(text).map_or_else(|_| text.to_owned(), |path| path.to_string_lossy().into_owned())
        }
        _ => text.to_owned(),
    };
    toml::Value::String(text)
}

fn agent_key(variable: &str, agents: &[&str]) -> Option<Key> {
    let rest = variable.strip_prefix(AGENT_PREFIX)?;
    AGENT_KEYS.iter().find_map(|last| {
        let name = rest.strip_suffix(&last.to_ascii_uppercase())?.strip_suffix('_').filter(|name| !name.is_empty())?;
        let spelled = |agent: &&&str| agent.to_ascii_uppercase().replace('-', "_") == name;
        let agent = agents.iter().find(spelled).map_or_else(|| name.to_ascii_lowercase(), |agent| (*agent).to_owned());
        Some(Key::dotted("agents").child(&agent).child(last))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(variables: [(&str, &str); N], expected: &[(&str, &str)]) {
        let found = read(&Environment::from(variables), &["my-agent"]).unwrap();
        let mut settled = std::collections::BTreeMap::new();
        for assignment in found {
            settled.insert(assignment.key.to_string(), assignment.value.as_str().unwrap().to_owned());
        }
        let settled: Vec<_> = settled.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(settled, expected);
    }

    #[test]
    fn every_name_of_the_original_systems_is_honoured() {
        check([("PORT", "1"), ("HOST", "::1")], &[("server.host", "::1"), ("server.port", "1")]);
        check([("BEARER_TOKEN", "t")], &[("auth.bearer_token", "t")]);
        check([("GEMINI_CLI_PATH", "gem")], &[("agents.gemini.command", "gem")]);
        check([("GEMINI_CLI_TIMEOUT", "30000")], &[("turn.total", "30000ms")]);
        check([("RATE_LIMIT_MAX_REQUESTS", "5")], &[("limits.requests", "5")]);
        check([("RATE_LIMIT_WINDOW_MS", "500")], &[("limits.window", "500ms")]);
        check([("LOG_LEVEL", "INFO"), ("LOG_FILE", "/l")], &[("log.file", "/l"), ("log.level", "info")]);
        check([("GEMINI_PORT", "4444")], &[("server.acp_port", "4444")]);
        check([("A2A_PORT", "41242")], &[("server.a2a_port", "41242")]);
        check([("GEMINI_MODEL", "m")], &[("agents.gemini.model", "m")]);
        check([("GEMINI_APPROVAL_MODE", "yolo")], &[("agents.gemini.approval_mode", "yolo")]);
        check([("GCS_DEBUG", "1")], &[("log.level", "debug")]);
        check([("GCS_DEBUG", "0")], &[]);
        check([("GCS_DEBUG", "1"), ("LOG_LEVEL", "warn")], &[("log.level", "warn")]);
    }

    #[test]
    fn a_native_name_wins_and_an_empty_one_is_none() {
        check([("PORT", "1"), ("GEMBRIDGE_SERVER_PORT", "2")], &[("server.port", "2")]);
        check([("GEMINI_CLI_TIMEOUT", "soon"), ("GEMBRIDGE_TURN_TOTAL", "5m")], &[("turn.total", "5m")]);
        check([("PORT", "1"), ("GEMBRIDGE_SERVER_PORT", "")], &[("server.port", "1")]);
        check([("GEMBRIDGE_TOKEN", "canary"), ("GEMBRIDGE_RUN", "x")], &[]);
    }

    #[test]
    fn an_agents_variable_finds_the_agent_by_its_name() {
        check([("GEMBRIDGE_AGENTS_MY_AGENT_APPROVAL_MODE", "plan")], &[("agents.my-agent.approval_mode", "plan")]);
        check([("GEMBRIDGE_AGENTS_QWEN_MODEL", "q")], &[("agents.qwen.model", "q")]);
        check([("GEMBRIDGE_AGENTS_MODEL", "q")], &[]);
    }

    #[test]
    fn a_misspelt_native_name_is_noticed() {
        let environment = Environment::from([("GEMBRIDGE_SERVER_PROT", "1"), ("GEMBRIDGE_TOKEN", "canary")]);
        assert_eq!(misspelt(&environment), [("GEMBRIDGE_SERVER_PROT".to_owned(), "GEMBRIDGE_SERVER_PORT".to_owned())]);
    }
}
