//! A disk that is full: nothing is shown that was not stored, nothing is told that did not happen, every turn ends.

use gembridge_core::error::Error;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Answer, AnsweredBy, AskId, Event, FailureKind, Prompt, TurnId};
use gembridge_core::session::SessionHandle;
use gembridge_core::store::StoreError;

use crate::support::follow::Reader;
use crate::support::store::Disk;
use crate::support::test_sessions::{CLIENT, TestSessions, prompt};
use crate::support::{asked, done, done_cancelled, finished, interrupted_by, ledger, option, text, usual_ask};
use gembridge_core::test_support::FakeAgent;

async fn running_turn(test: &mut TestSessions) -> (SessionHandle, Reader, FakeAgent) {
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "work").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("work").await;
    agent.does([text("stored")]).await;
    assert_eq!(reader.until_text().await, "stored");
    (session, reader, agent)
}

async fn refused_prompt(session: &SessionHandle) -> Error {
    let result = session.prompt(Prompt::text("more"), CLIENT).await;
    result.map(|accepted| accepted.turn).expect_err("the disk is full")
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_the_turn_and_what_is_owed_comes_first_when_space_is_back() {
    let mut test = TestSessions::new();
    let (session, mut reader, mut agent) = running_turn(&mut test).await;
    test.store.set_disk(Disk::Full);
    agent.does([text("not stored")]).await;
    assert_eq!(reader.next().await, None, "followers are let go, and saw nothing that was not stored");
    agent.expect_cancel().await;
    assert_eq!(refused_prompt(&session).await, Error::Store(StoreError::Full));
    let attached = session.attach(From::Now, Backpressure::Own).await.map(|attachment| attachment.last);
    assert_eq!(attached, Err(Error::Store(StoreError::Full)));
    agent.does([done_cancelled()]).await;
    test.store.set_disk(Disk::Sound);
    prompt(&session, "again").await;
    agent.expect_prompt("again").await;
    agent.does([done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::StoreFailed));
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TurnId(1)), ["prompted", "started", "text", "ended"]);
    let prompted = entries.iter().position(|entry| entry.turn == Some(TurnId(2))).unwrap();
    assert!(matches!(entries[prompted - 1].event, Event::Ended(_)), "the owed end comes before anything new");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_cannot_be_stored_is_refused_and_taken_back_from_the_agent() {
    let mut test = TestSessions::new();
    let (session, mut reader, mut agent) = running_turn(&mut test).await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    test.store.set_disk(Disk::Full);
    assert_eq!(refused_prompt(&session).await, Error::Store(StoreError::Full));
    agent.expect_prompt("more").await;
    agent.expect_cancel().await;
    test.store.set_disk(Disk::Sound);
    prompt(&session, "again").await;
    session.describe().await.unwrap();
    assert!(agent.is_left_alone(), "it has not let go of the prompt before");
    agent.does([text("stale"), done_cancelled()]).await;
    agent.expect_prompt("again").await;
    agent.does([done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TurnId(2)), ["prompted", "admitted", "started", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_stored_is_owed() {
    let mut test = TestSessions::new();
    let (session, mut reader, mut agent) = running_turn(&mut test).await;
    test.store.set_disk(Disk::Full);
    agent.does([done()]).await;
    assert_eq!(reader.next().await, None);
    test.store.set_disk(Disk::Sound);
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished(), "as the agent said");
    prompt(&session, "again").await;
    agent.expect_prompt("again").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn waiting_turns_end_once_each_when_the_disk_fills() {
    let mut test = TestSessions::new();
    let (session, mut reader, mut agent) = running_turn(&mut test).await;
    prompt(&session, "two").await;
    prompt(&session, "three").await;
    test.store.set_disk(Disk::Full);
    agent.does([text("not stored")]).await;
    while reader.next().await.is_some() {}
    agent.expect_cancel().await;
    assert!(matches!(session.cancel_turn(TurnId(3)).await, Err(Error::Store(_))));
    session.close().await.unwrap();
    assert_eq!(ledger::outcomes(&test.entries(&session)).len(), 0, "nothing could be written");
    test.store.set_disk(Disk::Sound);
    let session = test.get(session.id()).await;
    let mut reader = Reader::of(&session, &test.store).await;
    for turn in 1..=3 {
        reader.until_ended(TurnId(turn)).await;
    }
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn no_prompt_goes_to_an_agent_that_has_not_ended_the_turn_before() {
    let mut test = TestSessions::new();
    let (session, _reader, mut agent) = running_turn(&mut test).await;
    test.store.set_disk(Disk::Stumbling);
    agent.does([text("lost")]).await;
    agent.expect_cancel().await;
    prompt(&session, "two").await;
    session.describe().await.unwrap();
    assert!(agent.is_left_alone(), "its first turn has not ended");
    agent.does([text("stale"), asked(usual_ask(1)), done_cancelled()]).await;
    agent.expect_answer(1, Answer::Cancelled).await;
    agent.expect_prompt("two").await;
    agent.does([text("fresh"), done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::StoreFailed));
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TurnId(2)), ["prompted", "admitted", "started", "text", "ended"]);
    let stale = entries.iter().any(|entry| entry.event == Event::Text("stale".into()));
    assert!(!stale, "what an interrupted turn still sends is nobody's");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_end_an_unwritable_turn_is_given_up() {
    let mut test = TestSessions::new();
    let (session, _reader, mut agent) = running_turn(&mut test).await;
    test.store.set_disk(Disk::Stumbling);
    agent.does([text("lost")]).await;
    agent.expect_cancel().await;
    prompt(&session, "two").await;
    agent.expect_close(gembridge_core::driver::CloseMode::Kill).await;
    let mut other = test.desk.open("b").await;
    other.expect_prompt("[User]\nwork\n\n[Assistant]\nstored\n\n[User]\ntwo").await;
    other.does([done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_could_not_be_stored_reaches_neither_the_agent_nor_counts_as_taken() {
    for disk in [Disk::Full, Disk::Stumbling] {
        let mut test = TestSessions::new();
        let (session, mut reader, mut agent) = running_turn(&mut test).await;
        agent.does([asked(usual_ask(1))]).await;
        reader.until_asked().await;
        test.store.set_disk(disk);
        let answered = session.answer(AskId(1), option("AllowOnce"), CLIENT).await;
        assert!(matches!(answered, Err(Error::Store(_))), "{disk:?}: {answered:?}");
        let mut told = [format!("{:?}", agent.order().await), format!("{:?}", agent.order().await)];
        told.sort();
        assert_eq!(told, ["Answer(AskId(1), Cancelled)", "Cancel"], "{disk:?}: the agent is not allowed anything");
        test.store.set_disk(Disk::Sound);
        agent.does([done_cancelled()]).await;
        let mut reader = Reader::of(&session, &test.store).await;
        assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::StoreFailed));
        let entries = test.entries(&session);
        ledger::check_settled(&entries);
        assert_eq!(ledger::story(&entries, TurnId(1)), ["prompted", "started", "text", "asked", "answered", "ended"]);
        let cancelled = Event::Answered { ask: AskId(1), answer: Answer::Cancelled, by: AnsweredBy::Cancel };
        assert_eq!(entries[4].event, cancelled, "{disk:?}: the log tells what the agent was told");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_could_not_be_stored_never_happened() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    test.store.set_disk(Disk::Full);
    assert_eq!(refused_prompt(&session).await, Error::Store(StoreError::Full));
    assert!(test.desk.is_idle(), "no agent was opened for it");
    test.store.set_disk(Disk::Sound);
    assert_eq!(prompt(&session, "now").await, TurnId(1));
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("now").await;
    agent.does([done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    ledger::check_settled(&test.entries(&session));
}
