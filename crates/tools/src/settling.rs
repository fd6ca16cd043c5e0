//! A tool host that gives agents time: one that has read a changed list does not say when it is in force, and a prompt that
//! came before would be answered with the tools of before.

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::model::Failure;
use gembridge_core::tool_host::{Format, FormatSpec, HostedTools, Offer, ToolHost, ToolList};

use crate::bridge::ToolBridge;

/// How long an agent may take to show its model a list that it has read again. The slowest known looks a second time
/// after half a second when only the schemas changed.
const SETTLING: Duration = Duration::from_millis(750);

/// The bridge, with time for agents to put a changed list in force.
pub struct SettlingToolHost(pub ToolBridge);

impl ToolHost for SettlingToolHost {
    fn open(&self) -> Result<HostedTools, Failure> {
        let place = self.0.open()?;
        Ok(HostedTools { list: Box::new(SettlingTools { inner: place.list, list: List::Unread }), ..place })
    }

    fn format(&self, wanted: &FormatSpec) -> Result<Arc<dyn Format>, String> {
        self.0.format(wanted)
    }
}

struct SettlingTools {
    inner: Box<dyn ToolList>,
    list: List,
}

enum List {
    /// Agents wait for the first one by themselves.
    Unread,
    Read,
}

impl ToolList for SettlingTools {
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
