//! What clients can ask for, each in a file. None of them knows a version of the protocol.

pub mod cancel;
pub mod confirm;
pub mod content;
pub mod get;
pub mod list;
mod recall;
pub mod send;

use std::sync::Arc;

use gembridge_core::error::Error;
use gembridge_core::model::{Seq, SessionId};
use gembridge_core::session::{SessionHandle, Viewer};
use gembridge_core::store::StoreError;

use super::A2a;
use super::error::Fault;
use super::fold::Fold;
use super::follow::{End, Follow, Until};
use super::model::{TaskId, TaskName};
use crate::identity::Identity;

/// The caller.
pub struct Caller {
    pub app: Arc<A2a>,
    pub identity: Identity,
    pub viewer: Viewer,
}

/// A task that the caller may see.
pub struct Found {
    pub name: Arc<TaskName>,
    pub handle: SessionHandle,
    /// Everything of the task comes after this entry.
    pub start: Seq,
}

/// Turns of a session in which a task is looked for that has left the index.
const TURNS_BACK: usize = 256;

impl Caller {
    /// The task of this id. One of another key is not there.
    pub async fn find(&self, text: &str) -> Result<Found, Fault> {
        let id: TaskId = text.parse().map_err(|_| Fault::task(text))?;
        let handle = match self.app.sessions().get(id.session(), &self.viewer).await {
            Ok(handle) => handle,
            Err(Error::UnknownSession(_)) => return Err(Fault::task(text)),
            Err(error) => return Err(error.into()),
        };
        if let Some(entry) = self.app.index.get(id) {
            return Ok(Found { name: entry.name, handle, start: entry.start });
        }
        let (name, start) = self.search(id).await?.ok_or_else(|| Fault::task(text))?;
        Ok(Found { name, handle, start })
    }

    /// Looks for the task's first prompt in the log of its session.
    async fn search(&self, id: TaskId) -> Result<Option<(Arc<TaskName>, Seq)>, Fault> {
        let labels = self.app.labels(id.session(), TURNS_BACK).await.map_err(Error::from)?;
        let own = labels.into_iter().find(|(label, _)| *label.task == *id.to_string());
        Ok(own.map(|(label, start)| (Arc::new(TaskName { id, context: label.context }), start)))
    }

    /// Reads a task: all of it up to `until`, then what happens.
    pub async fn follow(&self, found: &Found, until: Until, end: End) -> Result<Follow, Fault> {
        let fold = self.fold(&found.name);
        let logs = self.app.sessions().logs();
        Ok(Follow::begin(found.handle.clone(), logs, found.start, until, end, fold).await?)
    }

    fn fold(&self, name: &Arc<TaskName>) -> Fold {
        let mut fold = Fold::new(Arc::clone(name), Arc::clone(&self.app.parts.config.auto_approve));
        if let Some(closed) = self.app.index.get(name.id).and_then(|entry| entry.closed) {
            fold.close(closed);
        }
        fold
    }
}

impl A2a {
    /// The labels of the newest prompts of a session, oldest first, each with the entry before it.
    pub(super) async fn labels(
        &self,
        session: SessionId,
        turns: usize,
    ) -> Result<Vec<(gembridge_core::model::PromptLabel, Seq)>, StoreError> {
        use gembridge_core::model::Event;

        let logs = self.sessions().logs();
        let mut labels = Vec::new();
        for start in logs.turn_starts(session, turns).await? {
            let first = logs.read(session, start.after, start.after.next(), 1).await?;
            if let Some(Event::Prompted { prompt, .. }) = first.into_iter().next().map(|entry| entry.event)
                && let Some(label) = prompt.label
            {
                labels.push((label, start.after));
            }
        }
        Ok(labels)
    }
}
