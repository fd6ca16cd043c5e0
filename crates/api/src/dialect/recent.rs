//! What was kept last, by name and owner. Bounded for all owners together: who has the most loses its oldest first, so that no
//! key can push out what others keep.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::model::Principal;

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
    owners: HashMap<Principal, Owned>,
    /// The number of the next entry.
    next: u64,
    bytes: usize,
}

struct Entry<T> {
    value: T,
    owner: Principal,
    bytes: usize,
    number: u64,
}

/// What one owner has.
#[derive(Default)]
struct Owned {
    oldest_first: BTreeMap<u64, Arc<str>>,
    bytes: usize,
}

impl<T: Clone> Recent<T> {
    pub(crate) fn new(limits: RecentLimits) -> Self {
        let index = Index { entries: HashMap::new(), owners: HashMap::new(), next: 0, bytes: 0 };
        Self { limits, index: Mutex::new(index) }
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.lock().entries.get(name).map(|entry| entry.value.clone())
    }

    /// Keeps it as the newest, in the place of another of that name.
    pub(crate) fn put(&self, name: &str, owner: &Principal, value: T, bytes: usize) {
        let mut index = self.lock();
        index.remove(name);
        let (name, number) = (Arc::<str>::from(name), index.next);
        index.next += 1;
        index.bytes += bytes;
        let share = index.owners.entry(owner.clone()).or_default();
        share.bytes += bytes;
        share.oldest_first.insert(number, Arc::clone(&name));
        index.entries.insert(name, Entry { value, owner: owner.clone(), bytes, number });
        loop {
            let heaviest = if index.bytes > self.limits.bytes {
                index.owners.values().max_by_key(|owned| owned.bytes)
            } else if index.entries.len() > self.limits.entries {
                index.owners.values().max_by_key(|owned| owned.oldest_first.len())
            } else {
                return;
            };
            // What was just put stays, however large it is: whoever put it has its name.
            let oldest = heaviest.and_then(|owned| owned.oldest_first.first_key_value());
            let Some(oldest) = oldest.filter(|(oldest, _)| **oldest != number).map(|(_, name)| Arc::clone(name)) else {
                return;
            };
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
        let Some(entry) = self.entries.remove(name) else { return };
        self.bytes -= entry.bytes;
        if let Some(owned) = self.owners.get_mut(&entry.owner) {
            owned.bytes -= entry.bytes;
            owned.oldest_first.remove(&entry.number);
            if owned.oldest_first.is_empty() {
                self.owners.remove(&entry.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(recent: &Recent<&'static str>) -> [bool; 5] {
        ["a", "b", "c", "d", "e"].map(|name| recent.get(name).is_some())
    }

    #[test]
    fn the_oldest_leave_for_what_is_new_by_number_and_by_size() {
        let recent = Recent::new(RecentLimits { bytes: 10, entries: 3 });
        let ann = Principal::new("ann");
        for (name, bytes) in [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("d", 1)] {
            recent.put(name, &ann, name, bytes);
        }
        assert_eq!(there(&recent), [true, false, true, true, false], "what was put again is no longer the oldest");
        recent.put("e", &ann, "e", 9);
        assert_eq!(there(&recent), [false, false, false, true, true]);
        recent.remove("d");
        recent.put("a", &ann, "a", 1);
        assert_eq!(there(&recent), [true, false, false, false, true]);
        assert_eq!(recent.change("e", |value| std::mem::replace(value, "f")), Some("e"));
        assert_eq!((recent.get("e"), recent.change("g", |_| ())), (Some("f"), None));
    }

    #[test]
    fn s29_an_owner_pushes_out_its_own_and_not_what_others_keep() {
        let recent = Recent::new(RecentLimits { bytes: 10, entries: 4 });
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        recent.put("a", &ann, "a", 3);
        for name in ["b", "c", "d"] {
            recent.put(name, &bob, name, 6);
        }
        assert_eq!(there(&recent), [true, false, false, true, false], "by size");
        for name in ["b", "c", "d", "e"] {
            recent.put(name, &bob, name, 1);
        }
        assert_eq!(there(&recent), [true, false, true, true, true], "by number");
    }

    #[test]
    fn what_was_just_put_stays_even_if_it_is_larger_than_all_may_be() {
        let recent = Recent::new(RecentLimits { bytes: 10, entries: 4 });
        let ann = Principal::new("ann");
        recent.put("a", &ann, "a", 1);
        recent.put("b", &ann, "b", 50);
        assert_eq!(there(&recent), [false, true, false, false, false]);
        recent.put("c", &ann, "c", 1);
        assert_eq!(there(&recent), [false, false, true, false, false]);
    }
}
