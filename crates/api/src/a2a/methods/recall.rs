//! Tasks of earlier runs, read from the logs at the first request for a list.

use std::sync::Arc;

use gembridge_core::error::Error;
use gembridge_core::model::{Seq, SessionId};
use gembridge_core::store::SessionRecord;

use super::Caller;
use crate::a2a::error::Fault;
use crate::a2a::fold::Fold;
use crate::a2a::index::Entry;
use crate::a2a::model::{State, TaskId, TaskName};

/// Sessions, and turns of each, that are looked at.
const SESSIONS_BACK: usize = 256;
const TURNS_BACK: usize = 64;
/// Entries that are read of a log at once, and at most.
const PAGE: usize = 256;
const MOST_PAGES: usize = 64;

impl Caller {
    pub(super) async fn recall(&self) -> Result<(), Fault> {
        if !self.app.index.begin_recall(&self.viewer) {
            return Ok(());
        }
        for record in self.app.sessions().list(&self.viewer, SESSIONS_BACK).await? {
            self.recall_session(&record).await?;
        }
        Ok(())
    }

    async fn recall_session(&self, record: &SessionRecord) -> Result<(), Fault> {
        let labels = self.app.labels(record.id, TURNS_BACK).await.map_err(Error::from)?;
        for (label, start) in labels {
            let Ok(id) = label.task.parse::<TaskId>() else { continue };
            if id.session() != record.id || self.app.index.get(id).is_some() {
                continue;
            }
            let name = Arc::new(TaskName { id, context: label.context });
            let fold = self.stored(record.id, Arc::clone(&name), start).await?;
            // What ran when the process ended gets its end in the log when its session is opened again.
            let is_cut = fold.live_turns().next().is_some() && self.app.sessions().view(record.id).is_none();
            let state = if is_cut { State::Failed } else { fold.state() };
            let principal = record.principal.clone();
            self.app.index.put(Entry { name, principal, start, state, at: fold.at(), closed: None });
        }
        Ok(())
    }

    /// A task as the store has it. Its session is not opened for that.
    async fn stored(&self, session: SessionId, name: Arc<TaskName>, start: Seq) -> Result<Fold, Fault> {
        let (mut fold, mut after, mut told) = (self.fold(&name), start, Vec::new());
        for _ in 0..MOST_PAGES {
            let logs = self.app.sessions().logs();
            let entries = logs.read(session, after, Seq(u64::MAX), PAGE).await.map_err(Error::from)?;
            let Some(last) = entries.last().map(|entry| entry.seq) else { break };
            for entry in &entries {
                fold.take(entry, &mut told);
            }
            told.clear();
            after = last;
        }
        Ok(fold)
    }
}
