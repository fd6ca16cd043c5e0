//! `initialize`: answered for the default agent, which has long been initialized.

use gembridge_core::model::AgentFacts;
use serde_json::{Value, json};

use super::RequestContext;
use crate::acp::encode::execution;
use crate::acp::{AgentCard, ClientServers};

/// The version of the protocol that we speak.
const PROTOCOL_VERSION: u16 = 1;

impl RequestContext {
    pub async fn initialize(&self) -> Value {
        let parts = &self.app.parts;
        let default = parts.agents.first();
        let facts = match default {
            Some(card) => self.facts(card).await,
            None => AgentFacts::default(),
        };
        let servers = parts.config.servers == ClientServers::Allowed && facts.mcp_http;
        let name = default.map_or("gembridge", |card| card.name.as_str());
        let mut meta = json!({
            "version": parts.version,
            "connectionId": self.connection_id,
            "agent": name,
            "mode": default.map(|card| execution(card.execution)),
            "demo": default.is_some_and(|card| card.is_demo),
        });
        if let Some(session) = self.named {
            meta["session"] = json!(session.to_string());
        }
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {
                    "image": facts.prompt.image,
                    "audio": facts.prompt.audio,
                    "embeddedContext": facts.prompt.embedded,
                },
                "mcpCapabilities": { "http": servers, "sse": false },
                "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
            },
            "agentInfo": {
                "name": facts.name.as_deref().unwrap_or(name),
                "title": default.map(|card| card.title.as_str()),
                "version": facts.version.as_deref().unwrap_or("unknown"),
            },
            "authMethods": [],
            "_meta": { "gembridge": meta },
        })
    }

    /// What the agent says of itself. One that has not said anything yet is waited for, a bounded time.
    async fn facts(&self, card: &AgentCard) -> AgentFacts {
        let driver = self.app.sessions().agents().find(|(name, _)| **name == card.name).map(|(_, setup)| &setup.driver);
        let Some(driver) = driver else { return AgentFacts::default() };
        if driver.facts().is_none() {
            self.app.parts.catalog.learn(&self.identity.principal).await;
        }
        driver.facts().unwrap_or_default()
    }
}
