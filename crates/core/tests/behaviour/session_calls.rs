//! Calls of the client's tools in a whole session: who gets which result, and where the client reads on.

use std::time::Duration;

use gembridge_core::driver::Signal;
use gembridge_core::error::Error;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{CallId, Event, FailureKind, Outcome, ReturnOutcome, ReturnedBy, Seq, SessionId, TurnId};
use gembridge_core::session::{Resumption, SessionHandle, SubmitResults, TurnState, Unanswered};

use crate::support::follow::Reader;
use crate::support::store::Disk;
use crate::support::test_sessions::{CLIENT, TestSessions, give, submit};
use crate::support::tools::{Call, offer, result, words};
use crate::support::{done, done_cancelled, failure, finished, interrupted_by, ledger, text};

const TURN: TurnId = TurnId(1);

fn ok(text: &str) -> (ReturnOutcome, String) {
    (ReturnOutcome::Done, text.to_owned())
}

async fn parked(session: &SessionHandle, test: &TestSessions) -> Vec<CallId> {
    Reader::of(session, &test.store).await.until_parked().await
}

#[tokio::test(start_paused = true)]
async fn a_call_is_parked_and_its_result_lets_the_turn_go_on() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    agent.does([text("let me see")]).await;
    assert!(!session.awaits_results());
    let call = place.calls("look", r#"{"at":"sky"}"#).await;
    let mut reader = Reader::of(&session, &test.store).await;
    let called = |entry: &LogEntry| match &entry.event {
        Event::Called(call) => Some((**call).clone()),
        _ => None,
    };
    let called = reader.until(called).await;
    assert!(session.awaits_results());
    assert_eq!((&*called.tool, &called.arguments.0[..]), ("look", r#"{"at":"sky"}"#.as_bytes()));
    assert_eq!((called.id.session(), called.id.turn()), (session.id(), TURN));
    assert_eq!(reader.until_parked().await, [called.id]);
    let description = session.describe().await.unwrap();
    assert_eq!((description.turn, description.parked), (TurnState::Running(TURN), vec![called.clone()]));

    let resumed = give(&session, &[(called.id, "blue")]).await.unwrap();
    assert_eq!((resumed.turn, resumed.how, resumed.waiting), (TURN, Resumption::Resolved, Vec::new()));
    assert_eq!(call.words().await, ok("blue"));
    assert!(!session.awaits_results());
    assert!(session.describe().await.unwrap().parked.is_empty());
    agent.does([text("it is blue"), done()]).await;
    let mut rest = Reader::after(resumed.after, &session, &test.store).await;
    assert_eq!(rest.until_text().await, "it is blue");
    assert_eq!(rest.until_ended(TURN).await, finished());
    let story = ledger::story(&test.entries(&session), TURN);
    assert_eq!(story, ["prompted", "started", "text", "called", "parked", "returned", "text", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn three_calls_at_once_are_answered_in_reverse_and_each_gets_its_own() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let one = place.calls("look", "1").await;
    let two = place.calls("look", "2").await;
    let three = place.calls("look", "3").await;
    let mut reader = Reader::of(&session, &test.store).await;
    let calls = reader.until_parked().await;
    assert_eq!(calls.len(), 3);
    let resumed = give(&session, &[(calls[2], "c"), (calls[1], "b"), (calls[0], "a")]).await.unwrap();
    assert!(resumed.waiting.is_empty());
    assert_eq!(three.words().await, ok("c"));
    assert_eq!(two.words().await, ok("b"));
    assert_eq!(one.words().await, ok("a"));
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TURN).await, finished());
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_some_results_is_told_at_once_of_the_rest() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    let mut one = place.calls("look", "1").await;
    let two = place.calls("look", "2").await;
    let calls = parked(&session, &test).await;
    let resumed = give(&session, &[(calls[1], "b")]).await.unwrap();
    let waiting: Vec<_> = resumed.waiting.iter().map(|call| (call.id, &call.arguments.0[..])).collect();
    assert_eq!(waiting, [(calls[0], b"1".as_slice())], "with all that the client needs to hear of them again");
    assert_eq!(two.words().await, ok("b"));
    assert!(one.is_waiting());
    let mut reader = Reader::after(resumed.after, &session, &test.store).await;
    assert_eq!(reader.until_parked().await, [calls[0]]);
    give(&session, &[(calls[0], "a")]).await.unwrap();
    assert_eq!(one.words().await, ok("a"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_on_without_a_result_closes_the_call() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    let one = place.calls("look", "1").await;
    let two = place.calls("look", "2").await;
    let calls = parked(&session, &test).await;
    let results = vec![(calls[0], result("a"))];
    let given = SubmitResults { results, unanswered: Unanswered::Close, by: CLIENT };
    assert!(session.submit_results(given).await.unwrap().waiting.is_empty());
    assert_eq!(one.words().await, ok("a"));
    let (outcome, why) = two.words().await;
    assert_eq!(outcome, ReturnOutcome::Failed);
    assert!(why.contains("went on without a result"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_same_results_again_rejoin_the_turn_while_it_runs_and_after_it() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    let first = give(&session, &[(calls[0], "blue")]).await.unwrap();
    assert_eq!(call.words().await, ok("blue"));
    let again = give(&session, &[(calls[0], "blue")]).await.unwrap();
    assert_eq!((again.turn, again.after, again.how), (first.turn, first.after, Resumption::Rejoined));
    let other = give(&session, &[(calls[0], "green")]).await;
    assert_eq!(other.err(), Some(Error::NotParked(calls[0])), "another result is not what was given");

    agent.does([text("it is blue"), done()]).await;
    Reader::of(&session, &test.store).await.until_ended(TURN).await;
    let late = give(&session, &[(calls[0], "blue")]).await.unwrap();
    assert_eq!((late.after, late.how), (first.after, Resumption::Rejoined));
    let mut reader = Reader::after(late.after, &session, &test.store).await;
    assert_eq!(reader.until_text().await, "it is blue");
    assert_eq!(give(&session, &[(calls[0], "green")]).await.err(), Some(Error::NotParked(calls[0])));
}

#[tokio::test(start_paused = true)]
async fn nobody_rejoins_a_turn_that_ended_badly() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    give(&session, &[(calls[0], "blue")]).await.unwrap();
    agent.does([Signal::Failed(failure("no"))]).await;
    Reader::of(&session, &test.store).await.until_ended(TURN).await;
    assert_eq!(give(&session, &[(calls[0], "blue")]).await.err(), Some(Error::NotParked(calls[0])));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_beside_something_new_gives_only_what_is_new() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    place.calls("look", "1").await;
    let two = place.calls("look", "2").await;
    let calls = parked(&session, &test).await;
    give(&session, &[(calls[0], "a")]).await.unwrap();
    let resumed = give(&session, &[(calls[0], "a"), (calls[1], "b")]).await.unwrap();
    assert_eq!(resumed.how, Resumption::Resolved);
    assert_eq!(two.words().await, ok("b"));
}

#[tokio::test(start_paused = true)]
async fn results_that_make_no_sense_change_nothing() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    let mut call = place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    let foreign = CallId::new(SessionId::new(), TURN, 1);
    let mixed = give(&session, &[(calls[0], "a"), (foreign, "b")]).await;
    assert_eq!(mixed.err(), Some(Error::NotParked(foreign)));
    let twice = give(&session, &[(calls[0], "a"), (calls[0], "b")]).await;
    assert!(matches!(twice.err(), Some(Error::Invalid(_))));
    assert!(matches!(give(&session, &[]).await.err(), Some(Error::Invalid(_))));
    assert!(call.is_waiting(), "all or nothing");
}

#[tokio::test(start_paused = true)]
async fn a_result_after_nine_minutes_still_finds_its_turn() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    tokio::time::sleep(Duration::from_mins(9)).await;
    assert!(session.retire().await.is_err(), "a session that waits for its client is in use");
    give(&session, &[(calls[0], "at last")]).await.unwrap();
    assert_eq!(call.words().await, ok("at last"));
    tokio::time::sleep(Duration::from_secs(110)).await;
    agent.does([done()]).await;
    assert_eq!(Reader::of(&session, &test.store).await.until_ended(TURN).await, finished());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_comes_back_costs_a_failure_and_not_the_turn() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let (outcome, why) = call.words().await;
    assert_eq!(outcome, ReturnOutcome::Failed);
    assert!(why.contains("no result within 590 s"), "{why}");
    let mut reader = Reader::of(&session, &test.store).await;
    let (call, by) = reader.until_returned().await;
    assert_eq!(by, ReturnedBy::Timeout);
    assert_eq!(give(&session, &[(call, "too late")]).await.err(), Some(Error::NotParked(call)));
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TURN).await, finished());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_tells_those_who_wait_for_the_client() {
    let mut test = TestSessions::new();
    let (session, mut agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    session.cancel().await.unwrap();
    assert_eq!(call.words().await.0, ReturnOutcome::Failed);
    assert_eq!(give(&session, &[(calls[0], "late")]).await.err(), Some(Error::NotParked(calls[0])));
    agent.expect_cancel().await;
    let refused = place.calls("look", "{}").await;
    assert_eq!(refused.words().await.0, ReturnOutcome::Failed);
    agent.does([done_cancelled()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_returned().await, (calls[0], ReturnedBy::Cancel));
    assert_eq!(reader.until_ended(TURN).await, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_agent_that_is_gone_are_over() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    let calls = parked(&session, &test).await;
    agent.does([Signal::Lost(failure("gone"))]).await;
    assert_eq!(call.words().await.0, ReturnOutcome::Failed);
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_returned().await, (calls[0], ReturnedBy::Agent));
    assert_eq!(interrupted_by(&reader.until_ended(TURN).await), Some(FailureKind::Crashed));
    assert_eq!(give(&session, &[(calls[0], "late")]).await.err(), Some(Error::NotParked(calls[0])));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_tells_those_who_wait() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    let call = place.calls("look", "{}").await;
    parked(&session, &test).await;
    session.close().await.unwrap();
    assert_eq!(call.words().await.0, ReturnOutcome::Failed);
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_agent_takes_back_is_over() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    let one = place.calls("look", "1").await;
    let mut two = place.calls("look", "2").await;
    let calls = parked(&session, &test).await;
    place.withdraws(one.id).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_returned().await, (calls[0], ReturnedBy::Agent));
    assert!(two.is_waiting());
    assert_eq!(give(&session, &[(calls[0], "late")]).await.err(), Some(Error::NotParked(calls[0])));
}

#[tokio::test(start_paused = true)]
async fn a_call_between_turns_is_refused() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    agent.does([done()]).await;
    reader.until_ended(TURN).await;
    let call = place.calls("look", "{}").await;
    let (outcome, why) = call.words().await;
    assert_eq!(outcome, ReturnOutcome::Failed);
    assert!(why.contains("no turn runs"), "{why}");
    place.delivers("{}").await;
    assert_eq!(*ledger::story(&test.entries(&session), TURN).last().unwrap(), "ended");
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_calls_is_bounded_and_nobody_is_left_waiting() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let mut calls = Vec::new();
    for _ in 0..1_000 {
        calls.push(place.calls("look", "{}").await);
    }
    assert_eq!(parked(&session, &test).await.len(), 64);
    let refused = calls.iter_mut().filter_map(Call::so_far).count();
    assert_eq!(refused, 936);
    agent.does([done()]).await;
    Reader::of(&session, &test.store).await.until_ended(TURN).await;
    assert_eq!(calls.iter_mut().filter_map(Call::so_far).count(), 64);
}

#[tokio::test(start_paused = true)]
async fn what_trails_the_wait_is_read_by_whoever_goes_on() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    place.calls("look", "{}").await;
    let mut reader = Reader::of(&session, &test.store).await;
    let calls = reader.until_parked().await;
    agent.does([text("a late word")]).await;
    reader.until_text().await;
    let resumed = give(&session, &[(calls[0], "blue")]).await.unwrap();
    let mut rest = Reader::after(resumed.after, &session, &test.store).await;
    assert_eq!(rest.until_text().await, "a late word");
}

#[tokio::test(start_paused = true)]
async fn a_late_call_that_the_client_never_heard_of_comes_with_the_resumed_turn() {
    let mut test = TestSessions::new();
    let (session, _agent, mut place) = test.with_tools(&["look"]).await;
    place.calls("look", "1").await;
    let mut reader = Reader::of(&session, &test.store).await;
    let told = reader.until_parked().await;
    place.calls("look", "2").await;
    let both = reader.until_parked().await;
    assert_eq!(both.len(), 2);
    let resumed = give(&session, &[(told[0], "a")]).await.unwrap();
    assert_eq!(resumed.waiting.iter().map(|call| call.id).collect::<Vec<_>>(), [both[1]]);
    let mut rest = Reader::after(resumed.after, &session, &test.store).await;
    assert_eq!(rest.until_parked().await, [both[1]], "not what the client has answered");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_form_asked_for_is_in_the_log_before_the_end() {
    let mut test = TestSessions::new();
    let (session, agent, place) = test.with_tools(&["look"]).await;
    place.delivers(r#"{"n":1}"#).await;
    place.delivers(r#"{"n":2}"#).await;
    agent.does([done()]).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TURN).await, finished());
    let story = ledger::story(&test.entries(&session), TURN);
    assert_eq!(story, ["prompted", "started", "output", "output", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_does_not_count() {
    let mut test = TestSessions::new();
    let (session, mut agent, mut place) = test.with_tools(&["look"]).await;
    let one = place.calls("look", "1").await;
    let two = place.calls("look", "2").await;
    let calls = parked(&session, &test).await;
    test.store.set_disk(Disk::Full);
    assert!(matches!(give(&session, &[(calls[0], "secret")]).await, Err(Error::Store(_))));
    for call in [one, two] {
        let reply = call.reply().await;
        assert_eq!(reply.outcome, ReturnOutcome::Failed);
        assert!(!words(&reply).contains("secret"), "a decision that is not in the log was not taken");
    }
    agent.expect_cancel().await;
    test.store.set_disk(Disk::Sound);
    agent.does([done_cancelled()]).await;
    session.close().await.unwrap();
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    let returned = entries.iter().filter(|entry| matches!(entry.event, Event::Returned { .. })).count();
    assert_eq!(returned, 2, "what is owed is written when there is space again");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_fails_and_is_in_no_log() {
    let mut test = TestSessions::new();
    let (session, mut agent, mut place) = test.with_tools(&["look"]).await;
    test.store.set_disk(Disk::Full);
    let call = place.calls("look", "{}").await;
    assert_eq!(call.words().await.0, ReturnOutcome::Failed);
    agent.expect_cancel().await;
    test.store.set_disk(Disk::Sound);
    session.close().await.unwrap();
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    assert_eq!(ledger::story(&entries, TURN), ["prompted", "started", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn twenty_five_rounds_fit_into_one_turn() {
    let mut test = TestSessions::new();
    let (session, agent, mut place) = test.with_tools(&["look"]).await;
    let mut after = Seq::START;
    for round in 0..25 {
        let call = place.calls("look", "{}").await;
        let calls = Reader::after(after, &session, &test.store).await.until_parked().await;
        let answer = format!("result {round}");
        after = give(&session, &[(calls[0], &answer)]).await.unwrap().after;
        assert_eq!(call.words().await, ok(&answer));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    agent.does([done()]).await;
    assert_eq!(Reader::after(after, &session, &test.store).await.until_ended(TURN).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn two_sessions_with_the_same_tools_never_mix() {
    let mut test = TestSessions::new();
    let (left, _left_agent, mut left_place) = test.with_tools(&["look"]).await;
    let right = test.session().await;
    submit(&right, "go", Some(offer(&["look"]))).await.unwrap();
    let mut right_agent = test.desk.open("b").await;
    let mut right_place = test.tools.next().await;
    right_place.reads().await;
    right_agent.expect_prompt("go").await;

    let left_call = left_place.calls("look", "{}").await;
    let right_call = right_place.calls("look", "{}").await;
    let (left_calls, right_calls) = (parked(&left, &test).await, parked(&right, &test).await);
    assert_ne!(left_calls, right_calls);
    assert_eq!(give(&left, &[(right_calls[0], "x")]).await.err(), Some(Error::NotParked(right_calls[0])));
    give(&right, &[(right_calls[0], "right")]).await.unwrap();
    give(&left, &[(left_calls[0], "left")]).await.unwrap();
    assert_eq!((left_call.words().await, right_call.words().await), (ok("left"), ok("right")));
}
