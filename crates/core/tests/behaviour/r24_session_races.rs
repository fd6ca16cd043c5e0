//! A whole session under whatever clients, agents, disks and clocks do to it, in any order: its log keeps its shape,
//! every turn ends once, and no agent is prompted while it still works.

use std::collections::BTreeSet;
use std::time::Duration;

use gembridge_core::driver::Signal;
use gembridge_core::limit::Limits;
use gembridge_core::model::{AskId, Event, Prompt, TurnId};
use gembridge_core::session::SessionHandle;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::store::Disk;
use crate::support::test_sessions::{CLIENT, TestSessions};
use crate::support::{asked, done, done_cancelled, failure, ledger, option, text, update, usual_ask};
use gembridge_core::test_support::{FakeAgent, OpenRequest, Order};

#[derive(Clone, Debug)]
enum Step {
    Prompt,
    Cancel,
    CancelTurn(u64),
    Answer(u64),
    Close,
    OpenAgent,
    RefuseAgent,
    Text,
    Mode,
    Ask,
    End(Ending),
    Disk(Disk),
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Done,
    Cancelled,
    Failed,
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    let ending =
        prop::sample::select(vec![Ending::Done, Ending::Done, Ending::Cancelled, Ending::Failed, Ending::Lost]);
    let disk = prop::sample::select(vec![Disk::Sound, Disk::Sound, Disk::Full, Disk::Stumbling]);
    prop_oneof![
        6 => Just(Step::Prompt),
        2 => Just(Step::Cancel),
        1 => (1..8_u64).prop_map(Step::CancelTurn),
        2 => (0..6_u64).prop_map(Step::Answer),
        1 => Just(Step::Close),
        6 => Just(Step::OpenAgent),
        1 => Just(Step::RefuseAgent),
        5 => Just(Step::Text),
        1 => Just(Step::Mode),
        3 => Just(Step::Ask),
        6 => ending.prop_map(Step::End),
        3 => disk.prop_map(Step::Disk),
        3 => prop::sample::select(vec![1, 500, 5_000, 60_000, 120_000, 7_200_000]).prop_map(Step::Pass),
    ]
}

struct Play {
    test: TestSessions,
    session: SessionHandle,
    request: Option<OpenRequest>,
    agent: Option<Actor>,
    asks: u64,
    accepted: BTreeSet<TurnId>,
}

/// The agent of the moment, which keeps to its protocol: one end for each prompt, asks only while it works.
struct Actor {
    agent: FakeAgent,
    working: bool,
    answered: BTreeSet<AskId>,
}

impl Actor {
    /// Looks at what it was told, and whether it could have been told so.
    fn listen(&mut self) -> bool {
        for order in self.agent.orders_so_far() {
            match order {
                Order::Prompt(_) => {
                    assert!(!self.working, "a prompt came while the agent still worked on another");
                    self.working = true;
                }
                Order::Answer(ask, _) => assert!(self.answered.insert(ask), "{ask:?} was answered twice"),
                Order::Close(_) | Order::Drop => return false,
                Order::Cancel | Order::Change(..) => {}
            }
        }
        true
    }
}

impl Play {
    async fn new() -> Self {
        let limits = Limits { queued_prompts: 2, open_asks: 2, ring_entries: 5, ..Limits::default() };
        let test = TestSessions::with(limits);
        let session = test.session().await;
        Self { test, session, request: None, agent: None, asks: 0, accepted: BTreeSet::new() }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Prompt => {
                if let Ok(accepted) = self.session.prompt(Prompt::text("p"), CLIENT).await {
                    assert!(self.accepted.insert(accepted.turn), "every turn has its own number");
                }
            }
            Step::Cancel => drop(self.session.cancel().await),
            Step::CancelTurn(turn) => drop(self.session.cancel_turn(TurnId(turn)).await),
            Step::Answer(ask) => drop(self.session.answer(AskId(ask), option("AllowOnce"), CLIENT).await),
            Step::Close => self.session.close().await.expect("closing works"),
            Step::OpenAgent => self.open(),
            Step::RefuseAgent => {
                if let Some(request) = self.request.take() {
                    request.refuse(failure("no agent"));
                }
            }
            Step::Text => self.agent_does(text("t")),
            Step::Mode => self.agent_does(update(Event::Mode("m".into()))),
            Step::Ask => {
                self.asks += 1;
                self.agent_does(asked(usual_ask(self.asks)));
            }
            Step::End(ending) => self.end(ending),
            Step::Disk(disk) => self.test.store.set_disk(disk),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
        self.look_around().await;
    }

    fn open(&mut self) {
        if let Some(request) = self.request.take() {
            let agent = request.accept("agent");
            self.agent = Some(Actor { agent, working: false, answered: BTreeSet::new() });
        }
    }

    fn agent_does(&mut self, signal: Signal) {
        if let Some(actor) = self.agent.as_ref().filter(|actor| actor.working) {
            actor.agent.tries(signal);
        }
    }

    fn end(&mut self, ending: Ending) {
        let signal = match ending {
            Ending::Done => done(),
            Ending::Cancelled => done_cancelled(),
            Ending::Failed => Signal::Failed(failure("failed")),
            Ending::Lost => Signal::Lost(failure("lost")),
        };
        self.agent_does(signal);
        if let Some(actor) = &mut self.agent {
            actor.working = false;
        }
    }

    /// Lets everybody finish what they are at, and sees what became of it.
    async fn look_around(&mut self) {
        // Time is paused: it moves when nobody has anything left to do.
        tokio::time::sleep(Duration::from_nanos(1)).await;
        self.agent = self.agent.take().and_then(|mut actor| actor.listen().then_some(actor));
        self.request = self.request.take().filter(|request| !request.is_abandoned());
        if let Some(request) = self.test.desk.waiting().filter(|request| !request.is_abandoned()) {
            assert!(self.request.is_none(), "one agent is opened at a time");
            self.request = Some(request);
        }
        if self.session.is_closed() {
            self.session = self.come_back().await;
        }
        ledger::check(&self.test.entries(&self.session));
    }

    /// Brings the session back, with space on the disk if it needs that.
    async fn come_back(&mut self) -> SessionHandle {
        let viewer = gembridge_core::session::Viewer::Admin;
        if let Ok(session) = self.test.sessions.get(self.session.id(), &viewer).await {
            return session;
        }
        self.test.store.set_disk(Disk::Sound);
        self.test.get(self.session.id()).await
    }

    async fn finish(mut self) {
        self.test.store.set_disk(Disk::Sound);
        self.session = self.come_back().await;
        let id = self.session.id();
        self.test.sessions.shutdown().await;
        let entries = self.test.store.entries(id);
        ledger::check_settled(&entries);
        let ended: BTreeSet<TurnId> = ledger::outcomes(&entries).into_keys().collect();
        assert_eq!(ended, self.accepted, "what was accepted has ended, and nothing else");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn r24_a_session_ends_every_turn_once_whatever_happens(steps in vec(step(), 1..60)) {
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
