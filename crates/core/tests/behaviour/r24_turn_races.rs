//! Whatever happens to a turn, in whatever order: it ends exactly once, and nobody is left waiting for an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::driver::{Signal, Update};
use gembridge_core::limit::Limits;
use gembridge_core::model::{Answer, AnsweredBy, AskId, Dialect, Event, Frame, OptionKind, ToolKind};
use gembridge_core::turn::PermissionPolicy;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::turn_harness::TurnHarness;
use crate::support::{asked, done, done_cancelled, failure, option, permission, text, update, usage};

#[derive(Clone, Debug)]
enum Step {
    Text,
    Frame(usize),
    Usage(u64),
    Ask(ToolKind, Vec<OptionKind>),
    /// The agent takes one of its questions back.
    Withdraw(prop::sample::Index),
    Done,
    DoneCancelled,
    Failed,
    Lost,
    Cancel,
    Abort,
    /// Answers one of the questions so far, open or not.
    Answer(prop::sample::Index, OptionKind),
    Wait(u64),
}

fn option_kind() -> impl Strategy<Value = OptionKind> {
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};
    prop::sample::select(vec![AllowOnce, AllowAlways, RejectOnce, RejectAlways, Unknown])
}

fn tool_kind() -> impl Strategy<Value = ToolKind> {
    prop::sample::select(vec![ToolKind::Read, ToolKind::Execute])
}

fn step() -> impl Strategy<Value = Step> {
    // Round numbers, so that deadlines and events often meet in the same instant.
    let wait = prop::sample::select(vec![0, 1, 100, 500, 5_000, 30_000, 60_000, 120_000]);
    prop_oneof![
        6 => Just(Step::Text),
        2 => (0..400_usize).prop_map(Step::Frame),
        1 => (0..3_u64).prop_map(Step::Usage),
        6 => (tool_kind(), vec(option_kind(), 0..4)).prop_map(|(kind, options)| Step::Ask(kind, options)),
        2 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        2 => Just(Step::Done),
        1 => Just(Step::DoneCancelled),
        1 => Just(Step::Failed),
        1 => Just(Step::Lost),
        2 => Just(Step::Cancel),
        1 => Just(Step::Abort),
        6 => (any::<prop::sample::Index>(), option_kind()).prop_map(|(which, kind)| Step::Answer(which, kind)),
        6 => wait.prop_map(Step::Wait),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let quiet = prop::sample::select(vec![0, 500, 60_000]);
    (quiet, 1..4_usize).prop_map(|(quiet, open_asks)| Limits {
        quiet: Duration::from_millis(quiet),
        open_asks,
        turn_bytes: 1_000,
        ..Limits::default()
    })
}

fn policy() -> impl Strategy<Value = PermissionPolicy> {
    prop_oneof![
        Just(PermissionPolicy::ask()),
        Just(PermissionPolicy::ask().with_auto([ToolKind::Read])),
        Just(PermissionPolicy::reject()),
    ]
}

/// What the agent asked.
#[derive(Default)]
struct Book {
    asks: u64,
    /// Questions to which the agent is owed an answer.
    owed: Vec<u64>,
    withdrawn: Vec<u64>,
}

fn play(harness: &mut TurnHarness, step: Step, book: &mut Book) {
    match step {
        Step::Text => harness.agent(text("x")),
        Step::Frame(size) => {
            let frame = Frame { dialect: Dialect::Acp, bytes: Bytes::from(vec![0; size]) };
            harness.agent(Signal::Update(Update { event: Event::Text("y".into()), frame: Some(frame) }));
        }
        Step::Usage(tokens) => harness.agent(update(Event::Usage(usage(Some(tokens), None)))),
        Step::Ask(kind, options) => {
            if !harness.turn.is_ended() {
                book.owed.push(book.asks);
            }
            harness.agent(asked(permission(book.asks, kind, &options)));
            book.asks += 1;
        }
        Step::Withdraw(which) if book.asks > 0 => {
            let ask = AskId(which.index(usize::try_from(book.asks).unwrap()) as u64);
            if harness.turn.open_asks().any(|open| open.id == ask) {
                book.owed.retain(|owed| *owed != ask.0);
                book.withdrawn.push(ask.0);
            }
            harness.agent(update(Event::Answered { ask, answer: Answer::Cancelled, by: AnsweredBy::Cancel }));
        }
        Step::Done => harness.agent(done()),
        Step::DoneCancelled => harness.agent(done_cancelled()),
        Step::Failed => harness.agent(Signal::Failed(failure("failed"))),
        Step::Lost => harness.agent(Signal::Lost(failure("lost"))),
        Step::Cancel => harness.cancel(),
        Step::Abort => harness.abort(failure("aborted")),
        Step::Answer(which, kind) if book.asks > 0 => {
            let ask = which.index(usize::try_from(book.asks).unwrap()) as u64;
            let open = harness.turn.open_asks().any(|open| open.id.0 == ask);
            let taken = harness.answer(ask, option(&format!("{kind:?}")));
            assert!(open || taken.is_err(), "a question that is not open takes no answer");
        }
        Step::Withdraw(_) | Step::Answer(..) => {}
        Step::Wait(millis) => harness.wait(Duration::from_millis(millis)),
    }
}

/// Checks that each question of the agent was answered once, and that the log tells each that it shows likewise.
fn check_answers(harness: &TurnHarness, book: &Book) {
    let mut given: BTreeMap<u64, Vec<Answer>> = BTreeMap::new();
    for (ask, answer) in harness.answers() {
        given.entry(ask).or_default().push(answer);
    }
    assert_eq!(given.keys().copied().collect::<Vec<_>>(), book.owed, "each question of the agent gets its answer");
    let mut shown: BTreeMap<u64, Vec<Answer>> = BTreeMap::new();
    for event in &harness.log {
        match event {
            Event::Asked(ask) => assert!(shown.insert(ask.id.0, Vec::new()).is_none(), "asked twice"),
            Event::Answered { ask, answer, .. } => {
                shown.get_mut(&ask.0).expect("nothing is answered before it is asked").push(answer.clone());
            }
            _ => {}
        }
    }
    for (ask, answers) in &given {
        assert_eq!(answers.len(), 1, "question {ask} was answered to the agent {answers:?}");
        if let Some(told) = shown.get(ask) {
            assert_eq!(told, answers, "the log tells what the agent was told");
        }
    }
    for (ask, answers) in &shown {
        assert_eq!(answers.len(), 1, "question {ask} was closed once in the log");
        assert!(given.contains_key(ask) || book.withdrawn.contains(ask));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn r24_every_turn_ends_exactly_once_and_leaves_no_question_open(
        limits in limits(),
        policy in policy(),
        steps in vec(step(), 0..40),
    ) {
        let mut harness = TurnHarness::with_policy(limits, policy);
        let mut book = Book::default();
        let mut length_at_end = None;
        for step in steps {
            play(&mut harness, step, &mut book);
            let ended = harness.outcome().is_some();
            if ended {
                let length = *length_at_end.get_or_insert(harness.log.len());
                prop_assert_eq!(harness.log.len(), length, "nothing is logged after the end");
            }
            prop_assert_eq!(harness.turn.deadline().is_none(), ended, "a turn that runs has a deadline");
        }
        harness.wait(Duration::from_hours(1));
        prop_assert!(harness.outcome().is_some(), "no turn outlives its clocks");
        prop_assert_eq!(harness.turn.open_asks().count(), 0);
        check_answers(&harness, &book);
    }
}
