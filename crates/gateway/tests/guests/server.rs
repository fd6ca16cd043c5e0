//! A gateway with one real agent, a fake of the model that it asks, an operator and a guest.

use std::fs;
use std::path::PathBuf;

use gembridge_testkit::process_table::children_of;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::messages::said;
pub use crate::support::real_agent::Agent;
use crate::support::real_agent::Model;
use crate::support::websocket::{Client, hello};

/// The name and the content of a file in the operator's home.
pub const CANARY_NAME: &str = "canary-name-5512";
pub const CANARY: &str = "canary-content-5512";

/// Dropped in this order: the agents end before the model that they ask.
pub struct TestServer {
    pub gateway: Gateway,
    pub guest_key: String,
    model: Model,
    _runtime: Runtime,
}

impl TestServer {
    pub fn new(agent: Agent) -> Self {
        Self::with_variables(agent, |_| Vec::new())
    }

    /// With more variables for the gateway, which may name folders of its home.
    pub fn with_variables(agent: Agent, further: impl FnOnce(&Home) -> Vec<(&'static str, String)>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let model = runtime.block_on(Model::start(agent));
        let home = Home::for_serving();
        fs::create_dir(home.path("notes")).unwrap();
        fs::write(home.path("notes").join(CANARY_NAME), CANARY).unwrap();
        let further = further(&home);
        let gateway = agent.serve(home, &model, "", &further);
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
        client.call("initialize", &hello()).unwrap();
        client
    }

    /// The file that has the operator's key.
    pub fn key_file(&self) -> PathBuf {
        self.gateway.home.state("key")
    }

    /// What the model was asked so far, each request as text.
    pub fn asked(&self) -> Vec<String> {
        self.model.asked()
    }

    /// How often the model was asked to speak.
    pub fn model_calls(&self) -> usize {
        self.model.calls()
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
