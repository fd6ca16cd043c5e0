//! The tasks that were last used, by id and by time. What a task holds is in its session's log; this is how it is listed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::model::{Principal, Seq, SessionId, Timestamp};
use gembridge_core::session::Viewer;

use super::model::{State, TaskId, TaskName};

/// What is known of a task without reading its log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Arc<TaskName>,
    pub principal: Principal,
    /// Everything of the task comes after this entry of its session's log.
    pub start: Seq,
    pub state: State,
    pub at: Timestamp,
    /// When its client gave it up while nothing ran.
    pub closed: Option<Timestamp>,
}

/// Where a page of a list goes on: after the task of this time and id.
pub type Cursor = (Timestamp, TaskId);

pub struct Index {
    most: usize,
    /// How much older than the newest change a task may be.
    longest: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<TaskId, Entry>,
    /// By the time of the last change. The oldest leave first, whatever their state.
    order: BTreeMap<(Timestamp, String), TaskId>,
    /// Sessions by the name that a client gave their context.
    contexts: HashMap<(Principal, Arc<str>), SessionId>,
    /// The models that sessions go back to after a message that named another.
    usual_models: HashMap<SessionId, Arc<str>>,
    /// Whose tasks of earlier runs were looked for; `None` is everybody's.
    recalled: HashSet<Option<Principal>>,
}

impl Index {
    pub fn new(most: usize, longest: Duration) -> Self {
        Self { most: most.max(1), longest, inner: Mutex::default() }
    }

    pub fn get(&self, id: TaskId) -> Option<Entry> {
        self.lock().entries.get(&id).cloned()
    }

    /// Whether the tasks that `viewer` has from earlier runs are still to be looked for. True once for each.
    pub fn begin_recall(&self, viewer: &Viewer) -> bool {
        let whose = match viewer {
            Viewer::Admin => None,
            Viewer::Principal(principal) => Some(principal.clone()),
        };
        let mut inner = self.lock();
        inner.recalled.len() < self.most && inner.recalled.insert(whose)
    }

    /// The session that a client's own name of a context stands for.
    pub fn context(&self, principal: &Principal, context: &Arc<str>) -> Option<SessionId> {
        self.lock().contexts.get(&(principal.clone(), Arc::clone(context))).copied()
    }

    /// The session has another model for one message. What it had before is kept for the next.
    pub fn lend_model(&self, session: SessionId, usual: Arc<str>) {
        let mut inner = self.lock();
        if inner.usual_models.len() < self.most {
            inner.usual_models.entry(session).or_insert(usual);
        }
    }

    /// The model that the session goes back to, if it has another one.
    pub fn usual_model(&self, session: SessionId) -> Option<Arc<str>> {
        self.lock().usual_models.remove(&session)
    }

    pub fn put(&self, entry: Entry) {
        let mut inner = self.lock();
        let (id, longest) = (entry.name.id, u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX));
        let oldest_kept = Timestamp(entry.at.0.saturating_sub(longest));
        inner.forget(id);
        inner.order.insert((entry.at, id.to_string()), id);
        inner.contexts.insert((entry.principal.clone(), Arc::clone(&entry.name.context)), id.session());
        inner.entries.insert(id, entry);
        while let Some((at, oldest)) = inner.order.first_key_value().map(|(key, id)| (key.0, *id)) {
            if inner.entries.len() <= self.most && at >= oldest_kept {
                break;
            }
            inner.forget(oldest);
        }
    }

    /// How a task stands now. One that has left the index does not come back by it.
    pub fn note(&self, id: TaskId, state: State, at: Timestamp) {
        let known = self.get(id);
        if let Some(entry) = known.filter(|entry| entry.state != state || entry.at < at) {
            self.put(Entry { state, at: at.max(entry.at), ..entry });
        }
    }

    /// Tasks that `viewer` may see and `wanted` takes, the newest change first: those after the cursor, and how many there
    /// are in all.
    pub fn list(
        &self,
        viewer: &Viewer,
        wanted: impl Fn(&Entry) -> bool,
        after: Option<&Cursor>,
        limit: usize,
    ) -> (Vec<Entry>, usize) {
        let inner = self.lock();
        let key = after.map(|(at, id)| (*at, id.to_string()));
        let (mut page, mut total) = (Vec::new(), 0);
        for (place, id) in inner.order.iter().rev() {
            let Some(entry) = inner.entries.get(id) else { continue };
            if !viewer.may_see(&entry.principal) || !wanted(entry) {
                continue;
            }
            total += 1;
            if page.len() < limit && key.as_ref().is_none_or(|key| place < key) {
                page.push(entry.clone());
            }
        }
        (page, total)
    }

    /// Never held across an await.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget(&mut self, id: TaskId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.order.remove(&(entry.at, id.to_string()));
        let context = (entry.principal, Arc::clone(&entry.name.context));
        if self.contexts.get(&context) == Some(&id.session()) {
            self.contexts.remove(&context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(session: SessionId, number: u32, at: u64) -> Entry {
        let name = Arc::new(TaskName { id: TaskId::new(session, number), context: session.to_string().into() });
        let principal = Principal::new("ann");
        Entry { name, principal, start: Seq::START, state: State::Working, at: Timestamp(at), closed: None }
    }

    #[test]
    fn the_oldest_tasks_leave_a_full_index_whatever_their_state() {
        let index = Index::new(2, Duration::MAX);
        let session = SessionId::new();
        for number in 1..=3 {
            index.put(entry(session, number, u64::from(number)));
        }
        assert!(index.get(TaskId::new(session, 1)).is_none());
        index.note(TaskId::new(session, 1), State::Failed, Timestamp(9));
        assert!(index.get(TaskId::new(session, 1)).is_none(), "a late note brings no task back");
        let (all, total) = index.list(&Viewer::Admin, |_| true, None, 10);
        let ids: Vec<_> = all.iter().map(|entry| entry.name.id).collect();
        assert_eq!((ids, total), (vec![TaskId::new(session, 3), TaskId::new(session, 2)], 2));
        let inner = index.lock();
        assert_eq!((inner.entries.len(), inner.order.len()), (2, 2));
    }

    #[test]
    fn tasks_that_nobody_used_for_long_leave_although_there_is_room() {
        let index = Index::new(10, Duration::from_millis(100));
        let session = SessionId::new();
        for (number, at) in [(1, 1_000), (2, 1_050), (3, 1_101)] {
            index.put(entry(session, number, at));
        }
        assert!(index.get(TaskId::new(session, 1)).is_none(), "it was still working, and is older than the bound");
        index.note(TaskId::new(session, 2), State::InputRequired, Timestamp(1_200));
        let (all, _) = index.list(&Viewer::Admin, |_| true, None, 10);
        let ids: Vec<_> = all.iter().map(|entry| entry.name.id).collect();
        assert_eq!(ids, [TaskId::new(session, 2), TaskId::new(session, 3)], "one that is used stays");
    }

    #[test]
    fn a_page_goes_on_where_the_last_one_ended_and_shows_nothing_of_others() {
        let index = Index::new(10, Duration::MAX);
        let session = SessionId::new();
        for number in 1..=3 {
            index.put(entry(session, number, 7));
        }
        let ann = Viewer::Principal(Principal::new("ann"));
        let (first, total) = index.list(&ann, |_| true, None, 2);
        let cursor = (first[1].at, first[1].name.id);
        let (second, _) = index.list(&ann, |_| true, Some(&cursor), 2);
        assert_eq!((first.len(), second.len(), total), (2, 1, 3));
        assert!(first.iter().all(|entry| entry.name.id != second[0].name.id));
        let bob = Viewer::Principal(Principal::new("bob"));
        assert_eq!(index.list(&bob, |_| true, None, 2).1, 0);
    }
}
