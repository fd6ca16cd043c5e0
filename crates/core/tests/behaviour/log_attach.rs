//! Attaching to a log: whatever is appended, read, dropped and come back in whatever order, nobody misses an entry
//! and nobody sees one twice.

use bytes::Bytes;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Attachment, Backpressure, Batch, Draft, From, LogEntry, SessionLog};
use gembridge_core::model::{Dialect, Event, Frame, Principal, Seq, SessionId, Timestamp};
use gembridge_core::store::SessionRecord;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::support::store::FaultyStore;
use crate::support::test_sessions::agent_name;

struct Bench {
    store: FaultyStore,
    id: SessionId,
    log: SessionLog,
    limits: Limits,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let store = FaultyStore::default();
        let id = SessionId::new();
        let record = SessionRecord {
            id,
            principal: Principal::new("ann"),
            agent: agent_name(),
            agent_session: None,
            workspace: None,
            model: None,
            mode: None,
            title: None,
            created: Timestamp(1),
            updated: Timestamp(1),
        };
        let log = SessionLog::new(store.create_now(record), Seq::START, Vec::new(), limits);
        Self { store, id, log, limits }
    }

    fn append(&mut self, sizes: &[usize]) {
        let drafts = sizes.iter().map(|size| Draft {
            turn: None,
            event: Event::Started,
            frame: Some(Frame { dialect: Dialect::Acp, bytes: Bytes::from(vec![b'x'; *size]) }),
        });
        self.log.append(drafts.collect()).expect("the disk is sound");
    }

    /// Begins anew with what a restart would read back.
    fn restart(&mut self, tail: usize) {
        let entries = self.store.entries(self.id);
        let start = entries.len().saturating_sub(tail);
        let last = self.log.last();
        let (store, writer) = self.store.in_another_process(self.id);
        self.log = SessionLog::new(writer, last, entries[start..].to_vec(), self.limits);
        self.store = store;
    }

    /// The entries that an attachment gives before anything is followed, and what it says about the rest.
    fn past(&self, attachment: &Attachment) -> Vec<LogEntry> {
        let mut past = Vec::new();
        if let Some(older) = attachment.older {
            assert!(older.after < older.until, "an empty range is not told");
            let stored = self.store.entries(self.id);
            past.extend(stored.into_iter().filter(|entry| entry.seq > older.after && entry.seq <= older.until));
        }
        past.extend(attachment.snapshot.iter().flat_map(|batch| batch.iter().cloned()));
        assert_eq!(attachment.last, self.log.last());
        past
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>),
    AttachNow,
    AttachAfter(Index),
    Read(Index, usize),
    Detach(Index),
    Restart(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec(0..200_usize, 1..6).prop_map(Step::Append),
        2 => Just(Step::AttachNow),
        3 => any::<Index>().prop_map(Step::AttachAfter),
        6 => (any::<Index>(), 1..4_usize).prop_map(|(who, batches)| Step::Read(who, batches)),
        1 => any::<Index>().prop_map(Step::Detach),
        1 => (0..8_usize).prop_map(Step::Restart),
    ]
}

/// A follower with its own idea of where it is.
struct Follower {
    at: Seq,
    follow: mpsc::Receiver<Batch>,
}

impl Follower {
    fn attach(bench: &mut Bench, from: From) -> Self {
        let attachment = bench.log.attach(from, Backpressure::Own);
        let at = match from {
            From::Now => bench.log.last(),
            From::After(seq) => seq,
        };
        let past = bench.past(&attachment);
        let mut follower = Self { at, follow: attachment.follow };
        follower.see(&past, bench);
        assert_eq!(follower.at, bench.log.last(), "the past reaches up to now");
        follower
    }

    /// Takes entries that must be exactly the next ones of the log.
    fn see(&mut self, entries: &[LogEntry], bench: &Bench) {
        let stored = bench.store.entries(bench.id);
        for entry in entries {
            assert_eq!(entry.seq, self.at.next(), "no gap and no double");
            assert_eq!(Some(entry), stored.get(usize::try_from(self.at.0).unwrap()), "what was stored is what is seen");
            self.at = entry.seq;
        }
    }

    /// Reads what is there, up to `batches`. One that was dropped for being slow comes back where it was.
    fn read(&mut self, bench: &mut Bench, batches: usize) {
        for _ in 0..batches {
            match self.follow.try_recv() {
                Ok(batch) => self.see(&batch, bench),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    *self = Self::attach(bench, From::After(self.at));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_follower_sees_exactly_the_log_after_its_start(
        ring_entries in 1..12_usize,
        ring_bytes in 500..4_000_usize,
        follower_batches in 1..4_usize,
        steps in vec(step(), 1..60),
    ) {
        let mut bench = Bench::new(Limits { ring_entries, ring_bytes, follower_batches, ..Limits::default() });
        let mut followers: Vec<Follower> = Vec::new();
        for step in steps {
            match step {
                Step::Append(sizes) => bench.append(&sizes),
                Step::AttachNow => followers.push(Follower::attach(&mut bench, From::Now)),
                Step::AttachAfter(place) => {
                    let after = Seq(place.index(usize::try_from(bench.log.last().0).unwrap() + 1) as u64);
                    followers.push(Follower::attach(&mut bench, From::After(after)));
                }
                Step::Read(who, batches) if !followers.is_empty() => {
                    who.get_mut(&mut followers).read(&mut bench, batches);
                }
                Step::Detach(who) if !followers.is_empty() => {
                    followers.swap_remove(who.index(followers.len()));
                }
                Step::Restart(tail) => bench.restart(tail),
                Step::Read(..) | Step::Detach(..) => {}
            }
        }
        for mut follower in followers {
            follower.read(&mut bench, usize::MAX);
            prop_assert_eq!(follower.at, bench.log.last(), "everybody arrives at the end");
        }
    }
}

#[test]
fn a_number_from_the_future_means_now() {
    let mut bench = Bench::new(Limits::default());
    bench.append(&[1, 1]);
    let attachment = bench.log.attach(From::After(Seq(99)), Backpressure::Own);
    assert!(attachment.older.is_none());
    assert_eq!((attachment.snapshot.len(), attachment.last), (0, Seq(2)));
}

#[test]
fn the_memory_is_bounded_by_entries() {
    let mut bench = Bench::new(Limits { ring_entries: 10, ..Limits::default() });
    for _ in 0..100 {
        bench.append(&[0, 0, 0]);
    }
    let attachment = bench.log.attach(From::After(Seq::START), Backpressure::Own);
    let in_memory: usize = attachment.snapshot.iter().map(|batch| batch.len()).sum();
    assert_eq!(in_memory, 9);
    assert_eq!(attachment.older.map(|older| (older.after, older.until)), Some((Seq(0), Seq(291))));
    let late = bench.log.attach(From::After(Seq(291)), Backpressure::Own);
    assert_eq!(late.older, None, "everything after 291 is in memory");
}

#[test]
fn the_memory_is_bounded_by_bytes_of_whatever_kind() {
    let size = 100_000;
    let long = "x".repeat(size);
    let prompt = || Event::Prompted {
        prompt: gembridge_core::model::Prompt::text(long.clone()),
        by: crate::support::test_sessions::CLIENT,
    };
    let events: [fn(&str) -> Event; 4] = [
        |long| Event::Text(long.into()),
        |long| Event::Thought(long.into()),
        |long| Event::Content(gembridge_core::model::Content::text(long)),
        |long| Event::AgentReplaced { reason: long.into() },
    ];
    let events = events.into_iter().map(|event| event(&long)).chain([prompt()]);
    for event in events {
        let mut bench = Bench::new(Limits { ring_bytes: 10 * size, ..Limits::default() });
        for _ in 0..50 {
            bench.log.append(vec![Draft { turn: None, event: event.clone(), frame: None }]).unwrap();
        }
        let attachment = bench.log.attach(From::After(Seq::START), Backpressure::Own);
        assert!(attachment.snapshot.len() < 11, "{} entries of 100 kB are in memory", attachment.snapshot.len());
        assert_eq!(bench.past(&attachment).len(), 50);
    }
}

#[test]
fn a_batch_larger_than_the_memory_is_still_handed_out_whole() {
    let mut bench = Bench::new(Limits { ring_entries: 2, ring_bytes: 10, ..Limits::default() });
    let mut follow = bench.log.attach(From::Now, Backpressure::Own).follow;
    bench.append(&[100; 5]);
    assert_eq!(follow.try_recv().unwrap().len(), 5);
    let attachment = bench.log.attach(From::After(Seq::START), Backpressure::Own);
    assert_eq!(bench.past(&attachment).len(), 5);
}
