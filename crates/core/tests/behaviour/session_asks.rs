//! Questions of the agents, by the numbers that the session gives them.

use gembridge_core::driver::Signal;
use gembridge_core::limit::Limits;
use gembridge_core::model::{Answer, AnsweredBy, AskId, Event};
use gembridge_core::session::{SessionHandle, SessionsConfig};
use gembridge_core::test_support::FakeAgent;

use crate::support::follow::Reader;
use crate::support::test_sessions::{CLIENT, TestSessions, prompt};
use crate::support::{asked, done, failure, option, update, usual_ask};

async fn next_ask(reader: &mut Reader) -> AskId {
    let ask = |event: &Event| match event {
        Event::Asked(ask) => Some(ask.id),
        _ => None,
    };
    reader.until(|entry| ask(&entry.event)).await
}

/// Asks what every agent calls its first question, and is answered by the number that the session gave it.
async fn asks_and_hears(session: &SessionHandle, agent: &mut FakeAgent, reader: &mut Reader) -> AskId {
    agent.does([asked(usual_ask(1))]).await;
    let ask = next_ask(reader).await;
    session.answer(ask, option("AllowOnce"), CLIENT).await.unwrap();
    agent.expect_answer(1, option("AllowOnce")).await;
    ask
}

#[tokio::test(start_paused = true)]
async fn questions_of_all_agents_of_a_session_have_numbers_of_their_own_also_after_a_restart() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    let mut seen = Vec::new();
    for name in ["a", "b"] {
        let turn = prompt(&session, "work").await;
        let mut agent = test.desk.open(name).await;
        agent.order().await;
        seen.push(asks_and_hears(&session, &mut agent, &mut reader).await);
        agent.does([done()]).await;
        reader.until_ended(turn).await;
        agent.tries(Signal::Lost(failure("gone")));
    }
    test.sessions.shutdown().await;
    let mut test = TestSessions::on(test.store, Limits::default(), SessionsConfig::default());
    let session = test.get(session.id()).await;
    let mut reader = Reader::after(session.describe().await.unwrap().last, &session, &test.store).await;
    prompt(&session, "work").await;
    let mut agent = test.desk.open("c").await;
    agent.order().await;
    seen.push(asks_and_hears(&session, &mut agent, &mut reader).await);
    let mut unique = seen.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique, seen, "each has a number, and later ones have larger ones");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_agent_takes_back_is_found_by_the_agents_own_number() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "work").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("work").await;
    agent.does([asked(usual_ask(77)), asked(usual_ask(5))]).await;
    let (first, second) = (next_ask(&mut reader).await, next_ask(&mut reader).await);
    let taken_back = Event::Answered { ask: AskId(77), answer: Answer::Cancelled, by: AnsweredBy::Cancel };
    agent.does([update(taken_back)]).await;
    let ask = reader.until(|entry| match entry.event {
        Event::Answered { ask, .. } => Some(ask),
        _ => None,
    });
    assert_eq!(ask.await, first);
    session.answer(second, option("RejectOnce"), CLIENT).await.unwrap();
    agent.expect_answer(5, option("RejectOnce")).await;
}
