//! The frontend for other agents, and the port of its own.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use gembridge_api::a2a::{A2a, A2aConfig, A2aParts, OperatorTools, ServedAgent, root_frontend};
use gembridge_api::frontend::Frontend;
use gembridge_api::guard::Guard;
use gembridge_api::routes;
use gembridge_api::server::Server;
use gembridge_core::exchange::Catalog;
use gembridge_core::session::Sessions;

use super::agents::Served;
use super::tool_schemas::ToolSchemas;
use super::{address, server_config};
use crate::config::settings::{ServerSettings, Settings};
use crate::exit::CommandError;

pub fn frontend(sessions: &Arc<Sessions>, catalog: &Arc<Catalog>, served: &[Served], settings: &Settings) -> Arc<A2a> {
    let agent = |served: &Served| ServedAgent { name: served.name.clone(), title: served.agent.profile.title.clone() };
    A2a::new(A2aParts {
        sessions: Arc::clone(sessions),
        catalog: Arc::clone(catalog),
        agents: served.iter().map(agent).collect(),
        version: env!("CARGO_PKG_VERSION"),
        config: A2aConfig {
            operator_tools: settings.a2a.tool_schemas.as_ref().map(|path| {
                let schemas: Arc<dyn OperatorTools> = Arc::new(ToolSchemas::new(path.as_path().to_owned()));
                schemas
            }),
            auto_approve: settings.a2a.auto_approve.0.iter().cloned().collect(),
            scheme: if settings.server.behind_proxy.0 { "https" } else { "http" },
            ..A2aConfig::default()
        },
    })
}

/// One more port, with JSON-RPC at `/` too.
pub fn port(
    app: &Arc<A2a>,
    guard: &Arc<Guard>,
    open: Router,
    settings: &Settings,
) -> Result<Option<(Server, Router)>, CommandError> {
    let Some(port) = settings.server.a2a_port else { return Ok(None) };
    let addresses = address::resolve(&ServerSettings { port, ..settings.server.clone() })?;
    let server = address::bind(server_config(addresses, settings))?;
    for address in server.local_addrs().context("cannot tell the address")? {
        tracing::info!("A2A clients find the agent card at http://{address}/.well-known/agent-card.json");
    }
    let health = Frontend { open, ..Frontend::default() };
    Ok(Some((server, routes::app(guard, [root_frontend(app), health]))))
}
