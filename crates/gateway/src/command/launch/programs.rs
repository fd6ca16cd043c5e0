//! The programs that can be launched: what leads each of them to a gateway.

use gembridge_drivers::profile::Version;
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Claude,
    Codex,
    OpenCode,
    Qwen,
    Copilot,
    Aider,
}

/// The gateway, and the model that is asked for.
pub struct Target {
    /// `HOST:PORT`.
    pub address: String,
    pub model: String,
}

/// What leads a program to a gateway.
pub struct Settings {
    pub variables: Vec<(&'static str, Value)>,
    pub arguments: Vec<String>,
    /// A file of settings that goes again.
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Key,
    /// Where the file of settings lies.
    File,
}

impl Value {
    pub fn filled(&self, key: &str, file: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Key => key.to_owned(),
            Self::File => file.to_owned(),
        }
    }

    /// `key` is an expression of the shell.
    pub fn for_shell(&self, key: &str, file: &str) -> String {
        match self {
            Self::Text(text) => format!("'{text}'"),
            Self::Key => key.to_owned(),
            Self::File => format!("\"$PWD/{file}\""),
        }
    }
}

impl Program {
    pub const ALL: [Self; 6] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Qwen, Self::Copilot, Self::Aider];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Its name, and that of its executable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Aider => "aider",
        }
    }

    pub fn installed_by(self) -> &'static str {
        match self {
            Self::Claude => "npm i -g @anthropic-ai/claude-code",
            Self::Codex => "npm i -g @openai/codex",
            Self::OpenCode => "npm i -g opencode-ai",
            Self::Qwen => "npm i -g @qwen-code/qwen-code",
            Self::Copilot => "npm i -g @github/copilot",
            Self::Aider => "pipx install aider-chat",
        }
    }

    /// The version that the tests launch or run, or that was tried by hand.
    pub fn tested(self) -> Version {
        match self {
            Self::Claude => Version::new(2, 1, 325),
            Self::Codex => Version::new(0, 166, 0),
            Self::OpenCode => Version::new(1, 18, 33),
            Self::Qwen => Version::new(0, 24, 4),
            Self::Copilot => Version::new(1, 0, 102),
            Self::Aider => Version::new(0, 86, 2),
        }
    }

    pub fn settings(self, target: &Target) -> Settings {
        let (url, model) = (format!("http://{}", target.address), &target.model);
        let v1 = format!("{url}/v1");
        let text = |text: &str| Value::Text(text.to_owned());
        let (mut arguments, mut file) = (Vec::new(), None);
        let variables = match self {
            Self::Claude => {
                arguments = vec!["--model".to_owned(), model.clone()];
                vec![
                    ("ANTHROPIC_BASE_URL", text(&url)),
                    ("ANTHROPIC_AUTH_TOKEN", Value::Key),
                    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", text("1")),
                ]
            }
            Self::Codex => {
                let provider = format!(
                    "model_providers.gembridge={{name=\"gembridge\",base_url=\"{v1}\",wire_api=\"responses\",env_key=\"GEMBRIDGE_KEY\"}}"
                );
                for setting in [provider, "model_provider=\"gembridge\"".to_owned(), format!("model=\"{model}\"")] {
                    arguments.extend(["-c".to_owned(), setting]);
                }
                vec![("GEMBRIDGE_KEY", Value::Key)]
            }
            Self::OpenCode => {
                let options = json!({ "baseURL": v1, "apiKey": "{env:GEMBRIDGE_KEY}" });
                let provider = json!({
                    "npm": "@ai-sdk/openai-compatible", "name": "gembridge", "options": options, "models": { model: {} },
                });
                let settings = json!({ "provider": { "gembridge": provider }, "model": format!("gembridge/{model}") });
                file = Some(settings.to_string());
                vec![("OPENCODE_CONFIG", Value::File), ("GEMBRIDGE_KEY", Value::Key)]
            }
            Self::Qwen => {
                arguments = vec!["--auth-type".to_owned(), "openai".to_owned()];
                vec![("OPENAI_BASE_URL", text(&v1)), ("OPENAI_API_KEY", Value::Key), ("OPENAI_MODEL", text(model))]
            }
            Self::Copilot => vec![
                ("COPILOT_PROVIDER_BASE_URL", text(&v1)),
                ("COPILOT_PROVIDER_TYPE", text("openai")),
                ("COPILOT_PROVIDER_WIRE_API", text("responses")),
                ("COPILOT_PROVIDER_API_KEY", Value::Key),
                ("COPILOT_MODEL", text(model)),
                ("COPILOT_OFFLINE", text("true")),
            ],
            Self::Aider => {
                arguments = vec!["--model".to_owned(), format!("openai/{model}")];
                vec![("OPENAI_API_BASE", text(&v1)), ("OPENAI_API_KEY", Value::Key)]
            }
        };
        Settings { variables, arguments, file }
    }
}
