//! The frontend for ACP clients: which agents it shows, which folders it lets them work in, and the port of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gembridge_api::acp::{
    Acp, AcpConfig, AcpParts, AgentCard, ClientServers, Execution, Tap, TrustedFolders, WorkInCwd,
};
use gembridge_core::exchange::Catalog;
use gembridge_core::session::Sessions;
use gembridge_drivers::profile;

use super::agents::Served;
use crate::agents;
use crate::command::Context;
use crate::config::entries::Reported;
use crate::config::trust::{Trust, take_once};

/// The trust list of the operator, as it is on disk whenever somebody asks.
struct TrustList {
    config_folder: PathBuf,
    state_folder: PathBuf,
    reported: Reported,
}

impl TrustedFolders for TrustList {
    fn trusted(&self, folder: &Path) -> Option<PathBuf> {
        let trust = match Trust::load(&self.config_folder) {
            Ok(trust) => {
                self.reported.warn(&trust.reports());
                trust
            }
            Err(error) => {
                tracing::error!(%error, "the trust list cannot be read, so nothing is trusted");
                return None;
            }
        };
        let real = folder.is_absolute().then(|| folder.canonicalize().ok()).flatten()?;
        (real.is_dir() && (trust.covers(&real) || take_once(&self.state_folder, &real))).then_some(real)
    }
}

pub fn frontend(
    sessions: &Arc<Sessions>,
    catalog: Arc<Catalog>,
    served: &[Served],
    context: &Context,
    tap: Option<Arc<dyn Tap>>,
) -> Arc<Acp> {
    let settings = &context.config.settings;
    let servers = if settings.acp.allow_mcp_servers.0 { ClientServers::Allowed } else { ClientServers::Refused };
    Acp::new(AcpParts {
        sessions: Arc::clone(sessions),
        catalog,
        agents: served.iter().map(card).collect(),
        folders: Arc::new(TrustList {
            config_folder: context.config.folders.config.clone(),
            state_folder: context.config.folders.state.clone(),
            reported: Reported::default(),
        }),
        tap,
        version: env!("CARGO_PKG_VERSION"),
        config: AcpConfig {
            message: usize::try_from(settings.limits.body.0).unwrap_or(usize::MAX),
            servers,
            work_in_cwd: WorkInCwd::OnRequest,
            ..AcpConfig::default()
        },
    })
}

fn card(served: &Served) -> AgentCard {
    let profile = &served.agent.profile;
    let (execution, workspace) = match profile.chosen.execution {
        profile::Execution::Agent => (Execution::Agent, profile.chosen.workspace.clone()),
        profile::Execution::Chat => (Execution::Chat, None),
    };
    AgentCard {
        name: served.name.clone(),
        title: profile.title.clone(),
        execution,
        workspace,
        is_demo: agents::is_built_in(profile),
    }
}
