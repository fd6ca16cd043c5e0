//! Turns of several sessions at one agent: who runs, who waits, and who holds a permit meanwhile.

use gembridge_core::admission::AdmissionStatus;
use gembridge_core::error::Error;
use gembridge_core::model::{Event, Outcome, Prompt, TurnId};
use gembridge_core::session::SessionHandle;
use tokio::task::JoinSet;

use crate::support::follow::Reader;
use crate::support::test_sessions::{CLIENT, TestSessions, accepted, give, new_session, prompt, submit};
use crate::support::tools::offer;
use crate::support::{done, finished, ledger, text};

const FIRST: TurnId = TurnId(1);
const SECOND: TurnId = TurnId(2);

async fn session_of(test: &TestSessions, principal: &str) -> SessionHandle {
    test.sessions.create(new_session(principal)).await.expect("a session can be made")
}

fn status(running: usize, waiting: usize) -> AdmissionStatus {
    AdmissionStatus { running, waiting }
}

#[tokio::test(start_paused = true)]
async fn r26_prompts_that_wait_behind_their_session_keep_nobody_else_waiting() {
    let mut test = TestSessions::running(5, 256);
    let mut busy = Vec::new();
    for _ in 0..4 {
        let session = session_of(&test, "eve").await;
        assert!(accepted(&session, "long").await.is_admitted);
        let mut agent = test.desk.open("a").await;
        agent.expect_prompt("long").await;
        for _ in 0..16 {
            assert!(!accepted(&session, "next").await.is_admitted);
        }
        assert!(matches!(session.prompt(Prompt::text("one more"), CLIENT).await, Err(Error::Busy { .. })));
        busy.push((session, agent));
    }
    assert_eq!(test.admission().status(), status(4, 64));
    let ann = session_of(&test, "ann").await;
    assert!(accepted(&ann, "hello").await.is_admitted, "nobody who could run is before it");
    let mut agent = test.desk.open("b").await;
    agent.expect_prompt("hello").await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_a_permit_and_its_log_says_when_it_had_one() {
    let mut test = TestSessions::running(1, 8);
    let (ann, bob) = (session_of(&test, "ann").await, session_of(&test, "bob").await);
    prompt(&ann, "first").await;
    let mut first = test.desk.open("a").await;
    first.expect_prompt("first").await;
    assert!(!accepted(&bob, "second").await.is_admitted);
    assert!(test.desk.is_idle(), "no agent is opened for a turn that may not run");
    assert_eq!(test.admission().status(), status(1, 1));
    first.does([done()]).await;
    let mut second = test.desk.open("b").await;
    second.expect_prompt("second").await;
    second.does([text("hi"), done()]).await;
    let mut reader = Reader::of(&bob, &test.store).await;
    assert_eq!(reader.until_ended(FIRST).await, finished());
    assert_eq!(ledger::story(&test.entries(&bob), FIRST), ["prompted", "admitted", "started", "text", "ended"]);
    assert_eq!(test.admission().status(), status(0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_turn_behind_another_of_its_session_says_when_it_was_admitted() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "first").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("first").await;
    prompt(&session, "second").await;
    agent.does([done()]).await;
    agent.expect_prompt("second").await;
    agent.does([done()]).await;
    assert_eq!(Reader::of(&session, &test.store).await.until_ended(SECOND).await, finished());
    assert_eq!(ledger::story(&test.entries(&session), SECOND), ["prompted", "admitted", "started", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_cancelled_while_it_waits_for_a_permit_is_nobodys_any_more() {
    let mut test = TestSessions::running(1, 8);
    let (ann, bob) = (session_of(&test, "ann").await, session_of(&test, "bob").await);
    prompt(&ann, "first").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("first").await;
    prompt(&bob, "second").await;
    bob.cancel().await.unwrap();
    assert_eq!(Reader::of(&bob, &test.store).await.until_ended(FIRST).await, Outcome::Cancelled);
    assert_eq!(test.admission().status(), status(1, 0));
    agent.does([done()]).await;
    assert_eq!(Reader::of(&ann, &test.store).await.until_ended(FIRST).await, finished());
    assert!(test.desk.is_idle());
}

#[tokio::test(start_paused = true)]
async fn r19_a_turn_that_finds_no_room_to_wait_is_refused_and_never_was() {
    let mut test = TestSessions::running(1, 0);
    let (ann, bob) = (session_of(&test, "ann").await, session_of(&test, "bob").await);
    prompt(&ann, "first").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("first").await;
    assert!(matches!(submit(&bob, "second", None).await, Err(Error::QueueFull(_))));
    assert!(test.entries(&bob).is_empty());
}

#[tokio::test(start_paused = true)]
async fn s29_a_turn_that_waits_for_its_client_lets_others_run() {
    let mut test = TestSessions::running(1, 8);
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let calls = Reader::of(&session, &test.store).await.until_parked().await;
    assert_eq!(test.admission().status(), status(0, 0));
    let bob = session_of(&test, "bob").await;
    assert!(accepted(&bob, "mine").await.is_admitted);
    let mut other = test.desk.open("b").await;
    other.expect_prompt("mine").await;
    // The results come while somebody else has the permit: they wait for it.
    let mut giving = JoinSet::new();
    let of = session.clone();
    giving.spawn(async move { give(&of, &[(calls[0], "blue")]).await.map(|resumed| resumed.turn) });
    while test.admission().status() != status(1, 1) {
        tokio::task::yield_now().await;
    }
    let mut call = call;
    assert!(call.is_waiting());
    other.does([done()]).await;
    assert_eq!(giving.join_next().await.unwrap().unwrap().unwrap(), FIRST);
    assert_eq!(call.words().await.1, "blue");
    assert_eq!(test.admission().status(), status(1, 0));
    agent.does([done()]).await;
    assert_eq!(Reader::of(&session, &test.store).await.until_ended(FIRST).await, finished());
    assert_eq!(test.admission().status(), status(0, 0));
}

#[tokio::test(start_paused = true)]
async fn results_that_wait_for_a_permit_are_told_when_their_turn_ends_first() {
    let mut test = TestSessions::running(1, 8);
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let _call = place.calls("look", "{}").await;
    let calls = Reader::of(&session, &test.store).await.until_parked().await;
    let bob = session_of(&test, "bob").await;
    prompt(&bob, "mine").await;
    let mut other = test.desk.open("b").await;
    other.expect_prompt("mine").await;
    let mut giving = JoinSet::new();
    let of = session.clone();
    giving.spawn(async move { give(&of, &[(calls[0], "blue")]).await });
    while test.admission().status().waiting == 0 {
        tokio::task::yield_now().await;
    }
    agent.does([done()]).await;
    assert!(matches!(giving.join_next().await.unwrap().unwrap(), Err(Error::NotParked(_))));
    assert_eq!(test.admission().status(), status(1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_without_results_counts_as_running_again() {
    let mut test = TestSessions::running(1, 8);
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    Reader::of(&session, &test.store).await.until_parked().await;
    assert_eq!(test.admission().status(), status(0, 0));
    place.withdraws(call.id).await;
    let returned = |entry: &gembridge_core::log::LogEntry| matches!(entry.event, Event::Returned { .. }).then_some(());
    Reader::of(&session, &test.store).await.until(returned).await;
    assert_eq!(test.admission().status(), status(1, 0));
    agent.does([done()]).await;
    assert_eq!(Reader::of(&session, &test.store).await.until_ended(FIRST).await, finished());
    assert_eq!(test.admission().status(), status(0, 0));
}

#[tokio::test(start_paused = true)]
async fn prompts_that_wait_in_a_session_are_bounded_in_bytes_too() {
    let limits = gembridge_core::limit::Limits { queued_bytes: 10, ..Default::default() };
    let mut test = TestSessions::with(limits);
    let session = test.session().await;
    prompt(&session, "first").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("first").await;
    assert!(submit(&session, "longer than ten bytes", Some(offer(&[]))).await.is_ok(), "one may always wait");
    assert!(matches!(submit(&session, "short", None).await, Err(Error::Busy { .. })));
}
