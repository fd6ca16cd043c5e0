//! When sessions were created, for agents that destroy one which is loaded in the minute of its creation.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::driver::Resume;
use gembridge_core::model::Timestamp;

/// Sessions that are remembered; of an older one only its last use is known, and that may cost a wait.
const REMEMBERED: usize = 4_096;
const MINUTE: u64 = 60_000;

/// When this program saw sessions created, the newest last. A load counts too: the agent begins a new file.
#[derive(Default)]
pub(super) struct CreationTimes {
    seen: Mutex<VecDeque<(Arc<str>, Timestamp)>>,
}

impl CreationTimes {
    pub(super) fn note(&self, session: &Arc<str>, now: Timestamp) {
        let mut seen = self.lock();
        if seen.len() >= REMEMBERED {
            seen.pop_front();
        }
        seen.push_back((Arc::clone(session), now));
    }

    /// How long a load has to wait to fall into a later minute than the birth.
    pub(super) fn wait(&self, resume: &Resume, now: Timestamp) -> Option<Duration> {
        let born = self.lock().iter().rev().find(|(name, _)| *name == resume.agent_session).map(|(_, born)| *born);
        // It cannot have been born after it was last used.
        let born = born.unwrap_or(resume.last_used);
        (born.0 / MINUTE == now.0 / MINUTE).then(|| Duration::from_millis(MINUTE - now.0 % MINUTE))
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Timestamp)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64, seconds: u64) -> Timestamp {
        Timestamp(minutes * MINUTE + seconds * 1_000)
    }

    #[test]
    fn only_the_minute_of_its_creation_is_waited_for() {
        let creation_times = CreationTimes::default();
        let session = Arc::<str>::from("s");
        let resume = |last_used| Resume { agent_session: Arc::clone(&session), last_used };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(creation_times.wait(&resume(at(7, 5)), at(7, 20)), seconds(40), "unknown: its last use counts");
        assert_eq!(creation_times.wait(&resume(at(6, 59)), at(7, 20)), None);

        creation_times.note(&session, at(7, 0));
        assert_eq!(creation_times.wait(&resume(at(7, 30)), at(7, 30)), seconds(30));
        assert_eq!(
            creation_times.wait(&resume(at(8, 10)), at(8, 10)),
            None,
            "used in this minute, born in an earlier one"
        );
        creation_times.note(&session, at(8, 10));
        assert_eq!(creation_times.wait(&resume(at(8, 15)), at(8, 15)), seconds(45), "a load counts as a creation");
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let creation_times = CreationTimes::default();
        for number in 0..=REMEMBERED {
            creation_times.note(&number.to_string().into(), at(1, 0));
        }
        assert_eq!(creation_times.lock().len(), REMEMBERED);
    }
}
