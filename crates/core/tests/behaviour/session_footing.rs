//! Prompts that build on what was said, and turns that nobody wants any more.

use gembridge_core::error::Error;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Event, FailureKind, Outcome, Prompt, Seq, TurnId};
use gembridge_core::session::{Precondition, SessionHandle, Submission};

use crate::support::follow::Reader;
use crate::support::test_sessions::{CLIENT, TestSessions, prompt};
use crate::support::{done, done_cancelled, failure, finished, interrupted_by, text};
use gembridge_core::test_support::FakeAgent;

fn words(text: &str) -> Prompt {
    Prompt::text(text)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_goes_on_where_the_caller_believes_it_to_stand() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    let busy = session.prompt_after(TurnId(1), words("two"), CLIENT).await;
    assert_eq!(busy.err(), Some(Error::MovedOn), "the turn before is not over");
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    let accepted = session.prompt_after(TurnId(1), words("two"), CLIENT).await.unwrap();
    assert_eq!(accepted.turn, TurnId(2));
    agent.expect_prompt("two").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    let late = session.prompt_after(TurnId(1), words("also two"), CLIENT).await;
    assert_eq!(late.err(), Some(Error::MovedOn), "somebody else went on");
}

fn follow_up(text: &str) -> Submission {
    Submission { prompt: words(text), by: CLIENT, precondition: Precondition::RightAfter(TurnId(1)), offer: None }
}

async fn after_one_turn(test: &mut TestSessions) -> (SessionHandle, FakeAgent) {
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    (session, agent)
}

#[tokio::test(start_paused = true)]
async fn whoever_converses_sees_the_prompt_and_its_start_at_once_and_nothing_before() {
    let mut test = TestSessions::new();
    let (session, mut agent) = after_one_turn(&mut test).await;
    let (accepted, mut attachment) = session.converse(follow_up("two"), Backpressure::Own).await.unwrap();
    agent.expect_prompt("two").await;
    assert!(attachment.snapshot.is_empty());
    let batch = attachment.follow.recv().await.unwrap();
    assert!(matches!(batch[0].event, Event::Prompted { .. }) && batch[0].seq == accepted.seq);
    assert_eq!((batch.len(), &batch[1].event, batch[1].turn), (2, &Event::Started, Some(TurnId(2))));
    agent.does([done()]).await;
    assert!(matches!(attachment.follow.recv().await.unwrap()[0].event, Event::Ended(_)));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_whose_caller_is_gone_before_it_begins_is_abandoned() {
    let mut test = TestSessions::new();
    let (session, mut agent) = after_one_turn(&mut test).await;
    let mut caller = Box::pin(session.converse(follow_up("two"), Backpressure::Own));
    assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(caller.as_mut().poll(cx).is_pending())).await);
    drop(caller);
    agent.expect_prompt("two").await;
    agent.expect_cancel().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_forgotten_is_not_asked_to_go_on() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    // The agent is gone, and the session has not heard of it.
    drop(agent);
    session.prompt_after(TurnId(1), words("two"), CLIENT).await.unwrap();
    let mut next = test.desk.open("b").await;
    let outcome = reader.until_ended(TurnId(2)).await;
    assert_eq!(interrupted_by(&outcome), Some(FailureKind::Crashed));
    assert!(next.is_left_alone(), "it knows nothing of `one`");
    // A prompt that needs no memory is answered by it.
    prompt(&session, "three").await;
    next.expect_prompt("three").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_found_the_session_again_goes_on() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    agent.tries(gembridge_core::driver::Signal::Lost(failure("gone")));
    drop(agent);
    session.prompt_after(TurnId(1), words("two"), CLIENT).await.unwrap();
    let mut next = test.desk.next().await.resume("a");
    next.expect_prompt("two").await;
    next.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_turn_ends_unless_somebody_else_watches() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    let watcher = session.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    session.abandon(TurnId(1)).await.unwrap();
    assert!(agent.is_left_alone(), "somebody watches");
    agent.does([text("still here")]).await;
    drop(watcher);
    session.abandon(TurnId(1)).await.unwrap();
    agent.expect_cancel().await;
    agent.does([done_cancelled()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    // Abandoning what is over changes nothing.
    session.abandon(TurnId(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_is_gone_with_its_client_whoever_watches() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    prompt(&session, "two").await;
    prompt(&session, "three").await;
    session.abandon(TurnId(2)).await.unwrap();
    assert_eq!(reader.until_ended(TurnId(2)).await, Outcome::Cancelled);
    assert!(agent.is_left_alone(), "the turn before it goes on");
    agent.does([done()]).await;
    agent.expect_prompt("three").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(3)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_left_before_it_heard_of_its_turn_has_abandoned_it() {
    let test = TestSessions::new();
    let session = test.session().await;
    {
        let mut prompting = Box::pin(session.prompt(words("one"), CLIENT));
        // Sent, and not waited for.
        let sent = std::future::poll_fn(|cx| std::task::Poll::Ready(prompting.as_mut().poll(cx))).await;
        assert!(sent.is_pending());
    }
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
}
