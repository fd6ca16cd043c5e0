//! An agent that is a fake server at an address.

use gembridge_drivers::profile::{AgentConfig, Profile};
use gembridge_testkit::a2a_server::{FakeA2aServer, Manner, Version};

use crate::agent_fixture::ScriptedAgent;

pub const VERSIONS: [Version; 2] = [Version::V03, Version::V10];

pub async fn server(version: Version, manner: Manner) -> FakeA2aServer {
    FakeA2aServer::start(version, manner).await.unwrap()
}

/// The agent `remote` at this address.
pub fn agent(url: &str) -> ScriptedAgent {
    configured(&AgentConfig { url: Some(url.to_owned()), ..AgentConfig::default() })
}

pub fn configured(config: &AgentConfig) -> ScriptedAgent {
    let profile = Profile::custom("remote", config, &Profile::builtin().unwrap()).unwrap();
    ScriptedAgent::of(profile, "unused".into(), None, tempfile::tempdir().unwrap())
}
