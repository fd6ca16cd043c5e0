//! What an agent is offered: where it finds the list, and that no prompt goes out before it was read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::admission::Admission;
use gembridge_core::driver::{Driver, Signal};
use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::model::{FailureKind, Outcome, Prompt, TurnId};
use gembridge_core::session::{
    AgentSetup, Precondition, SessionHandle, Sessions, SessionsConfig, Submission, TurnState,
};
use gembridge_core::tool_host::Offer;
use gembridge_core::turn::PermissionPolicy;

use crate::support::follow::Reader;
use crate::support::store::FaultyStore;
use crate::support::test_sessions::{CLIENT, TestSessions, agent_name, new_session, prompt, submit};
use crate::support::tools::offer;
use crate::support::{done, failure, finished, interrupted_by, thought};
use gembridge_core::test_support::desk_driver;

async fn after(session: &SessionHandle, turn: u64, text: &str, offer: Offer) -> Result<TurnId, Error> {
    let precondition = Precondition::RightAfter(TurnId(turn));
    let submission = Submission { prompt: Prompt::text(text), by: CLIENT, precondition, offer: Some(offer) };
    session.submit(submission).await.map(|accepted| accepted.turn)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_with_tools_waits_until_the_agent_has_read_their_list() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    submit(&session, "go", Some(offer(&["look", "touch"]))).await.unwrap();
    let request = test.desk.next().await;
    let names: Vec<_> = request.spec.tool_servers.iter().map(|server| server.name.to_string()).collect();
    assert_eq!(names, ["ours"], "the agent is told where to look");
    let mut agent = request.accept("a");
    let mut place = test.tools.next().await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(agent.is_left_alone());
    assert_eq!(session.describe().await.unwrap().turn, TurnState::Opening(TurnId(1)));
    assert_eq!(place.reads().await, ["look", "touch"]);
    agent.expect_prompt("go").await;
}

#[tokio::test(start_paused = true)]
async fn a_session_without_tools_opens_no_place() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    submit(&session, "go", Some(Offer::default())).await.unwrap();
    let request = test.desk.next().await;
    assert!(request.spec.tool_servers.is_empty());
    request.accept("a").expect_prompt("go").await;
    assert!(test.tools.waiting().is_none());
}

#[tokio::test(start_paused = true)]
async fn r29_an_agent_that_reads_the_list_only_when_prompted_can_call_its_tools() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let began = tokio::time::Instant::now();
    let mut agent = test.desk.open("a").await;
    let mut place = test.tools.next().await;
    agent.expect_prompt("go").await;
    assert_eq!(began.elapsed().as_secs(), 10, "as long as the limit says");
    assert_eq!(place.reads().await, ["look"]);
    let mut call = place.calls("look", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(call.is_waiting(), "the call is parked as any other");
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn r29_nobody_waits_a_second_time_for_an_agent_that_did_not_read_in_time() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let mut agent = test.desk.open("a").await;
    let mut place = test.tools.next().await;
    agent.expect_prompt("go").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    for (turn, tools) in [(1, &["look"][..]), (2, &["touch"])] {
        let before = tokio::time::Instant::now();
        after(&session, turn, "again", offer(tools)).await.unwrap();
        agent.expect_prompt("again").await;
        assert_eq!(before.elapsed().as_secs(), 0);
        agent.does([done()]).await;
        reader.until_ended(TurnId(turn + 1)).await;
    }
    assert_eq!(place.reads().await, ["look"]);
    assert_eq!(place.reads().await, ["touch"], "the newest is there when it looks");
}

#[tokio::test(start_paused = true)]
async fn another_offer_on_a_live_session_waits_for_its_list_and_the_same_does_not() {
    let mut test = TestSessions::new();
    let (session, mut agent, mut place) = test.with_tools(&["look"]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;

    after(&session, 1, "same", offer(&["look"])).await.unwrap();
    agent.expect_prompt("same").await;
    assert!(place.is_unchanged());
    agent.does([done()]).await;
    reader.until_ended(TurnId(2)).await;

    after(&session, 2, "other", offer(&["touch"])).await.unwrap();
    assert!(agent.is_left_alone());
    assert_eq!(place.reads().await, ["touch"]);
    agent.expect_prompt("other").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(3)).await;

    // Nothing said about tools: they stay.
    prompt(&session, "plain").await;
    agent.expect_prompt("plain").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(4)).await;

    after(&session, 4, "none", Offer::default()).await.unwrap();
    assert!(agent.is_left_alone());
    assert!(place.reads().await.is_empty());
    agent.expect_prompt("none").await;
}

#[tokio::test(start_paused = true)]
async fn r29_a_list_that_is_not_read_again_holds_the_prompt_for_a_while_only() {
    let mut test = TestSessions::new();
    let (session, mut agent, _place) = test.with_tools(&["look"]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    after(&session, 1, "other", offer(&["touch"])).await.unwrap();
    agent.expect_prompt("other").await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_opened_without_a_place_cannot_be_offered_tools() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "plain").await;
    let opening = submit(&session, "tools", Some(offer(&["look"]))).await;
    assert_eq!(opening.err(), Some(Error::MovedOn), "the one that is on its way has none either");
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("plain").await;
    let mut reader = Reader::of(&session, &test.store).await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(1)).await;
    assert_eq!(after(&session, 1, "tools", offer(&["look"])).await, Err(Error::MovedOn));
    assert_eq!(after(&session, 1, "none", Offer::default()).await, Ok(TurnId(2)), "nothing can be offered to it");
    agent.expect_prompt("none").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_tool_host_tools_are_refused_by_name() {
    let (driver, _desk) = desk_driver();
    let setup = AgentSetup {
        driver: driver as Arc<dyn Driver>,
        limits: Limits::default(),
        policy: PermissionPolicy::ask(),
        admission: Admission::default(),
    };
    let agents = HashMap::from([(agent_name(), setup)]);
    let sessions = Sessions::new(Arc::new(FaultyStore::default()), agents, SessionsConfig::default());
    assert!(sessions.tool_host().is_none());
    let session = sessions.create(new_session("ann")).await.unwrap();
    let refused = submit(&session, "go", Some(offer(&["look"]))).await.err();
    assert!(matches!(refused, Some(Error::Invalid(message)) if message.contains("tool bridge")));
}

#[tokio::test(start_paused = true)]
async fn the_place_goes_with_its_agent_and_the_next_agent_gets_another() {
    let mut test = TestSessions::new();
    let (session, agent, place) = test.with_tools(&["look"]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    agent.does([thought("hm"), Signal::Lost(failure("gone"))]).await;
    reader.until_ended(TurnId(1)).await;
    assert!(place.is_closed());
    prompt(&session, "again").await;
    let mut next = test.desk.open("b").await;
    let mut place = test.tools.next().await;
    assert_eq!(place.reads().await, ["look"], "what was offered still is");
    next.expect_prompt("again").await;
    next.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_lost_while_it_reads_ends_the_turn() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let agent = test.desk.open("a").await;
    agent.does([Signal::Lost(failure("gone"))]).await;
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::Crashed));
    assert!(test.desk.is_idle(), "the next one would fare no better");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_prompt_that_waits_for_the_list() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let mut agent = test.desk.open("a").await;
    let mut place = test.tools.next().await;
    session.cancel().await.unwrap();
    assert_eq!(reader.until_ended(TurnId(1)).await, Outcome::Cancelled);
    place.reads().await;
    prompt(&session, "next").await;
    agent.expect_prompt("next").await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_while_its_agent_reads_ends_the_turn() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let _agent = test.desk.open("a").await;
    let _place = test.tools.next().await;
    session.close().await.unwrap();
    let ended = crate::support::ledger::outcomes(&test.entries(&session));
    assert_eq!(interrupted_by(&ended[&TurnId(1)]), Some(FailureKind::ShuttingDown));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_results_may_be_offered_other_tools() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    submit(&session, "go", Some(offer(&["look"]))).await.unwrap();
    let mut agent = test.desk.open("a").await;
    let mut place = test.tools.next().await;
    place.reads().await;
    agent.expect_prompt("go").await;
    let nothing_waits = session.offer(TurnId(1), offer(&["touch"])).await;
    assert!(nothing_waits.is_ok() && place.is_unchanged(), "only with results");
    let mut call = place.calls("look", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for known in [&["look"][..], &[]] {
        session.offer(TurnId(1), offer(known)).await.unwrap();
        assert!(place.is_unchanged(), "nothing is new");
    }
    let (offered, names) = tokio::join!(session.offer(TurnId(1), offer(&["touch"])), place.reads());
    offered.unwrap();
    assert_eq!(names, ["touch"]);
    // One that never looks again does not hold anybody up for ever.
    let unread = tokio::time::timeout(Duration::from_secs(2), session.offer(TurnId(1), offer(&["smell"]))).await;
    assert!(unread.is_err() && call.is_waiting());
}
