//! A session at work: prompts, queue, cancel, permissions, and what comes between turns.

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::driver::{Change, Changed, CloseMode};
use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Answer, AnsweredBy, Ask, AskId, ClientId, Event, Outcome, Prompt, TurnId};
use gembridge_core::session::TurnState;
use tokio::task::JoinSet;

use crate::support::follow::Reader;
use crate::support::test_sessions::{CLIENT, TestSessions, accepted, prompt};
use crate::support::{asked, done, done_cancelled, finished, ledger, option, text, update, usual_ask};

#[tokio::test(start_paused = true)]
async fn a_prompt_becomes_a_turn_with_one_end() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let accepted = accepted(&session, "hello").await;
    assert_eq!((accepted.turn, accepted.ahead), (TurnId(1), 0));
    assert_eq!(accepted.durable.await, Ok(()));
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("hello").await;
    assert_eq!(session.describe().await.unwrap().turn, TurnState::Running(TurnId(1)));
    agent.does([text("hi "), text("there")]).await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    assert_eq!(session.describe().await.unwrap().turn, TurnState::Idle);
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TurnId(1)), ["prompted", "started", "text", "text", "ended"]);
    assert_eq!(entries[0].seq, accepted.seq);
}

#[tokio::test(start_paused = true)]
async fn prompts_on_a_busy_session_wait_their_turn() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let mut agent = None;
    for (at, words) in ["one", "two", "three"].into_iter().enumerate() {
        assert_eq!(accepted(&session, words).await.ahead, at);
    }
    for (at, words) in ["one", "two", "three"].into_iter().enumerate() {
        let agent = match &mut agent {
            Some(agent) => agent,
            none => none.insert(test.desk.open("a").await),
        };
        agent.expect_prompt(words).await;
        agent.does([text("working")]).await;
        reader.until_text().await;
        assert!(agent.is_left_alone(), "the next prompt waits for the end of `{words}`");
        agent.does([done()]).await;
        assert_eq!(reader.until_ended(TurnId(at as u64 + 1)).await, finished());
    }
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_the_next_prompt_as_busy() {
    let mut test = TestSessions::with(Limits { queued_prompts: 2, ..Limits::default() });
    let session = test.session().await;
    for words in ["runs", "waits", "waits too"] {
        prompt(&session, words).await;
    }
    let refused = session.prompt(Prompt::text("one too many"), CLIENT).await.map(|accepted| accepted.turn);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("runs").await;
    agent.does([done()]).await;
    agent.expect_prompt("waits").await;
    assert_eq!(prompt(&session, "now there is room").await, TurnId(4), "the refused one left no trace");
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_queue_still_takes_a_prompt_when_it_is_free() {
    let mut test = TestSessions::with(Limits { queued_prompts: 0, ..Limits::default() });
    let session = test.session().await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    let refused = session.prompt(Prompt::text("two"), CLIENT).await.map(|accepted| accepted.turn);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_waiting_turn_leaves_the_running_one_alone() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    for words in ["one", "two", "three"] {
        prompt(&session, words).await;
    }
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    session.cancel_turn(TurnId(2)).await.unwrap();
    session.cancel_turn(TurnId(2)).await.unwrap();
    assert_eq!(reader.until_ended(TurnId(2)).await, Outcome::Cancelled);
    agent.does([done()]).await;
    agent.expect_prompt("three").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(3)).await, finished());
    session.cancel_turn(TurnId(3)).await.unwrap();
    session.cancel().await.unwrap();
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TurnId(2)), ["prompted", "ended"]);
    assert_eq!(ledger::outcomes(&entries)[&TurnId(1)], finished());
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_cancelled_while_its_agent_is_still_opening() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "never mind").await;
    let opening = test.desk.next().await;
    assert_eq!(session.describe().await.unwrap().turn, TurnState::Opening(TurnId(1)));
    session.cancel().await.unwrap();
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    prompt(&session, "but this").await;
    let mut agent = opening.accept("a");
    agent.expect_prompt("but this").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_obey_is_killed_and_the_next_prompt_gets_another() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "loop").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("loop").await;
    session.cancel().await.unwrap();
    agent.expect_cancel().await;
    prompt(&session, "next").await;
    agent.expect_close(CloseMode::Kill).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    let mut other = test.desk.open("b").await;
    other.expect_prompt("next").await;
    reader.until(|entry| matches!(entry.event, Event::AgentReplaced { .. }).then_some(())).await;
    other.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn of_two_clients_that_answer_at_once_exactly_one_is_right() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "may I").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("may I").await;
    agent.does([asked(usual_ask(5))]).await;
    reader.until_asked().await;
    assert_eq!(session.describe().await.unwrap().open_asks, [Ask { id: AskId(1), ..usual_ask(5) }]);
    let mut clients = JoinSet::new();
    for (client, choice) in [(1, "AllowOnce"), (2, "RejectOnce"), (3, "AllowOnce")] {
        let session = session.clone();
        clients.spawn(async move { (choice, session.answer(AskId(1), option(choice), ClientId(client)).await) });
    }
    let results = clients.join_all().await;
    let (taken, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(|(_, result)| result.is_ok());
    assert_eq!(taken.len(), 1);
    assert!(refused.iter().all(|(_, result)| *result == Err(Error::NotAsked)));
    agent.expect_answer(5, option(taken[0].0)).await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    assert!(agent.is_left_alone(), "the agent was answered once");
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_releases_an_agent_that_waits_for_an_answer() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "may I").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("may I").await;
    agent.does([asked(usual_ask(1))]).await;
    reader.until_asked().await;
    session.cancel_turn(TurnId(1)).await.unwrap();
    agent.expect_cancel().await;
    agent.expect_answer(1, Answer::Cancelled).await;
    assert_eq!(session.answer(AskId(1), option("AllowOnce"), CLIENT).await, Err(Error::NotAsked));
    agent.does([done_cancelled()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_one_breath_with_the_end_is_not_part_of_the_turn() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("go").await;
    agent.does([text("in"), done(), text("after"), asked(usual_ask(9))]).await;
    let withdrawn = Event::Answered { ask: AskId(9), answer: Answer::Cancelled, by: AnsweredBy::Cancel };
    agent.does([update(withdrawn)]).await;
    agent.expect_answer(9, Answer::Cancelled).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    let late = reader.next().await.unwrap();
    assert_eq!((late.turn, late.event), (None, Event::Text("after".into())));
    session.close().await.unwrap();
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn between_turns_the_agents_news_are_logged_and_its_questions_declined() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let (woken, mut agent) = tokio::join!(session.wake(), test.desk.open("a"));
    assert!(woken.is_ok());
    agent.does([update(Event::Mode("plan".into())), asked(usual_ask(3))]).await;
    agent.expect_answer(3, Answer::Cancelled).await;
    reader.until_asked().await;
    let description = session.describe().await.unwrap();
    assert_eq!(description.facts.mode.as_deref(), Some("plan"));
    let entries = test.entries(&session);
    assert!(entries.iter().all(|entry| entry.turn.is_none()));
    assert_eq!(entries.len(), 3, "the mode, the question and its answer");
}

#[tokio::test(start_paused = true)]
async fn a_change_needs_an_agent_and_is_told_to_everybody() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let early = session.change(Change::Mode("plan".into())).await;
    assert!(matches!(early, Err(Error::Invalid(_))), "{early:?}");
    let (_, mut agent) = tokio::join!(session.wake(), test.desk.open("a"));
    let changed = Changed { events: vec![Event::Mode("plan".into())], answer: None };
    let (result, ()) = tokio::join!(session.change(Change::Mode("plan".into())), async {
        let (Change::Mode(mode), reply) = agent.expect_change().await else { panic!("expected a change") };
        assert_eq!(&*mode, "plan");
        reply.send(Ok(changed.clone())).unwrap();
    });
    assert_eq!(result, Ok(changed.clone()));
    reader.until(|entry| matches!(entry.event, Event::Mode(_)).then_some(())).await;
    assert_eq!(session.describe().await.unwrap().record.mode, Some(Arc::from("plan")));
}

#[tokio::test(start_paused = true)]
async fn whoever_changed_the_model_finds_it_with_the_owner_at_once() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let before = session.owner();
    assert_eq!((before.principal.as_str(), before.agent.as_str(), before.model), ("ann", "scripted", None));
    let (_, mut agent) = tokio::join!(session.wake(), test.desk.open("a"));
    let changed = Changed { events: Vec::new(), answer: None };
    let (result, ()) = tokio::join!(session.change(Change::Model("pro".into())), async {
        let (Change::Model(_), reply) = agent.expect_change().await else { panic!("expected a change") };
        reply.send(Ok(changed.clone())).unwrap();
    });
    assert_eq!(result, Ok(changed));
    assert_eq!(session.owner().model, Some(Arc::from("pro")));
    assert_eq!(session.record().await.unwrap().model, session.owner().model);
}

#[tokio::test(start_paused = true)]
async fn a_person_may_take_longer_than_the_turn_could() {
    let minute = Duration::from_mins(1);
    let limits = Limits { answer: 600 * minute, ..Limits::default() };
    let mut test = TestSessions::with(limits);
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let _person = session.join(From::Now, Backpressure::Own).await.unwrap();
    prompt(&session, "may I").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("may I").await;
    agent.does([asked(usual_ask(1))]).await;
    reader.until_asked().await;
    tokio::time::advance(300 * minute).await;
    session.answer(AskId(1), option("AllowOnce"), CLIENT).await.unwrap();
    agent.expect_answer(1, option("AllowOnce")).await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_retired_only_when_nobody_uses_it() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("go").await;
    assert!(matches!(session.retire().await, Err(Error::Busy { .. })), "a turn runs");
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    assert!(matches!(session.retire().await, Err(Error::Busy { .. })), "somebody follows");
    drop(reader);
    session.retire().await.unwrap();
    assert!(session.is_closed());
    ledger::check_settled(&test.entries(&session));
}
