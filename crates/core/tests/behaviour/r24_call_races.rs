//! Calls, results, cancels, timeouts and losses in any order, on a disk that may be full: every call gets exactly one
//! reply, and the log tells of each that it shows exactly one end.

use std::collections::BTreeMap;
use std::time::Duration;

use gembridge_core::driver::Signal;
use gembridge_core::limit::Limits;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{CallId, Event, ToolReturn};
use gembridge_core::session::{SessionHandle, SubmitResults, Unanswered};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::store::Disk;
use crate::support::test_sessions::{CLIENT, TestSessions, submit};
use crate::support::tools::{Call, FakePlace, offer, result, words};
use crate::support::{done, done_cancelled, failure, ledger, text};
use gembridge_core::test_support::FakeAgent;

#[derive(Clone, Debug)]
enum Step {
    Prompt,
    Call,
    Withdraw(Index),
    Deliver,
    Text,
    /// Gives results to these of all calls so far, waiting or not.
    Give(Vec<Index>, Unanswered),
    Cancel,
    Done,
    DoneCancelled,
    Failed,
    Lost,
    Disk(Disk),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let unanswered = prop::sample::select(vec![Unanswered::Wait, Unanswered::Wait, Unanswered::Close]);
    prop_oneof![
        4 => Just(Step::Prompt),
        10 => Just(Step::Call),
        2 => any::<Index>().prop_map(Step::Withdraw),
        1 => Just(Step::Deliver),
        2 => Just(Step::Text),
        8 => (vec(any::<Index>(), 1..4), unanswered).prop_map(|(which, unanswered)| Step::Give(which, unanswered)),
        1 => Just(Step::Cancel),
        2 => Just(Step::Done),
        1 => Just(Step::DoneCancelled),
        1 => Just(Step::Failed),
        1 => Just(Step::Lost),
        2 => prop::sample::select(vec![Disk::Sound, Disk::Sound, Disk::Full, Disk::Stumbling]).prop_map(Step::Disk),
        6 => prop::sample::select(vec![1, 25, 100, 5_000, 120_000, 590_000]).prop_map(Step::Pass),
    ]
}

struct Play {
    test: TestSessions,
    session: SessionHandle,
    agent: Option<FakeAgent>,
    place: Option<FakePlace>,
    /// Calls that the session has taken, and what each got.
    calls: Vec<(Call, Option<ToolReturn>)>,
}

impl Play {
    async fn new() -> Self {
        let test = TestSessions::with(Limits { parked_calls: 3, ..Limits::default() });
        let session = test.session().await;
        let mut play = Self { test, session, agent: None, place: None, calls: Vec::new() };
        play.step(Step::Prompt).await;
        play
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Prompt => drop(submit(&self.session, "go", Some(offer(&["look"]))).await),
            Step::Call => {
                let call = self.place.as_mut().and_then(|place| place.tries_call("look"));
                self.calls.extend(call.map(|call| (call, None)));
            }
            Step::Withdraw(which) if !self.calls.is_empty() => {
                let call = self.calls[which.index(self.calls.len())].0.id;
                if let Some(place) = &self.place {
                    place.tries_withdraw(call);
                }
            }
            Step::Deliver => {
                if let Some(place) = self.place.as_ref().filter(|place| !place.is_closed()) {
                    place.delivers("{}").await;
                }
            }
            Step::Text => self.agent_does(text("t")),
            Step::Give(which, unanswered) => self.give(&which, unanswered).await,
            Step::Cancel => drop(self.session.cancel().await),
            Step::Done => self.agent_does(done()),
            Step::DoneCancelled => self.agent_does(done_cancelled()),
            Step::Failed => self.agent_does(Signal::Failed(failure("failed"))),
            Step::Lost => self.agent_does(Signal::Lost(failure("lost"))),
            Step::Disk(disk) => self.test.store.set_disk(disk),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Withdraw(_) => {}
        }
        self.look_around().await;
    }

    async fn give(&mut self, which: &[Index], unanswered: Unanswered) {
        let known = called(&self.entries());
        if known.is_empty() {
            return;
        }
        let results = which.iter().map(|index| known[index.index(known.len())]);
        let results = results.map(|call| (call, result(&call.to_string()))).collect();
        drop(self.session.submit_results(SubmitResults { results, unanswered, by: CLIENT }).await);
    }

    fn agent_does(&self, signal: Signal) {
        if let Some(agent) = &self.agent {
            agent.tries(signal);
        }
    }

    /// Lets everybody finish what they are at, and sees what became of it.
    async fn look_around(&mut self) {
        // Time is paused: it moves when nobody has anything left to do.
        tokio::time::sleep(Duration::from_nanos(1)).await;
        if let Some(request) = self.test.desk.waiting().filter(|request| !request.is_abandoned()) {
            self.agent = Some(request.accept("agent"));
        }
        if let Some(place) = self.test.tools.waiting() {
            self.place = Some(place);
        }
        if let Some(place) = &mut self.place {
            place.reads_all();
        }
        tokio::time::sleep(Duration::from_nanos(1)).await;
        for (call, reply) in &mut self.calls {
            if let Some(given) = call.so_far() {
                assert!(reply.replace(given).is_none(), "a call gets one reply");
            }
        }
        ledger::check(&self.entries());
    }

    fn entries(&self) -> Vec<LogEntry> {
        self.test.entries(&self.session)
    }

    async fn finish(mut self) {
        self.test.store.set_disk(Disk::Sound);
        self.session.close().await.expect("closing works");
        self.look_around().await;
        let entries = self.entries();
        ledger::check_settled(&entries);
        let returned = returned(&entries);
        for call in called(&entries) {
            assert!(returned.contains_key(&call), "{call} has its end in the log");
        }
        for (call, reply) in &self.calls {
            assert!(reply.is_some(), "call {:?} got its reply", call.id);
        }
        let given = self.calls.iter().filter_map(|(_, reply)| reply.as_ref()).map(words);
        let clients: Vec<String> = given.filter(|words| words.starts_with("call_")).collect();
        let told = returned.values().filter(|result| words(result).starts_with("call_")).count();
        assert_eq!(clients.len(), told, "what the log calls given was given, and nothing else");
        for (call, result) in returned {
            let words = words(&result);
            assert!(!words.starts_with("call_") || words == call.to_string(), "each call gets its own result");
        }
    }
}

fn called(entries: &[LogEntry]) -> Vec<CallId> {
    let calls = entries.iter().filter_map(|entry| match &entry.event {
        Event::Called(call) => Some(call.id),
        _ => None,
    });
    calls.collect()
}

fn returned(entries: &[LogEntry]) -> BTreeMap<CallId, ToolReturn> {
    let returned = entries.iter().filter_map(|entry| match &entry.event {
        Event::Returned { call, result, .. } => Some((*call, (**result).clone())),
        _ => None,
    });
    returned.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn r24_every_call_returns_exactly_once_whatever_happens(steps in vec(step(), 1..60)) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime can be had");
        runtime.block_on(async {
            let mut play = Play::new().await;
            for step in steps {
                play.step(step).await;
            }
            play.finish().await;
        });
    }
}
