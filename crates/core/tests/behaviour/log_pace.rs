//! Followers that do not keep up: most are dropped, one that may slow the agent is waited for, within bounds.

use std::time::Duration;

use gembridge_core::limit::Limits;
use gembridge_core::log::{Backpressure, Draft, From, SessionLog};
use gembridge_core::model::{Event, Principal, Seq, SessionId, Timestamp, TurnId};
use gembridge_core::store::SessionRecord;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::task::JoinSet;

use crate::support::store::FaultyStore;
use crate::support::test_sessions::{TestSessions, agent_name, prompt};
use crate::support::{done, finished, text};

fn narrow() -> Limits {
    Limits { follower_batches: 2, ..Limits::default() }
}

fn empty_log(limits: Limits) -> SessionLog {
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
    SessionLog::new(store.create_now(record), Seq::START, Vec::new(), limits)
}

fn append(log: &mut SessionLog) {
    log.append(vec![Draft { turn: None, event: Event::Started, frame: None }]).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_holds_the_agent_loses_nothing_while_it_moves() {
    let limits = narrow();
    let mut log = empty_log(limits);
    let mut slow = log.attach(From::Now, Backpressure::HoldAgent).follow;
    let mut quick = log.attach(From::Now, Backpressure::Own).follow;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut seen = Vec::new();
        while let Some(batch) = slow.recv().await {
            seen.extend(batch.iter().map(|entry| entry.seq.0));
            tokio::time::sleep(limits.follower_stall / 2).await;
        }
        seen
    });
    for _ in 0..20 {
        append(&mut log);
        assert!(quick.try_recv().is_ok(), "others get it at once");
        if log.is_held() {
            log.release().await;
        }
    }
    drop(log);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), (1..=20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_holds_the_agent_and_stands_still_is_dropped() {
    let limits = narrow();
    let mut log = empty_log(limits);
    let mut stalled = log.attach(From::Now, Backpressure::HoldAgent).follow;
    for _ in 0..3 {
        append(&mut log);
    }
    assert!(log.is_held());
    let began = tokio::time::Instant::now();
    for _ in 0..3 {
        // Giving up the wait and taking it up again does not begin it anew.
        drop(tokio::time::timeout(limits.follower_stall / 4, log.release()).await);
    }
    assert!(log.is_held());
    log.release().await;
    assert_eq!(began.elapsed().as_secs(), limits.follower_stall.as_secs());
    assert!(!log.is_held());
    assert_eq!(log.followers(), 0);
    for seq in 1..=2 {
        assert_eq!(stalled.try_recv().unwrap()[0].seq, Seq(seq), "what it was given before is still its own");
    }
    assert_eq!(stalled.try_recv().unwrap_err(), TryRecvError::Disconnected);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_holds_the_agent_and_leaves_lets_it_go() {
    let mut log = empty_log(narrow());
    let leaving = log.attach(From::Now, Backpressure::HoldAgent).follow;
    for _ in 0..3 {
        append(&mut log);
    }
    assert!(log.is_held());
    drop(leaving);
    let began = tokio::time::Instant::now();
    log.release().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_held_follower_is_bounded() {
    let mut log = empty_log(narrow());
    let _stalled = log.attach(From::Now, Backpressure::HoldAgent).follow;
    for _ in 0..100 {
        append(&mut log);
    }
    assert_eq!(log.followers(), 0, "it lost its place rather than let memory grow");
}

#[tokio::test(start_paused = true)]
async fn a_slow_follower_of_its_own_pace_is_dropped_and_slows_nobody() {
    let mut log = empty_log(narrow());
    let mut slow = log.attach(From::Now, Backpressure::Own).follow;
    let mut quick = log.attach(From::Now, Backpressure::Own).follow;
    for seq in 1..=10 {
        append(&mut log);
        assert!(!log.is_held());
        assert_eq!(quick.try_recv().unwrap()[0].seq, Seq(seq));
    }
    assert_eq!(log.followers(), 1);
    assert_eq!(slow.recv().await.unwrap()[0].seq, Seq(1));
    assert_eq!(slow.recv().await.unwrap()[0].seq, Seq(2));
    assert!(slow.recv().await.is_none());
    let back = log.attach(From::After(Seq(2)), Backpressure::Own);
    assert_eq!(back.snapshot[0][0].seq, Seq(3), "it goes on where it was");
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_no_batches_still_follows() {
    let mut log = empty_log(Limits { follower_batches: 0, ..Limits::default() });
    let mut follow = log.attach(From::Now, Backpressure::Own).follow;
    append(&mut log);
    assert!(follow.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_held_session_reads_no_more_of_its_agent_and_still_takes_commands() {
    let mut test = TestSessions::with(narrow());
    let session = test.session().await;
    let mut only_reader = session.attach(From::Now, Backpressure::HoldAgent).await.unwrap().follow;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("go").await;
    for _ in 0..10 {
        agent.does([text("x")]).await;
        session.describe().await.expect("commands get through");
    }
    let stored = test.entries(&session).len();
    assert!(stored < 8, "{stored} entries although nobody takes them");
    agent.does([done()]).await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|event| matches!(event, Event::Ended(_))) {
        let batch = only_reader.recv().await.expect("a reader that reads keeps its place");
        seen.extend(batch.iter().map(|entry| entry.event.clone()));
    }
    let texts = seen.iter().filter(|event| matches!(event, Event::Text(_))).count();
    assert_eq!(texts, 10, "nothing is lost");
    assert_eq!(seen.last(), Some(&Event::Ended(finished())));
    assert_eq!(test.entries(&session).last().unwrap().turn, Some(TurnId(1)));
}
