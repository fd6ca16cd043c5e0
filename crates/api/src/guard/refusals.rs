//! The origins that were refused recently, for the operator who may want to allow one.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use gembridge_core::model::Timestamp;

use crate::admin::operator::RefusedOrigin;

/// Origins that are remembered; the one that was refused longest ago leaves first.
const MOST: usize = 64;
/// A longer one is no origin that anybody would allow.
const LONGEST: usize = 256;

#[derive(Default)]
pub(super) struct Refusals(Mutex<Vec<RefusedOrigin>>);

impl Refusals {
    pub(super) fn note(&self, headers: &HeaderMap) {
        let Some(origin) = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()) else { return };
        if origin.len() > LONGEST {
            return;
        }
        let now = Timestamp::now().0;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter_mut().find(|known| known.origin == origin) {
            known.count += 1;
            known.last_at = now;
            return;
        }
        if all.len() >= MOST
            && let Some(oldest) = all.iter().enumerate().min_by_key(|(_, known)| known.last_at).map(|(at, _)| at)
        {
            all.swap_remove(oldest);
        }
        all.push(RefusedOrigin { origin: origin.to_owned(), count: 1, last_at: now });
    }

    /// The newest first.
    pub(super) fn list(&self) -> Vec<RefusedOrigin> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by_key(|known| std::cmp::Reverse(known.last_at));
        all
    }

    pub(super) fn forget(&self, origin: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known.origin != origin);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn s33_refused_origins_are_counted_and_bounded() {
        let refusals = Refusals::default();
        let note = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            refusals.note(&headers);
        };
        for number in 0..200 {
            note(&format!("https://{number}.example"));
        }
        note("https://199.example");
        note(&"x".repeat(300));
        refusals.note(&HeaderMap::new());
        let listed = refusals.list();
        assert_eq!(listed.len(), MOST);
        assert_eq!(listed.iter().find(|known| known.origin == "https://199.example").unwrap().count, 2);
        refusals.forget("https://199.example");
        assert!(refusals.list().iter().all(|known| known.origin != "https://199.example"));
    }
}
