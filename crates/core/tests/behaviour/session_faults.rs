//! Agents that fail, and what the session makes of it.

use gembridge_core::driver::Signal;
use gembridge_core::error::Error;
use gembridge_core::model::{AskId, Event, FailureKind, Outcome, TurnId};

use crate::support::follow::Reader;
use crate::support::test_sessions::{CLIENT, TestSessions, prompt};
use crate::support::{
    asked, done, failure, finished, interrupted_by, ledger, option, says, text, thought, update, usual_ask,
};

#[tokio::test(start_paused = true)]
async fn an_agent_lost_in_a_turn_interrupts_it_and_the_next_prompt_opens_another() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    for round in 1..=2 {
        let turn = prompt(&session, "work").await;
        let mut agent = test.desk.open(&format!("agent-{round}")).await;
        agent.expect_prompt("work").await;
        agent.does([thought("hm"), asked(usual_ask(round)), Signal::Lost(failure("killed by signal 9"))]).await;
        let outcome = reader.until_ended(turn).await;
        assert_eq!(outcome, Outcome::Interrupted(failure("killed by signal 9")));
    }
    prompt(&session, "again").await;
    let mut agent = test.desk.open("agent-3").await;
    agent.expect_prompt("again").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(3)).await, finished());
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    let replaced: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::AgentReplaced { reason } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(replaced, ["killed by signal 9"; 2], "everybody learns that the memory is gone, with the reason");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_before_any_sign_of_the_turn_is_replaced_within_it() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let (_, mut agent) = tokio::join!(session.wake(), test.desk.open("a"));
    says(&session, &mut agent, &mut reader, "one", "ONE").await;
    prompt(&session, "two").await;
    agent.expect_prompt("two").await;
    // What it says of its session it would have said without a prompt.
    agent.does([update(Event::Commands([].into())), Signal::Lost(failure("killed by signal 9"))]).await;
    let mut next = test.desk.open("b").await;
    next.expect_prompt("[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo").await;
    next.does([text("TWO"), done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    let started = entries.iter().filter(|entry| entry.turn == Some(TurnId(2)) && entry.event == Event::Started);
    assert_eq!(started.count(), 1, "for whoever watches it is one turn");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_kills_its_agent_kills_two_at_most() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "die").await;
    for name in ["a", "b"] {
        let mut agent = test.desk.open(name).await;
        agent.expect_prompt("die").await;
        agent.does([Signal::Lost(failure(name))]).await;
    }
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Interrupted(failure("b")));
    assert!(test.desk.is_idle());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_being_cancelled_is_not_begun_again() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    session.cancel_turn(TurnId(1)).await.unwrap();
    agent.expect_cancel().await;
    agent.does([Signal::Lost(failure("gone"))]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    assert!(test.desk.is_idle());
}

#[tokio::test(start_paused = true)]
async fn an_agent_lost_between_turns_is_replaced_by_the_next_prompt() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let (_, agent) = tokio::join!(session.wake(), test.desk.open("a"));
    drop(agent);
    prompt(&session, "hello").await;
    let mut other = test.desk.open("b").await;
    other.expect_prompt("hello").await;
    other.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_lets_go_without_a_word_interrupts_the_turn() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "work").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("work").await;
    drop(agent);
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::Internal));
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_lost_agent_is_asked_to_come_back_with_its_memory() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let request = test.desk.next().await;
    assert_eq!(request.wanted(), None);
    let agent = request.accept("memory-1");
    agent.does([text("part"), Signal::Lost(failure("gone"))]).await;
    reader.until_ended(TurnId(1)).await;
    prompt(&session, "two").await;
    let request = test.desk.next().await;
    assert_eq!(request.wanted(), Some("memory-1"), "the session that knows the latest turns");
    let mut agent = request.resume("memory-1");
    agent.expect_prompt("two").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(2)).await;
    let entries = test.entries(&session);
    let replaced = entries.iter().any(|entry| matches!(entry.event, Event::AgentReplaced { .. }));
    assert!(!replaced, "it remembers, so nothing was replaced");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_opened_interrupts_the_turn_and_is_tried_again() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    prompt(&session, "two").await;
    test.desk.next().await.refuse(failure("no such program"));
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Interrupted(failure("no such program")));
    test.desk.next().await.refuse(failure("still none"));
    assert_eq!(reader.until_ended(TurnId(2)).await, Outcome::Interrupted(failure("still none")));
    prompt(&session, "three").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("three").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(3)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn whoever_woke_an_agent_that_cannot_be_opened_is_told_why() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let (woken, ()) = tokio::join!(session.wake(), async {
        test.desk.next().await.refuse(failure("needs a login"));
    });
    assert_eq!(woken, Err(Error::Agent(failure("needs a login"))));
    let (woken, _agent) = tokio::join!(session.wake(), test.desk.open("a"));
    assert!(woken.is_ok(), "the next attempt is a new one");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_agent_interrupts_the_turn_but_not_the_session() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([Signal::Failed(failure("429"))]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Interrupted(failure("429")));
    prompt(&session, "two").await;
    agent.expect_prompt("two").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    assert!(test.desk.is_idle(), "the same agent goes on");
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_times_out_and_is_replaced() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "hang").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("hang").await;
    agent.expect_cancel().await;
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::TimedOut));
    agent.expect_close(gembridge_core::driver::CloseMode::Kill).await;
    prompt(&session, "hello").await;
    test.desk.open("b").await.expect_prompt("hello").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_agent_was_lost_is_refused() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "may I").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("may I").await;
    agent.does([asked(usual_ask(1))]).await;
    reader.until_asked().await;
    agent.does([Signal::Lost(failure("gone"))]).await;
    reader.until_ended(TurnId(1)).await;
    assert_eq!(session.answer(AskId(1), option("AllowOnce"), CLIENT).await, Err(Error::NotAsked));
    ledger::check_settled(&test.entries(&session));
}
