//! Every way in which a turn can end, on the pure machine.

use std::time::Duration;

use bytes::Bytes;
use gembridge_core::driver::{AgentStop, Signal, Update};
use gembridge_core::limit::Limits;
use gembridge_core::model::{Answer, Dialect, Event, FailureKind, Frame, Outcome, Stop, Usage};

use crate::support::turn_harness::{Order, TurnHarness};
use crate::support::{asked, done, done_cancelled, failure, finished, interrupted_by, text, update, usage, usual_ask};

const SECOND: Duration = Duration::from_secs(1);

fn quiet(millis: u64) -> Limits {
    Limits { quiet: Duration::from_millis(millis), ..Limits::default() }
}

fn texts(harness: &TurnHarness) -> Vec<String> {
    let texts = harness.log.iter().filter_map(|event| match event {
        Event::Text(text) => Some(text.to_str().into_owned()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_cancelled_turn_is_called_what_its_agent_made_of_the_cancel() {
    let broken = || Signal::Failed(failure("the stream was aborted"));
    let lost = || Signal::Lost(failure("exit status 1"));
    let table: [(&str, Signal, Outcome); 4] = [
        ("it obeyed", done_cancelled(), Outcome::Cancelled),
        ("its last word was on the way already", done(), finished()),
        ("it answers a cancelled prompt with an error", broken(), Outcome::Cancelled),
        ("it died of it", lost(), Outcome::Cancelled),
    ];
    for (case, end, expected) in table {
        let mut harness = TurnHarness::new(Limits::default());
        harness.agent(text("half an ans"));
        harness.cancel();
        assert_eq!(harness.outcome(), None, "{case}: the end is the agent's to say");
        assert_eq!(harness.orders, [Order::Cancel], "{case}");
        harness.agent(text("wer"));
        harness.agent(end);
        assert_eq!(harness.outcome(), Some(&expected), "{case}");
        assert_eq!(texts(&harness), ["half an ans", "wer"], "{case}: what came is kept");
    }
}

#[test]
fn cancelling_twice_tells_the_agent_once() {
    let mut harness = TurnHarness::new(Limits::default());
    harness.cancel();
    harness.wait(SECOND);
    harness.cancel();
    harness.wait(SECOND);
    assert_eq!(harness.orders, [Order::Cancel]);
    harness.agent(done_cancelled());
    harness.cancel();
    assert_eq!(harness.orders, [Order::Cancel]);
    assert_eq!(harness.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn an_agent_that_ignores_a_cancel_is_given_up_after_the_grace() {
    let limits = Limits::default();
    let mut harness = TurnHarness::new(limits);
    harness.cancel();
    harness.agent(text("I go on"));
    harness.wait(limits.cancel_grace / 2);
    harness.agent(text("and on"));
    assert_eq!(harness.outcome(), None);
    harness.wait(limits.cancel_grace / 2);
    assert_eq!(harness.outcome(), Some(&Outcome::Cancelled), "chatter does not win it more time");
    assert_eq!(harness.orders, [Order::Cancel, Order::GiveUp]);
}

#[test]
fn a_cancel_answers_open_questions_and_those_that_still_come() {
    let mut harness = TurnHarness::new(Limits::default());
    harness.agent(asked(usual_ask(1)));
    harness.agent(asked(usual_ask(2)));
    harness.cancel();
    harness.agent(asked(usual_ask(3)));
    assert_eq!(harness.answers(), [(1, Answer::Cancelled), (2, Answer::Cancelled), (3, Answer::Cancelled)]);
    assert_eq!(harness.orders[0], Order::Cancel);
    harness.agent(done_cancelled());
    assert_eq!(harness.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn a_cancel_that_comes_while_updates_trail_ends_the_wait_for_them() {
    let mut harness = TurnHarness::new(quiet(500));
    harness.agent(text("all"));
    harness.agent(done());
    assert_eq!(harness.outcome(), None, "more may trail");
    harness.cancel();
    assert_eq!(harness.outcome(), Some(&finished()), "whoever cancels waits for nothing more");
    harness.agent(text("trailing"));
    harness.wait(SECOND);
    assert_eq!(harness.outcome(), Some(&finished()));
    assert_eq!(harness.orders, []);
}

#[test]
fn a_turn_in_which_nothing_came_ends_at_once_whatever_the_quiet_period() {
    let mut harness = TurnHarness::new(quiet(500));
    harness.agent(done());
    assert_eq!(harness.outcome(), Some(&finished()));
}

#[test]
fn the_quiet_period_is_counted_from_the_last_update() {
    let mut harness = TurnHarness::new(quiet(500));
    harness.agent(text("all"));
    harness.wait(Duration::from_millis(300));
    harness.agent(done());
    harness.wait(Duration::from_millis(199));
    assert_eq!(harness.outcome(), None);
    harness.wait(Duration::from_millis(1));
    assert_eq!(harness.outcome(), Some(&finished()));
}

#[test]
fn a_silent_agent_is_cancelled_and_then_given_up() {
    let limits = Limits::default();
    let mut harness = TurnHarness::new(limits);
    harness.wait(limits.idle.saturating_sub(SECOND));
    harness.agent(text("still here"));
    harness.wait(limits.idle.saturating_sub(SECOND));
    assert_eq!(harness.orders, [], "a sign of life starts the clock again");
    harness.wait(SECOND);
    assert_eq!(harness.orders, [Order::Cancel]);
    assert_eq!(harness.outcome(), None);
    harness.wait(limits.cancel_grace);
    assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::TimedOut));
    assert_eq!(harness.orders, [Order::Cancel, Order::GiveUp]);
    assert!(format!("{:?}", harness.outcome()).contains("silent for 120 s"));
}

#[test]
fn a_turn_that_takes_too_long_ends_however_busy_it_is() {
    let limits = Limits { idle: 30 * SECOND, turn: 100 * SECOND, ..Limits::default() };
    let mut harness = TurnHarness::new(limits);
    for _ in 0..10 {
        harness.wait(10 * SECOND);
        harness.agent(text("busy"));
    }
    assert_eq!(harness.orders, [Order::Cancel]);
    harness.agent(done_cancelled());
    assert_eq!(
        harness.outcome().and_then(interrupted_by),
        Some(FailureKind::TimedOut),
        "not a cancel that anybody wanted"
    );
    assert!(format!("{:?}", harness.outcome()).contains("longer than 100 s"));
}

#[test]
fn a_timed_out_turn_stays_timed_out_whatever_its_agent_says_then() {
    let limits = Limits::default();
    for end in [done(), done_cancelled(), Signal::Failed(failure("x")), Signal::Lost(failure("x"))] {
        let mut harness = TurnHarness::new(limits);
        harness.wait(limits.idle);
        harness.agent(end);
        assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::TimedOut));
    }
}

#[test]
fn without_a_quiet_period_the_agents_end_is_the_end() {
    let mut harness = TurnHarness::new(quiet(0));
    harness.agent(text("all"));
    harness.agent(done());
    assert_eq!(harness.outcome(), Some(&finished()));
    harness.agent(text("too late"));
    harness.agent(done());
    harness.wait(3600 * SECOND);
    assert_eq!(harness.log.len(), 2, "nothing is logged after the end");
}

#[test]
fn updates_that_trail_within_the_quiet_period_belong_to_the_turn() {
    let mut harness = TurnHarness::new(quiet(500));
    harness.agent(text("zero"));
    harness.agent(done());
    harness.wait(Duration::from_millis(400));
    harness.agent(text("one"));
    harness.wait(Duration::from_millis(400));
    harness.agent(text("two"));
    assert_eq!(harness.outcome(), None, "each update begins the quiet period anew");
    harness.wait(Duration::from_millis(500));
    assert_eq!(harness.outcome(), Some(&finished()));
    assert_eq!(texts(&harness), ["zero", "one", "two"]);
}

#[test]
fn updates_that_trail_for_ever_are_cut_off_after_half_a_minute() {
    let mut harness = TurnHarness::new(quiet(500));
    harness.agent(text("."));
    harness.agent(done());
    for _ in 0..200 {
        harness.wait(Duration::from_millis(250));
        harness.agent(text("."));
    }
    assert_eq!(harness.outcome(), Some(&finished()));
    assert_eq!(texts(&harness).len(), 120, "those of the first 30 s");
}

#[test]
fn what_was_said_first_stands_when_a_second_end_follows() {
    let failed = Signal::Failed(failure("a second answer"));
    for second in [done_cancelled(), failed, Signal::Lost(failure("exit status 0"))] {
        let mut harness = TurnHarness::new(quiet(500));
        harness.agent(text("all"));
        harness.agent(done());
        harness.agent(second);
        harness.wait(SECOND);
        assert_eq!(harness.outcome(), Some(&finished()));
    }
}

#[test]
fn questions_are_closed_when_the_agent_ends_without_waiting_for_them() {
    for limits in [quiet(0), quiet(500)] {
        let mut harness = TurnHarness::new(limits);
        harness.agent(asked(usual_ask(1)));
        harness.agent(done());
        harness.agent(asked(usual_ask(2)));
        harness.wait(SECOND);
        assert_eq!(harness.outcome(), Some(&finished()));
        assert_eq!(harness.answers()[0], (1, Answer::Cancelled));
    }
}

#[test]
fn an_error_or_a_loss_interrupts_and_keeps_its_reason() {
    for end in [Signal::Failed(failure("quota")), Signal::Lost(failure("quota"))] {
        let mut harness = TurnHarness::new(quiet(500));
        harness.agent(text("part"));
        harness.agent(asked(usual_ask(1)));
        harness.agent(end);
        assert_eq!(harness.outcome(), Some(&Outcome::Interrupted(failure("quota"))), "at once: nothing can trail");
        assert_eq!(harness.answers(), [(1, Answer::Cancelled)]);
    }
}

#[test]
fn unknown_reasons_to_stop_come_through_as_the_agent_spelled_them() {
    let mut harness = TurnHarness::new(quiet(0));
    let stop = Stop::Other("moon_phase".into());
    harness.agent(Signal::Done { stop: AgentStop::Stopped(stop.clone()), usage: None });
    assert_eq!(harness.outcome(), Some(&Outcome::Finished(stop)));
}

#[test]
fn usage_from_several_places_becomes_one() {
    let mut harness = TurnHarness::new(quiet(0));
    harness.agent(update(Event::Usage(usage(Some(10), None))));
    harness.agent(update(Event::Usage(usage(None, Some(3)))));
    let last = Usage { output: Some(5), total: Some(15), ..Usage::default() };
    harness.agent(Signal::Done { stop: AgentStop::Stopped(Stop::EndTurn), usage: Some(last) });
    let reported: Vec<Usage> = harness
        .log
        .iter()
        .filter_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        })
        .collect();
    let whole = Usage { input: Some(10), output: Some(5), total: Some(15), ..Usage::default() };
    assert_eq!(reported, [usage(Some(10), None), usage(Some(10), Some(3)), whole]);
}

#[test]
fn usage_that_says_nothing_new_is_not_repeated_at_the_end() {
    let mut harness = TurnHarness::new(quiet(0));
    harness.agent(update(Event::Usage(usage(Some(1), Some(2)))));
    harness.agent(Signal::Done { stop: AgentStop::Stopped(Stop::EndTurn), usage: Some(usage(Some(1), Some(2))) });
    assert_eq!(harness.log.len(), 2, "the report and the end: {:?}", harness.log);
}

fn framed(event: Event, size: usize) -> Signal {
    let frame = Frame { dialect: Dialect::Acp, bytes: Bytes::from(vec![b'x'; size]) };
    Signal::Update(Update { event, frame: Some(frame) })
}

#[test]
fn an_agent_that_sends_too_much_is_cancelled_and_the_rest_is_not_kept() {
    let mut harness = TurnHarness::new(Limits { turn_bytes: 100, ..Limits::default() });
    harness.agent(framed(Event::Text("a".into()), 100));
    assert_eq!(harness.orders, [], "the limit itself is allowed");
    for _ in 0..50 {
        harness.agent(framed(Event::Text("b".into()), 1));
    }
    assert_eq!(harness.orders, [Order::Cancel]);
    harness.agent(done_cancelled());
    assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::LimitReached));
    assert_eq!(texts(&harness), ["a"]);
}

#[test]
fn a_question_beyond_the_byte_limit_is_answered_so_that_the_agent_can_obey_the_cancel() {
    let mut harness = TurnHarness::new(Limits { turn_bytes: 100, ..Limits::default() });
    for id in 1..=2 {
        harness.agent(framed(Event::Asked(Box::new(usual_ask(id))), 101));
    }
    assert_eq!(harness.answers(), [(1, Answer::Cancelled), (2, Answer::Cancelled)]);
    harness.agent(done_cancelled());
    assert_eq!(harness.outcome().and_then(interrupted_by), Some(FailureKind::LimitReached));
}

#[test]
fn an_aborted_turn_ends_at_once_and_its_agent_is_told() {
    for prepare in
        [|_: &mut TurnHarness| {}, TurnHarness::cancel, |harness: &mut TurnHarness| harness.agent(asked(usual_ask(1)))]
    {
        let mut harness = TurnHarness::new(quiet(500));
        prepare(&mut harness);
        harness.abort(failure("going down"));
        harness.abort(failure("again"));
        harness.agent(done());
        assert_eq!(harness.outcome(), Some(&Outcome::Interrupted(failure("going down"))));
        assert_eq!(harness.orders.last(), Some(&Order::Cancel));
    }
}
