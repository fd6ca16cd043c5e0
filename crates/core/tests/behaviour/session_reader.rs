//! The one way to read a session, for readers that the session has let go.

use std::sync::Arc;

use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Event, Seq};
use gembridge_core::session::{SessionHandle, SessionReader};
use gembridge_core::store::Logs as _;

use crate::support::test_sessions::{TestSessions, prompt};
use crate::support::{done, text};
use gembridge_core::test_support::FakeAgent;

/// A log that keeps next to nothing in memory and lets go of whoever is two batches behind.
fn short() -> Limits {
    Limits { follower_batches: 2, ring_entries: 4, ..Limits::default() }
}

async fn reader(test: &TestSessions, session: &SessionHandle) -> SessionReader {
    let attachment = session.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    SessionReader::new(session.clone(), attachment, Arc::new(test.store.clone()))
}

/// The agent says so many things, each in a batch of its own.
async fn says(session: &SessionHandle, agent: &mut FakeAgent, pieces: usize) {
    for _ in 0..pieces {
        let before = session.describe().await.unwrap().last;
        agent.does([text("piece")]).await;
        while session.describe().await.unwrap().last == before {
            tokio::task::yield_now().await;
        }
    }
}

async fn read_until(reader: &mut SessionReader, last: Seq) -> Vec<u64> {
    let mut seen = Vec::new();
    while reader.seen() < last {
        seen.extend(reader.next().await.unwrap().iter().map(|entry| entry.seq.0));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn r28_a_reader_that_falls_behind_again_and_again_is_served_each_time() {
    let mut test = TestSessions::with(short());
    let session = test.session().await;
    let mut reader = reader(&test, &session).await;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("agent").await;
    agent.expect_prompt("go").await;
    let mut seen = Vec::new();
    for _ in 0..1_200 {
        says(&session, &mut agent, 8).await;
        let last = session.describe().await.unwrap().last;
        seen.extend(read_until(&mut reader, last).await);
    }
    let all: Vec<u64> = (1..=reader.seen().0).collect();
    assert_eq!(seen, all);
}

#[tokio::test(start_paused = true)]
async fn r28_a_reader_gets_the_rest_of_the_log_of_a_session_that_closed_meanwhile() {
    let mut test = TestSessions::with(short());
    let session = test.session().await;
    let mut reader = reader(&test, &session).await;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("agent").await;
    agent.expect_prompt("go").await;
    says(&session, &mut agent, 500).await;
    agent.does([done()]).await;
    session.close().await.unwrap();
    let (mut seen, mut last) = (Vec::new(), None);
    let error = loop {
        match reader.next().await {
            Ok(batch) => {
                seen.extend(batch.iter().map(|entry| entry.seq.0));
                last = batch.last().map(|entry| entry.event.clone());
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::Closed);
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() > 500 && matches!(last, Some(Event::Ended(_))), "{last:?}");
    // Of one that was deleted nothing is left.
    test.store.delete(session.id()).await.unwrap();
    reader.go_to(Seq::START);
    assert_eq!(reader.next().await.unwrap_err(), Error::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_followed_by_whoever_is_there_also_while_it_catches_up() {
    let mut test = TestSessions::with(short());
    let session = test.session().await;
    let joined = session.join(From::Now, Backpressure::Own).await.unwrap();
    prompt(&session, "go").await;
    let mut agent = test.desk.open("agent").await;
    agent.expect_prompt("go").await;
    says(&session, &mut agent, 8).await;
    agent.does([done()]).await;
    assert!(joined.attachment.follow.is_closed(), "it was let go");
    assert_eq!(session.describe().await.unwrap().followers, 1);
    while session.describe().await.unwrap().turn != gembridge_core::session::TurnState::Idle {
        tokio::task::yield_now().await;
    }
    assert!(matches!(session.retire().await, Err(Error::Busy { .. })));
    drop(joined);
    session.retire().await.unwrap();
}
