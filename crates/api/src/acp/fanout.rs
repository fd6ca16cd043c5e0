//! What everybody who watches a session is shown alike: written once for all of them.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::BytesMut;
use gembridge_core::log::{Batch, LogEntry};
use gembridge_core::model::{Event, Seq, SessionId};

use super::encode::{self, SessionName, Template, View};

/// The sessions that somebody watches.
#[derive(Default)]
pub struct FanoutCache {
    sessions: Mutex<HashMap<SessionId, Weak<SessionFanout>>>,
}

/// A client's place among those who watch a session.
pub struct Subscriber(Arc<SessionFanout>);

/// One session that somebody watches.
struct SessionFanout {
    session: SessionName,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    template: Template,
    /// What somebody has not fetched yet, oldest first.
    kept: VecDeque<Kept>,
}

struct Kept {
    shown: Arc<EncodedBatch>,
    fetched: usize,
}

/// A batch of entries as the frames that clients get.
pub struct EncodedBatch {
    first: Seq,
    entries: usize,
    bytes: BytesMut,
    runs: Vec<Run>,
}

enum Run {
    Alike(Range<usize>),
    Own(usize),
}

pub enum Part<'a> {
    /// Frames that are the same for all.
    Alike(&'a [u8]),
    /// An entry, by its place in the batch, that each client is shown in its own way.
    Own(usize),
}

/// Batches, and bytes of all but the newest, that are kept for those who have not fetched them; who comes later writes
/// them again.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 1 << 20;

impl FanoutCache {
    /// A place among those who watch this session.
    pub fn join(&self, session: SessionId) -> Subscriber {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(delivery) = sessions.get(&session).and_then(Weak::upgrade) {
            return Subscriber(delivery);
        }
        if sessions.len() == sessions.capacity() {
            // Before it grows: most of it may be sessions that nobody watches any more.
            sessions.retain(|_, delivery| delivery.strong_count() > 0);
        }
        let delivery = Arc::new(SessionFanout { session: SessionName::new(session), recent: Mutex::default() });
        sessions.insert(session, Arc::downgrade(&delivery));
        Subscriber(delivery)
    }
}

impl Subscriber {
    /// The batch as all see it. `None` for who watches alone and has nobody to share it with.
    pub fn of(&self, batch: &Batch) -> Option<Arc<EncodedBatch>> {
        let Self(delivery) = self;
        let watching = Arc::strong_count(delivery);
        let (first, entries) = (batch.first()?.seq, batch.len());
        if watching < 2 {
            return None;
        }
        let mut recent = delivery.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // Who reads from the store gets other batches, which may begin with the same entry.
        let is_it = |kept: &Kept| kept.shown.first == first && kept.shown.entries == entries;
        let at = recent.kept.iter().position(is_it);
        if let Some(at) = at {
            let kept = &mut recent.kept[at];
            kept.fetched += 1;
            let shown = Arc::clone(&kept.shown);
            if kept.fetched >= watching {
                recent.kept.remove(at);
            }
            return Some(shown);
        }
        let shown = Arc::new(EncodedBatch::new(&delivery.session, &mut recent.template, batch));
        // Who is late must not push out what the others are about to fetch.
        if recent.kept.back().is_none_or(|newest| newest.shown.first < first) {
            recent.make_room();
            recent.kept.push_back(Kept { shown: Arc::clone(&shown), fetched: 1 });
        }
        Some(shown)
    }
}

impl Recent {
    fn make_room(&mut self) {
        let mut bytes: usize = self.kept.iter().map(|kept| kept.shown.bytes.len()).sum();
        while self.kept.len() >= KEPT || bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            bytes -= oldest.shown.bytes.len();
        }
    }
}

impl Drop for Subscriber {
    /// What is kept for this client is fetched by nobody; whoever still wants it writes it again.
    fn drop(&mut self) {
        self.0.recent.lock().unwrap_or_else(PoisonError::into_inner).kept.clear();
    }
}

impl EncodedBatch {
    fn new(session: &SessionName, template: &mut Template, batch: &[LogEntry]) -> Self {
        let mut bytes = BytesMut::with_capacity(encode::room_for(batch));
        let mut runs = Vec::new();
        let mut from = 0;
        for (place, entry) in batch.iter().enumerate() {
            if is_alike(&entry.event) {
                // Nobody said it, so nobody hears an echo of it.
                encode::entry(&mut bytes, session, template, entry, View::Replay);
                continue;
            }
            if from < bytes.len() {
                runs.push(Run::Alike(from..bytes.len()));
                from = bytes.len();
            }
            runs.push(Run::Own(place));
        }
        if from < bytes.len() {
            runs.push(Run::Alike(from..bytes.len()));
        }
        let first = batch.first().map_or(Seq::START, |entry| entry.seq);
        Self { first, entries: batch.len(), bytes, runs }
    }

    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.runs.iter().map(|run| match run {
            Run::Alike(range) => Part::Alike(&self.bytes[range.clone()]),
            Run::Own(place) => Part::Own(*place),
        })
    }
}

/// Whether an entry looks the same to whoever watches.
fn is_alike(event: &Event) -> bool {
    !matches!(
        event,
        Event::Prompted { .. }
            | Event::Started
            | Event::Usage(_)
            | Event::Model(_)
            | Event::AgentReplaced { .. }
            | Event::Ended(_)
            | Event::Asked(_)
            | Event::Answered { .. }
    )
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::{Dialect, Frame, Text, Timestamp, TurnId};

    use super::*;

    fn piece(seq: u64) -> LogEntry {
        let bytes = format!(r#"{{"params":{{"sessionId":"x","update":{{"n":{seq}}}}}}}"#);
        let frame = Some(Frame { dialect: Dialect::Acp, bytes: bytes.into() });
        let event = Event::Text(Text::plain("said"));
        LogEntry { seq: Seq(seq), at: Timestamp(1), turn: Some(TurnId(1)), event, frame }
    }

    fn batch(seqs: Range<u64>) -> Batch {
        seqs.map(piece).collect()
    }

    #[test]
    fn a_batch_is_written_once_for_all_who_watch_and_let_go_when_all_have_it() {
        let (fanouts, session) = (FanoutCache::default(), SessionId::new());
        let places = [(); 3].map(|()| fanouts.join(session));
        let entries = batch(1..4);
        let shown: Vec<_> = places.iter().map(|place| place.of(&entries).unwrap()).collect();
        assert!(shown.iter().all(|other| Arc::ptr_eq(other, &shown[0])));
        assert!(places[0].0.recent.lock().unwrap().kept.is_empty());
    }

    #[test]
    fn who_watches_alone_shares_with_nobody() {
        let (fanouts, session) = (FanoutCache::default(), SessionId::new());
        let (place, elsewhere) = (fanouts.join(session), fanouts.join(SessionId::new()));
        assert!(place.of(&batch(1..2)).is_none() && elsewhere.of(&batch(1..2)).is_none());
    }

    #[test]
    fn what_nobody_fetches_is_bounded_and_goes_with_the_client_it_was_kept_for() {
        let (fanouts, session) = (FanoutCache::default(), SessionId::new());
        let (quick, slow) = (fanouts.join(session), fanouts.join(session));
        for first in 1..=2 * KEPT as u64 {
            assert!(quick.of(&batch(first..first + 1)).is_some());
        }
        let kept = |place: &Subscriber| place.0.recent.lock().unwrap().kept.len();
        assert_eq!(kept(&quick), KEPT);
        // One that is far behind is shown the same, and pushes nothing out.
        let late = slow.of(&batch(1..2)).unwrap();
        assert_eq!((late.first, kept(&quick)), (Seq(1), KEPT));
        drop(slow);
        assert_eq!(kept(&quick), 0);
        let again = fanouts.join(session);
        for first in 1..=KEPT as u64 {
            assert!(quick.of(&batch(first * 10_000..(first + 1) * 10_000)).is_some());
        }
        assert!(kept(&again) <= 2, "{} large batches are kept", kept(&again));
    }

    #[test]
    fn what_each_client_sees_in_its_own_way_stays_in_its_place() {
        let mut entries: Vec<_> = (1..6).map(piece).collect();
        for own in [0, 3] {
            entries[own] = LogEntry { event: Event::Started, frame: None, ..entries[own].clone() };
        }
        let shown = EncodedBatch::new(&SessionName::new(SessionId::new()), &mut Template::default(), &entries);
        let told: Vec<_> = shown
            .parts()
            .map(|part| match part {
                Part::Alike(frames) => {
                    (1..6).filter(|n| String::from_utf8_lossy(frames).contains(&format!("\"n\":{n}"))).collect()
                }
                Part::Own(place) => vec![place + 100],
            })
            .collect();
        assert_eq!(told, [vec![100], vec![2, 3], vec![103], vec![5]]);
    }

    #[test]
    fn sessions_that_nobody_watches_are_forgotten() {
        let fanouts = FanoutCache::default();
        for _ in 0..1_000 {
            drop(fanouts.join(SessionId::new()));
        }
        assert!(fanouts.sessions.lock().unwrap().len() < 10);
    }
}
