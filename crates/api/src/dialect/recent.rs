//! What was kept last, by name. Bounded: the oldest leave first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentLimits {
    pub bytes: usize,
    pub entries: usize,
}

pub(crate) struct Recent<T> {
    limits: RecentLimits,
    index: Mutex<Index<T>>,
}

struct Index<T> {
    entries: HashMap<Arc<str>, Entry<T>>,
    oldest_first: BTreeMap<u64, Arc<str>>,
    /// The number of the next entry.
    next: u64,
    bytes: usize,
}

struct Entry<T> {
    value: T,
    bytes: usize,
    number: u64,
}

impl<T: Clone> Recent<T> {
    pub(crate) fn new(limits: RecentLimits) -> Self {
        let index = Index { entries: HashMap::new(), oldest_first: BTreeMap::new(), next: 0, bytes: 0 };
        Self { limits, index: Mutex::new(index) }
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.lock().entries.get(name).map(|entry| entry.value.clone())
    }

    /// Keeps it as the newest, in the place of another of that name.
    pub(crate) fn put(&self, name: &str, value: T, bytes: usize) {
        let mut index = self.lock();
        index.remove(name);
        let (name, number) = (Arc::<str>::from(name), index.next);
        index.next += 1;
        index.bytes += bytes;
        index.oldest_first.insert(number, Arc::clone(&name));
        index.entries.insert(name, Entry { value, bytes, number });
        while index.bytes > self.limits.bytes || index.entries.len() > self.limits.entries {
            let Some(oldest) = index.oldest_first.first_key_value().map(|(_, name)| Arc::clone(name)) else { return };
            index.remove(&oldest);
        }
    }

    /// Looks at one and changes it, in one step.
    pub(crate) fn change<R>(&self, name: &str, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock().entries.get_mut(name).map(|entry| change(&mut entry.value))
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Index<T>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Index<T> {
    fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.bytes -= entry.bytes;
            self.oldest_first.remove(&entry.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leave_for_what_is_new_by_number_and_by_size() {
        let recent = Recent::new(RecentLimits { bytes: 10, entries: 3 });
        for (name, bytes) in [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("d", 1)] {
            recent.put(name, name, bytes);
        }
        let there = |recent: &Recent<_>| ["a", "b", "c", "d", "e"].map(|name| recent.get(name).is_some());
        assert_eq!(there(&recent), [true, false, true, true, false], "what was put again is no longer the oldest");
        recent.put("e", "e", 9);
        assert_eq!(there(&recent), [false, false, false, true, true]);
        recent.remove("d");
        recent.put("a", "a", 1);
        assert_eq!(there(&recent), [true, false, false, false, true]);
        assert_eq!(recent.change("e", |value| std::mem::replace(value, "f")), Some("e"));
        assert_eq!((recent.get("e"), recent.change("g", |_| ())), (Some("f"), None));
    }
}
