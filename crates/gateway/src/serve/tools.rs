//! The place where agents find the tools of clients, as this gateway opens it.

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::model::Failure;
use gembridge_core::tool_host::{Format, FormatSpec, HostedTools, Offer, ToolHost, ToolList};
use gembridge_drivers::profile::Profile;
use gembridge_tools::{Config, ToolBridge};

use crate::exit::{CommandError, ExitCode};

/// Listens on loopback, under every name that an agent is told for it.
pub async fn start(profiles: &[Profile]) -> Result<ToolBridge, CommandError> {
    let mut names: Vec<Arc<str>> = profiles.iter().map(|profile| profile.mcp.server_name.as_str().into()).collect();
    names.sort_unstable();
    names.dedup();
    let mut config = Config { aliases: names, ..Config::default() };
    if let Some(limit) = profiles.iter().filter_map(|profile| profile.mcp.name_limit).min() {
        config.name_limit = config.name_limit.min(limit);
    }
    ToolBridge::start(config).await.map_err(|error| CommandError::new(ExitCode::Failed, error.to_string()))
}

/// How long an agent may take to show its model a list that it has read again. The slowest known looks a second time
/// after half a second when only the schemas changed.
const SETTLING: Duration = Duration::from_millis(750);

/// The bridge, with patience: an agent that has read a changed list does not say when it is in force, and a prompt that
/// came before would be answered with the tools of before.
pub struct Patient(pub ToolBridge);

impl ToolHost for Patient {
    fn open(&self) -> Result<HostedTools, Failure> {
        let place = self.0.open()?;
        Ok(HostedTools { board: Box::new(PatientBoard { inner: place.board, list: List::Unread }), ..place })
    }

    fn format(&self, wanted: &FormatSpec) -> Result<Arc<dyn Format>, String> {
        self.0.format(wanted)
    }
}

struct PatientBoard {
    inner: Box<dyn ToolList>,
    list: List,
}

enum List {
    /// Agents wait for the first one by themselves.
    Unread,
    Read,
}

impl ToolList for PatientBoard {
    fn offer(&mut self, offer: Offer) -> BoxFuture<'static, ()> {
        let read = self.inner.offer(offer);
        match std::mem::replace(&mut self.list, List::Read) {
            List::Unread => read,
            List::Read => Box::pin(async {
                read.await;
                tokio::time::sleep(SETTLING).await;
            }),
        }
    }
}
