//! The schema that the protocol publishes, and messages held against it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::gateway::read_lines;
use crate::support::script::repository;

/// What an agent may say, each kind by its own definition. Our own methods only have to be messages of JSON-RPC.
pub struct Published {
    definitions: BTreeMap<&'static str, Validator>,
}

/// The methods whose answers we give, and what they are called in the schema.
const RESULTS: [(&str, &str); 10] = [
    ("initialize", "InitializeResponse"),
    ("authenticate", "AuthenticateResponse"),
    ("session/new", "NewSessionResponse"),
    ("session/load", "LoadSessionResponse"),
    ("session/resume", "ResumeSessionResponse"),
    ("session/list", "ListSessionsResponse"),
    ("session/prompt", "PromptResponse"),
    ("session/set_mode", "SetSessionModeResponse"),
    ("session/set_config_option", "SetSessionConfigOptionResponse"),
    ("session/close", "CloseSessionResponse"),
];

/// What we say of our own accord.
const SAID: [(&str, &str); 4] = [
    ("session/update", "SessionNotification"),
    ("session/request_permission", "RequestPermissionRequest"),
    ("elicitation/create", "CreateElicitationRequest"),
    ("$/cancel_request", "CancelRequestNotification"),
];

impl Published {
    /// As it came with the TypeScript library.
    pub fn load() -> Self {
        let file = "tests/clients/node/node_modules/@agentclientprotocol/sdk/schema/v1/schema.json";
        let text = fs::read_to_string(repository().join(file)).expect("`make test` installs it");
        let schema: Value = serde_json::from_str(&text).unwrap();
        let names =
            RESULTS.iter().chain(&SAID).map(|(_, name)| *name).chain(["Error", "RequestId", "DeleteSessionResponse"]);
        let definition = |name: &'static str| {
            assert!(schema["$defs"].get(name).is_some(), "the schema has no `{name}`");
            let one =
                json!({ "$schema": schema["$schema"], "$ref": format!("#/$defs/{name}"), "$defs": schema["$defs"] });
            (name, jsonschema::validator_for(&one).unwrap())
        };
        Self { definitions: names.map(definition).collect() }
    }

    /// Checks every message that a tap shows us sending. How many there were.
    pub fn check_tap(&self, file: &Path) -> usize {
        let mut asked: HashMap<(u64, String), String> = HashMap::new();
        let mut checked = 0;
        for line in read_lines(file) {
            let (client, message) = (line["client"].as_u64().unwrap(), &line["message"]);
            let id = message["id"].to_string();
            match (line["type"].as_str().unwrap(), message["method"].as_str()) {
                ("client:message", Some(method)) if message.get("id").is_some() => {
                    asked.insert((client, id), method.to_owned());
                }
                ("agent:message", method) => {
                    let answered = if method.is_none() { asked.remove(&(client, id)) } else { None };
                    self.check(message, answered.as_deref());
                    checked += 1;
                }
                _ => {}
            }
        }
        checked
    }

    /// Checks a message of ours; an answer with the method that it is for.
    #[track_caller]
    pub fn check(&self, message: &Value, answers: Option<&str>) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if let Some(method) = message["method"].as_str() {
            if message.get("id").is_some() {
                self.fits("RequestId", &message["id"], message);
            }
            match SAID.iter().find(|(said, _)| *said == method) {
                Some((_, definition)) => self.fits(definition, &message["params"], message),
                None => {
                    assert!(method.starts_with('_') && message["params"].is_object(), "no method of ACP: {message}");
                }
            }
            return;
        }
        assert_ne!(message.get("result").is_some(), message.get("error").is_some(), "one of both: {message}");
        self.fits("RequestId", &message["id"], message);
        if let Some(error) = message.get("error") {
            return self.fits("Error", error, message);
        }
        let Some(method) = answers else { panic!("an answer to nothing: {message}") };
        match RESULTS.iter().find(|(asked, _)| *asked == method) {
            Some((_, definition)) => self.fits(definition, &message["result"], message),
            None if method == "session/delete" => self.fits("DeleteSessionResponse", &message["result"], message),
            // Ours, and what the protocol once had and agents still speak.
            None => assert!(message["result"].is_object(), "{message}"),
        }
    }

    #[track_caller]
    fn fits(&self, definition: &str, value: &Value, message: &Value) {
        let validator = &self.definitions[definition];
        let faults: Vec<_> =
            validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert!(faults.is_empty(), "no `{definition}`: {faults:#?}\n{message:#}");
    }
}
