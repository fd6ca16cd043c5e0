//! Calls of the client's tools in one turn: how they gather, how long they wait, and what ends the wait.

use std::time::Duration;

use gembridge_core::driver::Signal;
use gembridge_core::limit::Limits;
use gembridge_core::model::{CallId, ClientId, Event, FailureKind, Outcome, ReturnOutcome, ReturnedBy, ToolReturn};
use gembridge_core::session::Unanswered;

use crate::support::tools::words;
use crate::support::turn_harness::{Order, TurnHarness};
use crate::support::{asked, done, done_cancelled, failure, finished, interrupted_by, option, text, usual_ask};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_millis(25);
const CLIENT: ReturnedBy = ReturnedBy::Client(ClientId(7));

fn harness() -> TurnHarness {
    TurnHarness::new(Limits::default())
}

fn taken(harness: &mut TurnHarness, hosted: u64) -> CallId {
    harness.call(hosted).expect("the call is parked")
}

/// What the agent got for its calls.
fn replies(harness: &TurnHarness) -> Vec<ToolReturn> {
    let replies = harness.orders.iter().filter_map(|order| match order {
        Order::Return(_, result) => Some(result.clone()),
        _ => None,
    });
    replies.collect()
}

#[test]
fn calls_that_follow_each_other_within_a_moment_are_told_together() {
    let mut harness = harness();
    let first = taken(&mut harness, 1);
    harness.wait(MOMENT / 2);
    let second = taken(&mut harness, 2);
    harness.wait(MOMENT / 2);
    assert!(harness.parked().is_empty(), "the moment begins anew with each call");
    harness.wait(MOMENT);
    assert_eq!(harness.parked(), [[first, second]]);
    harness.wait(MINUTE);
    assert_eq!(harness.parked().len(), 1, "it is told once");
}

#[test]
fn each_request_of_a_tool_loop_has_the_whole_time_of_a_turn() {
    let mut harness = harness();
    let almost = Limits::default().turn.saturating_sub(SECOND);
    for round in 1..=4 {
        for _ in 0..almost.as_secs() / 60 {
            harness.wait(MINUTE);
            harness.agent(text("still at it"));
        }
        let call = taken(&mut harness, round);
        harness.wait(MINUTE);
        harness.give(call, Unanswered::Wait);
        assert!(harness.outcome().is_none(), "round {round}");
    }
    for _ in 0..=Limits::default().turn.as_secs() / 60 {
        harness.wait(MINUTE);
        harness.agent(text("still at it"));
    }
    harness.wait(MINUTE);
    harness.agent(done_cancelled());
    assert_eq!(interrupted_by(harness.outcome().unwrap()), Some(FailureKind::TimedOut), "but no longer");
}

#[test]
fn a_call_that_comes_late_is_told_with_those_that_still_wait() {
    let mut harness = harness();
    let first = taken(&mut harness, 1);
    harness.wait(SECOND);
    let second = taken(&mut harness, 2);
    harness.wait(SECOND);
    assert_eq!(harness.parked(), [vec![first], vec![first, second]]);
}

#[test]
fn what_the_agent_says_right_after_a_call_comes_before_the_client_is_told() {
    let mut harness = harness();
    taken(&mut harness, 1);
    harness.wait(MOMENT / 2);
    harness.agent(text("which trails"));
    harness.wait(MOMENT / 2);
    assert!(harness.parked().is_empty());
    harness.wait(MOMENT);
    let at = |wanted: fn(&Event) -> bool| harness.log.iter().position(wanted).expect("it is in the log");
    assert!(at(|event| matches!(event, Event::Text(_))) < at(|event| matches!(event, Event::Parked(_))));
}

#[test]
fn an_agent_that_never_falls_silent_cannot_keep_its_calls_from_the_client() {
    let mut harness = harness();
    taken(&mut harness, 1);
    for _ in 0..100 {
        harness.wait(MOMENT / 2);
        harness.agent(text("still talking"));
    }
    assert_eq!(harness.parked().len(), 1);
}

#[test]
fn a_call_that_was_taken_back_in_the_moment_is_not_told() {
    let mut harness = harness();
    let call = taken(&mut harness, 1);
    harness.withdraw(1);
    assert_eq!(harness.returned(), [(call, ReturnedBy::Agent)]);
    harness.wait(MINUTE);
    assert!(harness.parked().is_empty());
    harness.withdraw(1);
    assert_eq!(harness.returned().len(), 1, "it returns once");
}

#[test]
fn the_clocks_stand_still_while_the_client_works() {
    let mut harness = harness();
    let call = taken(&mut harness, 1);
    harness.wait(9 * MINUTE);
    assert!(harness.outcome().is_none(), "neither two minutes of silence nor ten in all count");
    harness.give(call, Unanswered::Wait);
    assert_eq!(harness.returned(), [(call, CLIENT)]);
    // The turn has its time afterwards: four rounds of nine minutes each are no longer than one.
    for hosted in 2..5 {
        harness.wait(MINUTE);
        let call = taken(&mut harness, hosted);
        harness.wait(9 * MINUTE);
        harness.give(call, Unanswered::Wait);
    }
    harness.wait(MINUTE);
    assert!(harness.outcome().is_none());
    harness.agent(done());
    assert_eq!(harness.outcome(), Some(&finished()));
}

#[test]
fn the_clocks_go_on_once_the_last_thing_that_is_waited_for_has_come() {
    let mut harness = TurnHarness::new(Limits { answer: 30 * MINUTE, ..Limits::default() });
    let call = taken(&mut harness, 1);
    harness.agent(asked(usual_ask(1)));
    harness.wait(5 * MINUTE);
    harness.give(call, Unanswered::Wait);
    harness.wait(5 * MINUTE);
    assert!(harness.outcome().is_none(), "a question still waits");
    harness.answer(1, option("AllowOnce")).unwrap();
    harness.wait(2 * MINUTE + 5 * SECOND);
    assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::TimedOut));
}

#[test]
fn a_result_that_never_comes_is_an_honest_failure_and_the_turn_goes_on() {
    let mut harness = harness();
    let call = taken(&mut harness, 1);
    harness.wait(589 * SECOND);
    assert!(harness.returned().is_empty());
    harness.wait(SECOND);
    assert_eq!(harness.returned(), [(call, ReturnedBy::Timeout)]);
    let reply = &replies(&harness)[0];
    assert_eq!(reply.outcome, ReturnOutcome::Failed);
    assert!(words(reply).contains("590 s"), "{reply:?}");
    harness.agent(text("then without it"));
    harness.agent(done());
    assert_eq!(harness.outcome(), Some(&finished()));
}

#[test]
fn results_for_some_leave_the_others_waiting_and_say_so_at_once() {
    let mut harness = harness();
    let calls: Vec<CallId> = (1..=3).map(|hosted| taken(&mut harness, hosted)).collect();
    harness.wait(SECOND);
    harness.give(calls[1], Unanswered::Wait);
    assert_eq!(harness.parked(), [calls.clone(), vec![calls[0], calls[2]]]);
    harness.give(calls[0], Unanswered::Close);
    assert_eq!(harness.returned(), [(calls[1], CLIENT), (calls[0], CLIENT), (calls[2], CLIENT)]);
    assert_eq!(harness.parked().len(), 2, "nothing waits any more");
    let last = replies(&harness).pop().unwrap();
    assert_eq!((last.outcome, words(&last).contains("went on without")), (ReturnOutcome::Failed, true));
}

#[test]
fn a_storm_of_calls_is_bounded_and_each_is_answered() {
    let mut harness = harness();
    let refused = (0..1_000).filter(|hosted| harness.call(*hosted).is_err()).count();
    assert_eq!((harness.turn.parked_calls().count(), refused), (64, 936));
    assert_eq!(harness.log.len(), 64, "what nobody can answer is shown to nobody");
    harness.agent(done());
    assert_eq!(harness.returned().len(), 64);
    assert_eq!(harness.turn.parked_calls().count(), 0);
}

#[test]
fn a_cancel_ends_the_calls_before_the_turn_and_takes_no_more() {
    let mut harness = harness();
    let call = taken(&mut harness, 1);
    harness.cancel();
    assert_eq!(harness.returned(), [(call, ReturnedBy::Cancel)]);
    assert!(harness.call(2).is_err(), "the agent shall end");
    harness.agent(done_cancelled());
    assert_eq!(harness.outcome(), Some(&Outcome::Cancelled));
    assert!(harness.call(3).is_err(), "the turn is over");
    assert_eq!(harness.returned().len(), 1);
}

#[test]
fn every_end_of_a_turn_ends_its_calls() {
    let ends = [Some(done()), Some(Signal::Failed(failure("failed"))), Some(Signal::Lost(failure("lost"))), None];
    for quiet in [0, 500] {
        for end in ends.clone() {
            let mut harness = TurnHarness::new(Limits { quiet: Duration::from_millis(quiet), ..Limits::default() });
            let call = taken(&mut harness, 1);
            let by = if end.is_some() { ReturnedBy::Agent } else { ReturnedBy::Cancel };
            match end {
                Some(signal) => harness.agent(signal),
                None => harness.abort(failure("aborted")),
            }
            assert_eq!(harness.returned(), [(call, by)]);
            assert!(harness.call(2).is_err(), "nothing is called after the agent's end");
            harness.wait(SECOND);
            assert!(harness.outcome().is_some());
        }
    }
}

#[test]
fn arguments_count_towards_what_an_agent_may_send() {
    let mut harness = TurnHarness::new(Limits { turn_bytes: 3, ..Limits::default() });
    let call = taken(&mut harness, 1);
    assert!(harness.call(2).is_err());
    assert_eq!(harness.returned(), [(call, ReturnedBy::Cancel)]);
    harness.agent(done_cancelled());
    assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::LimitReached));
}
