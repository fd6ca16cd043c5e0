//! The real agents, each behind a gateway and before a fake of the model that it asks.

use std::fs;
use std::path::PathBuf;

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{
    codex_settings, opencode_settings, real_claude, real_codex, real_gemini, real_opencode, real_qwen, write_script,
};

use serde_json::Value;

use super::gateway::Gateway;
use super::home::Home;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    OpenCode,
    Gemini,
    Qwen,
}

/// The fake that an agent asks.
pub enum Model {
    Scripted(FakeModel),
    Gemini(FakeGemini),
}

impl Model {
    /// Served by the runtime this is called in.
    pub async fn start(agent: Agent) -> Self {
        match agent {
            Agent::Gemini => Self::Gemini(FakeGemini::start().await.unwrap()),
            Agent::Claude | Agent::Codex | Agent::OpenCode | Agent::Qwen => {
                Self::Scripted(FakeModel::start().await.unwrap())
            }
        }
    }

    /// What it was asked so far, each request as text.
    pub fn asked(&self) -> Vec<String> {
        match self {
            Self::Scripted(model) => model.requests().into_iter().map(|request| request.text).collect(),
            Self::Gemini(model) => model.requests().into_iter().map(|request| request.body.to_string()).collect(),
        }
    }

    /// The names of the tools that it was told of when it was last asked to speak.
    pub fn declared(&self) -> Vec<String> {
        let (tools, names): (Value, &[&str]) = match self {
            Self::Scripted(model) => {
                (model.model_calls().pop().unwrap()["tools"].clone(), &["/function/name", "/name", "/description"])
            }
            Self::Gemini(model) => {
                let body = model.model_calls().pop().unwrap().body;
                (body["tools"][0]["functionDeclarations"].clone(), &["/name"])
            }
        };
        let name =
            |tool: &Value| names.iter().find_map(|at| tool.pointer(at)).and_then(Value::as_str).map(str::to_owned);
        tools.as_array().into_iter().flatten().filter_map(name).collect()
    }

    /// The last request to speak, as text. Questions of the agent's own, such as for a title, are left out.
    pub fn last_call(&self) -> String {
        match self {
            Self::Scripted(model) => model.model_calls().pop().unwrap().to_string(),
            Self::Gemini(model) => model.model_calls().pop().unwrap().body.to_string(),
        }
    }

    /// How often it was asked to speak.
    pub fn calls(&self) -> usize {
        match self {
            Self::Scripted(model) => model.model_calls().len(),
            Self::Gemini(model) => model.model_calls().len(),
        }
    }
}

impl Agent {
    /// A gateway with this agent, with more lines in its section and more variables.
    pub fn serve(self, home: Home, model: &Model, settings: &str, further: &[(&'static str, String)]) -> Gateway {
        let (name, program, mut variables) = self.installed(&home, model);
        // Two OpenCode processes that make the database of a new home at the same time fail: there is no spare here.
        let limits = "limits = { spare = 0, start_seconds = 150 }";
        let section = format!("[agents.{name}]\ncommand = '{}'\n{limits}\n{settings}\n", program.display());
        home.configure_serving(&section);
        variables.push(("PATH", std::env::var("PATH").unwrap()));
        variables.extend(further.iter().cloned());
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        home.serve_with(&["--agent", name], &variables)
    }

    /// Its name, its program, and the variables that lead it to its model.
    fn installed(self, home: &Home, model: &Model) -> (&'static str, PathBuf, Vec<(&'static str, String)>) {
        let key = |name| (name, "fake-key".to_owned());
        match (self, model) {
            (Self::Claude, Model::Scripted(model)) => {
                ("claude", real_claude(), vec![key("ANTHROPIC_API_KEY"), ("ANTHROPIC_BASE_URL", model.url())])
            }
            (Self::Codex, Model::Scripted(model)) => {
                // Only its own settings lead it to another model, and they stand in a home that the gateway makes.
                let (settings, program) = (home.path("codex.toml"), home.path("codex-acp"));
                fs::write(&settings, codex_settings(&model.url_v1())).unwrap();
                let script = format!(
                    "#!/bin/sh\n[ -z \"$CODEX_HOME\" ] || cp '{}' \"$CODEX_HOME/config.toml\"\nexec '{}' \"$@\"\n",
                    settings.display(),
                    real_codex().display()
                );
                write_script(&program, &script).unwrap();
                ("codex", program, vec![key("OPENAI_API_KEY")])
            }
            (Self::OpenCode, Model::Scripted(model)) => {
                let settings = home.path("opencode.json");
                fs::write(&settings, opencode_settings(&model.url_v1())).unwrap();
                ("opencode", real_opencode(), vec![("OPENCODE_CONFIG", settings.display().to_string())])
            }
            (Self::Qwen, Model::Scripted(model)) => {
                let variables = vec![
                    key("OPENAI_API_KEY"),
                    ("OPENAI_BASE_URL", model.url_v1()),
                    ("OPENAI_MODEL", "fake".to_owned()),
                ];
                ("qwen", real_qwen(), variables)
            }
            (_, Model::Gemini(model)) => {
                ("gemini", real_gemini(), vec![key("GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL", model.url())])
            }
            (Self::Gemini, Model::Scripted(_)) => unreachable!("it has a model of its own"),
        }
    }
}
