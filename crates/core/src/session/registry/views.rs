//! Sessions as a list that is watched, and their removal from it.

use std::sync::Arc;

use super::{Found, Sessions, Viewer};
use crate::error::Error;
use crate::model::SessionId;
use crate::session::overview::{ListWatch, SessionStatus, SessionView, Watchers};
use crate::store::SessionRecord;

impl Sessions {
    /// The sessions that `viewer` may see, live or stored; the newest change first.
    pub async fn views(&self, viewer: &Viewer, limit: usize) -> Result<Vec<Arc<SessionView>>, Error> {
        let mut views = self.overview.all_live();
        views.retain(|view| viewer.may_see(&view.record.principal));
        let is_live =
            |record: &SessionRecord, live: &[Arc<SessionView>]| live.iter().any(|view| view.record.id == record.id);
        let mut stored = self.list(viewer, limit).await?;
        stored.retain(|record| !is_live(record, &views));
        let at_rest =
            |record| Arc::new(SessionView { record, status: SessionStatus::Stored, watchers: Watchers::default() });
        views.extend(stored.into_iter().map(at_rest));
        views.sort_by_key(|view| std::cmp::Reverse((view.record.updated, view.record.id)));
        views.truncate(limit);
        Ok(views)
    }

    /// What a live session looks like now.
    pub fn view(&self, id: SessionId) -> Option<Arc<SessionView>> {
        self.overview.live(id)
    }

    /// How every live session stands.
    pub fn statuses(&self) -> Vec<SessionStatus> {
        self.overview.all_live().into_iter().map(|view| view.status).collect()
    }

    /// Every change of every session from now on. What `viewer` may see of it is for the caller to ask
    /// [`Viewer::may_see`].
    pub fn watch(&self, viewer: Viewer) -> ListWatch {
        self.overview.watch(viewer)
    }

    /// Ends the session and forgets it, its record and its log.
    pub async fn remove(&self, id: SessionId, viewer: &Viewer) -> Result<(), Error> {
        let unknown = || Error::UnknownSession(id.to_string());
        let record = self.stored(id).await?;
        if !viewer.may_see(&record.principal) {
            return Err(unknown());
        }
        loop {
            match self.enter(id) {
                Found::Live(live) => live.handle.close().await?,
                Found::Taken(mut tenancy) => drop(tenancy.changed().await),
                Found::Free(lease) => {
                    self.store().delete(id).await?;
                    if let Some(directory) = &self.directory {
                        directory.release(id).await;
                    }
                    self.overview.remove(id, record.principal);
                    drop(lease);
                    return Ok(());
                }
            }
        }
    }
}
