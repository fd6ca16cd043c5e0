//! Permissions: who may answer, what counts as an answer, and what happens when nobody does.

use std::time::Duration;

use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::model::{Answer, AnsweredBy, Ask, AskBody, AskId, ClientId, Event, OptionKind, ToolKind};
use gembridge_core::turn::{Attendance, PermissionPolicy};

use crate::support::turn_harness::{Order, TurnHarness};
use crate::support::{asked, done, finished, option, permission, text, update, usual_ask};

const SECOND: Duration = Duration::from_secs(1);

use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};

#[test]
fn the_first_answer_wins_and_every_later_one_is_refused() {
    let mut harness = TurnHarness::new(Limits::default());
    harness.agent(asked(usual_ask(1)));
    assert_eq!(harness.answer(1, option("AllowOnce")), Ok(()));
    assert_eq!(harness.answer(1, option("AllowOnce")), Err(Error::NotAsked), "a duplicate");
    assert_eq!(harness.answer(1, option("RejectOnce")), Err(Error::NotAsked), "a second thought");
    assert_eq!(harness.answer(2, option("AllowOnce")), Err(Error::NotAsked), "never asked");
    assert_eq!(harness.answers(), [(1, option("AllowOnce"))]);
    assert_eq!(harness.deciders(), [AnsweredBy::Client(ClientId(7))]);
    harness.agent(done());
    assert_eq!(harness.answer(1, option("AllowOnce")), Err(Error::NotAsked), "the turn is over");
    assert_eq!(harness.outcome(), Some(&finished()));
}

#[test]
fn an_answer_that_the_question_does_not_offer_is_refused_and_leaves_it_open() {
    let mut harness = TurnHarness::new(Limits::default());
    harness.agent(asked(permission(1, ToolKind::Edit, &[AllowOnce, Unknown])));
    let forged = [option("AllowAlways"), option("Unknown"), option(""), Answer::Result(opaque())];
    for answer in forged {
        let refused = harness.answer(1, answer.clone());
        assert!(matches!(refused, Err(Error::Invalid(_))), "{answer:?} gave {refused:?}");
    }
    assert_eq!(harness.orders, [], "the agent hears nothing of it");
    assert_eq!(harness.answer(1, option("AllowOnce")), Ok(()));
}

#[test]
fn a_form_takes_a_result_and_no_option() {
    let mut harness = TurnHarness::new(Limits::default());
    harness.agent(asked(Ask { id: AskId(1), body: AskBody::Form { message: "name?".into() } }));
    assert!(matches!(harness.answer(1, option("AllowOnce")), Err(Error::Invalid(_))));
    assert_eq!(harness.answer(1, Answer::Result(opaque())), Ok(()));
    assert_eq!(harness.answers(), [(1, Answer::Result(opaque()))]);
}

#[test]
fn a_question_that_nobody_answers_is_answered_with_no_by_kind_not_by_place() {
    let table: [(&[OptionKind], Answer); 5] = [
        (&[AllowAlways, AllowOnce, RejectAlways, RejectOnce], option("RejectOnce")),
        (&[AllowOnce, RejectAlways], option("RejectAlways")),
        (&[AllowOnce, AllowAlways], Answer::Cancelled),
        (&[AllowAlways], Answer::Cancelled),
        (&[Unknown], Answer::Cancelled),
    ];
    for (offered, expected) in table {
        let limits = Limits::default();
        let mut harness = TurnHarness::new(limits);
        harness.agent(asked(permission(1, ToolKind::Execute, offered)));
        harness.wait(limits.answer.saturating_sub(SECOND));
        assert_eq!(harness.orders, []);
        harness.wait(SECOND);
        assert_eq!(harness.answers(), [(1, expected)], "offered {offered:?}");
        assert_eq!(harness.deciders(), [AnsweredBy::Timeout]);
        assert_eq!(harness.answer(1, option("AllowOnce")), Err(Error::NotAsked), "too late");
        assert_eq!(harness.outcome(), None, "the agent goes on with its no");
    }
}

#[test]
fn s19_with_nobody_there_a_question_waits_for_seconds_and_with_somebody_for_minutes() {
    let limits = Limits::default();
    let mut harness = TurnHarness::new(limits);
    harness.attend(Attendance::Nobody);
    harness.agent(asked(usual_ask(1)));
    harness.wait(4 * SECOND);
    assert_eq!(harness.orders, []);
    harness.wait(SECOND);
    assert_eq!(harness.deciders(), [AnsweredBy::Timeout]);

    harness.agent(asked(usual_ask(2)));
    harness.wait(3 * SECOND);
    harness.attend(Attendance::Somebody);
    harness.wait(limits.answer.saturating_sub(10 * SECOND));
    assert_eq!(harness.orders.len(), 1, "somebody came in time, and takes as long as it takes");
    harness.attend(Attendance::Nobody);
    harness.wait(4 * SECOND);
    assert_eq!(harness.orders.len(), 1, "a client that comes back within seconds finds the question still open");
    harness.wait(SECOND);
    assert_eq!(harness.orders.len(), 2);
}

#[test]
fn the_turns_clocks_stand_still_while_a_question_is_open() {
    let hour = Duration::from_hours(1);
    let limits = Limits { answer: 10 * hour, ..Limits::default() };
    let mut harness = TurnHarness::new(limits);
    harness.wait(limits.idle.saturating_sub(SECOND));
    harness.agent(asked(usual_ask(1)));
    harness.wait(hour);
    harness.agent(asked(usual_ask(2)));
    harness.wait(hour);
    assert_eq!(harness.answer(1, option("AllowOnce")), Ok(()));
    harness.wait(hour);
    assert_eq!(harness.outcome(), None, "the second question is still open");
    assert_eq!(harness.answer(2, option("AllowOnce")), Ok(()));
    harness.wait(limits.idle.saturating_sub(SECOND));
    assert_eq!(harness.orders.len(), 2, "only the two answers went out");
    assert!(harness.elapsed() > limits.turn);
    harness.wait(SECOND);
    assert_eq!(harness.orders.last(), Some(&Order::Cancel), "then the idle clock counts again");
}

#[test]
fn waiting_for_people_does_not_use_up_the_turns_time_but_working_does() {
    let limits = Limits { answer: 1000 * SECOND, idle: 300 * SECOND, turn: 400 * SECOND, ..Limits::default() };
    let mut harness = TurnHarness::new(limits);
    for id in 0..4 {
        harness.wait(90 * SECOND);
        harness.agent(asked(usual_ask(id)));
        harness.wait(900 * SECOND);
        assert_eq!(harness.answer(id, option("AllowOnce")), Ok(()));
    }
    harness.agent(text("360 s of work so far"));
    harness.wait(39 * SECOND);
    assert!(!harness.orders.contains(&Order::Cancel));
    harness.wait(SECOND);
    assert_eq!(harness.orders.last(), Some(&Order::Cancel), "400 s of work");
}

#[test]
fn a_policy_allows_harmless_kinds_once_and_never_for_good() {
    use ToolKind::{Delete, Edit, Execute, Fetch, Move, Read};
    let auto = PermissionPolicy::ask().with_auto([Read, Edit, Execute, Delete, Move]);
    let usual = &[AllowAlways, AllowOnce, RejectOnce][..];
    let table: [(ToolKind, &[OptionKind], Option<Answer>); 9] = [
        (Read, usual, Some(option("AllowOnce"))),
        (Edit, usual, Some(option("AllowOnce"))),
        (Execute, usual, None),
        (Delete, usual, None),
        (Move, usual, None),
        (Fetch, usual, None),
        (Read, &[AllowAlways, RejectOnce], None),
        (Read, &[Unknown], None),
        (Read, &[], Some(Answer::Cancelled)),
    ];
    for (kind, offered, expected) in table {
        let mut harness = TurnHarness::with_policy(Limits::default(), auto.clone());
        harness.agent(asked(permission(1, kind, offered)));
        let given = harness.answers().pop().map(|(_, answer)| answer);
        assert_eq!(given, expected, "{kind:?} with {offered:?}");
        let by_policy = expected.is_some().then_some(AnsweredBy::Policy);
        assert_eq!(harness.deciders().pop(), by_policy, "each decision is in the log");
    }
}

#[test]
fn a_tool_whose_kind_is_not_told_is_asked_about() {
    let everything = PermissionPolicy::ask().with_auto([ToolKind::Read, ToolKind::Other]);
    let mut harness = TurnHarness::with_policy(Limits::default(), everything);
    let mut ask = usual_ask(1);
    if let AskBody::Permission { tool, .. } = &mut ask.body {
        tool.kind = None;
    }
    harness.agent(asked(ask));
    assert_eq!(harness.turn.open_asks().count(), 1);
}

#[test]
fn a_policy_that_rejects_says_no_to_everything() {
    let table: [(&[OptionKind], Answer); 4] = [
        (&[AllowOnce, RejectAlways, RejectOnce], option("RejectOnce")),
        (&[AllowAlways], Answer::Cancelled),
        (&[Unknown], Answer::Cancelled),
        (&[], Answer::Cancelled),
    ];
    for (offered, expected) in table {
        let mut harness = TurnHarness::with_policy(Limits::default(), PermissionPolicy::reject());
        harness.agent(asked(permission(1, ToolKind::Read, offered)));
        harness.agent(asked(Ask { id: AskId(2), body: AskBody::Extension { method: "x/ask".into() } }));
        assert_eq!(harness.answers(), [(1, expected), (2, Answer::Cancelled)]);
    }
}

#[test]
fn a_question_that_its_agent_takes_back_is_closed_and_not_answered() {
    let limits = Limits::default();
    let mut harness = TurnHarness::new(limits);
    harness.agent(asked(usual_ask(1)));
    for _ in 0..2 {
        harness.agent(update(Event::Answered { ask: AskId(1), answer: Answer::Cancelled, by: AnsweredBy::Cancel }));
    }
    assert_eq!(harness.deciders(), [AnsweredBy::Cancel], "told once");
    assert_eq!(harness.answer(1, option("AllowOnce")), Err(Error::NotAsked));
    assert_eq!(harness.orders, [], "the agent does not wait for it any more");
    harness.wait(limits.idle);
    assert_eq!(harness.orders, [Order::Cancel], "and the clocks go on");
}

#[test]
fn a_storm_of_questions_is_bounded_and_every_one_is_answered() {
    let limits = Limits::default();
    let mut harness = TurnHarness::new(limits);
    for id in 0..1000 {
        harness.agent(asked(usual_ask(id)));
    }
    assert_eq!(harness.turn.open_asks().count(), limits.open_asks);
    assert_eq!(harness.answers().len(), 1000 - limits.open_asks);
    assert!(harness.answers().iter().all(|(_, answer)| *answer == option("RejectOnce")));
    assert_eq!(harness.answer(0, option("AllowOnce")), Ok(()), "those that were taken can still be allowed");
    harness.agent(asked(usual_ask(1000)));
    assert_eq!(harness.turn.open_asks().count(), limits.open_asks, "and make room for another");
    harness.wait(limits.answer);
    let answered: std::collections::BTreeSet<u64> = harness.answers().iter().map(|(id, _)| *id).collect();
    assert_eq!((harness.answers().len(), answered.len()), (1001, 1001), "each exactly once");
    let logged = harness.log.iter().filter(|event| matches!(event, Event::Answered { .. })).count();
    assert_eq!(logged, 1001);
}

fn opaque() -> gembridge_core::model::Opaque {
    gembridge_core::model::Opaque("{}".into())
}
