//! A gateway with one real agent, a fake of the model that it asks, an operator and a guest.

use std::fs;
use std::path::PathBuf;

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::process_table::children_of;
use gembridge_testkit::{
    codex_settings, opencode_settings, real_claude, real_codex, real_gemini, real_opencode, write_script,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::messages::said;
use crate::support::websocket::Client;

/// The name and the content of a file in the operator's home.
pub const CANARY_NAME: &str = "canary-name-5512";
pub const CANARY: &str = "canary-content-5512";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    OpenCode,
    Gemini,
}

/// Dropped in this order: the agents end before the model that they ask.
pub struct TestServer {
    pub gateway: Gateway,
    pub guest_key: String,
    model: Model,
    _runtime: Runtime,
}

enum Model {
    Scripted(FakeModel),
    Gemini(FakeGemini),
}

impl TestServer {
    pub fn new(agent: Agent) -> Self {
        Self::with_variables(agent, |_| Vec::new())
    }

    /// With more variables for the gateway, which may name folders of its home.
    pub fn with_variables(agent: Agent, further: impl FnOnce(&Home) -> Vec<(&'static str, String)>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let model = match agent {
            Agent::Gemini => Model::Gemini(runtime.block_on(FakeGemini::start()).unwrap()),
            Agent::Claude | Agent::Codex | Agent::OpenCode => {
                Model::Scripted(runtime.block_on(FakeModel::start()).unwrap())
            }
        };
        let home = Home::for_serving();
        fs::create_dir(home.path("notes")).unwrap();
        fs::write(home.path("notes").join(CANARY_NAME), CANARY).unwrap();
        let (name, program, mut variables) = agent.installed(&home, &model);
        // Two OpenCode processes that make the database of a new home at the same time fail: there is no spare here.
        let settings = "limits = { spare = 0, start_seconds = 150 }";
        home.configure_serving(&format!("[agents.{name}]\ncommand = '{}'\n{settings}\n", program.display()));
        variables.push(("PATH", std::env::var("PATH").unwrap()));
        variables.extend(further(&home));
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let gateway = home.serve_with(&["--agent", name], &variables);
        let guest_key = gateway.home.key("ann");
        Self { gateway, guest_key, model, _runtime: runtime }
    }

    pub fn guest(&self) -> Client {
        self.client(&self.guest_key)
    }

    pub fn operator(&self) -> Client {
        self.client(&self.gateway.key)
    }

    fn client(&self, key: &str) -> Client {
        let mut client = Client::connect_to(self.gateway.address, key, "/acp").expect("it is let in");
        client.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
        client
    }

    /// The file that has the operator's key.
    pub fn key_file(&self) -> PathBuf {
        self.gateway.home.state("key")
    }

    /// What the model was asked so far, each request as text.
    pub fn asked(&self) -> Vec<String> {
        match &self.model {
            Model::Scripted(model) => model.requests().into_iter().map(|request| request.text).collect(),
            Model::Gemini(model) => model.requests().into_iter().map(|request| request.body.to_string()).collect(),
        }
    }

    /// How often the model was asked to speak.
    pub fn model_calls(&self) -> usize {
        match &self.model {
            Model::Scripted(model) => model.model_calls().len(),
            Model::Gemini(model) => model.model_calls().len(),
        }
    }

    /// All processes below the gateway.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = vec![self.gateway.pid()];
        let mut looked_at = 0;
        while let Some(pid) = found.get(looked_at) {
            found.extend(children_of(*pid));
            looked_at += 1;
        }
        found.split_off(1)
    }
}

impl Agent {
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
            (_, Model::Gemini(model)) => {
                ("gemini", real_gemini(), vec![key("GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL", model.url())])
            }
            (Self::Gemini, Model::Scripted(_)) => unreachable!("it has a model of its own"),
        }
    }
}

/// A turn of these blocks: everything that came, as text, and what the agent said.
pub fn prompted(client: &mut Client, session: &str, blocks: &Value) -> (String, String) {
    let id = client.request("session/prompt", &json!({ "sessionId": session, "prompt": blocks }));
    let messages = client.until(|message| message["id"] == id && message.get("method").is_none());
    (messages.iter().map(Value::to_string).collect(), said(&messages))
}

/// A prompt whose model calls this tool and then says that it is done.
pub fn calling(call: &Value) -> String {
    let steps = json!({ "calls": [[{ "call": call }], [{ "text": "done" }]] });
    format!("please SCRIPT:{steps}:END")
}
