//! Events fold into items, and it does not matter how the stream was cut.

use gembridge_core::model::{
    Answer, AnsweredBy, AskId, Content, Event, Item, OptionKind, Outcome, PlanEntry, PlanPriority, PlanStatus, Text,
    ToolCall, ToolCallId, ToolItem, ToolKind, ToolStatus,
};
use gembridge_core::turn::Fold;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::{failure, finished, option, permission, usage, usual_ask};

fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Fold {
    let mut fold = Fold::default();
    for event in events {
        fold.push(event);
    }
    fold
}

fn said(text: &str) -> Event {
    Event::Text(text.into())
}

fn thought(text: &str) -> Event {
    Event::Thought(text.into())
}

fn tool(id: &str, status: Option<ToolStatus>) -> Event {
    Event::ToolCall(Box::new(ToolCall { status, ..ToolCall::update(ToolCallId::new(id)) }))
}

fn plan(steps: &[&str]) -> Event {
    let entry = |step: &&str| PlanEntry {
        content: (*step).into(),
        priority: PlanPriority::Medium,
        status: PlanStatus::Pending,
    };
    Event::Plan(steps.iter().map(entry).collect())
}

fn answered(ask: u64, answer: Answer) -> Event {
    Event::Answered { ask: AskId(ask), answer, by: AnsweredBy::Policy }
}

/// The items in short: `m:text`, `t:thought`, `tool-1 Completed`, `tool-1 Failed refused`, `p:2`.
fn outline(fold: &Fold) -> Vec<String> {
    let short = |item: &Item| match item {
        Item::Message(text) => format!("m:{text}"),
        Item::Thought(text) => format!("t:{text}"),
        Item::Content(_) => "content".to_owned(),
        Item::Tool(ToolItem { call, refused }) => {
            let status = call.status.map_or("-".to_owned(), |status| format!("{status:?}"));
            format!("{} {status}{}", call.id, if *refused { " refused" } else { "" })
        }
        Item::Plan(entries) => format!("p:{}", entries.len()),
    };
    fold.items().iter().map(short).collect()
}

#[test]
fn events_fold_into_the_items_that_a_reader_thinks_in() {
    use ToolStatus::{Completed, InProgress, Pending};
    let ended = || Event::Ended(finished());
    let ask = |id| Event::Asked(Box::new(usual_ask(id)));
    let table: Vec<(&str, Vec<Event>, &[&str])> = vec![
        ("pieces join", vec![said("a"), said("b"), thought("c"), thought("d"), said("e")], &["m:ab", "t:cd", "m:e"]),
        ("a piece of nothing is nothing", vec![thought("a"), said(""), thought("b"), said("")], &["t:ab"]),
        (
            "a tool stands where it began",
            vec![said("a"), tool("x", Some(Pending)), said("b"), tool("x", Some(Completed))],
            &["m:a", "x Completed", "m:b"],
        ),
        ("an update names only what changed", vec![tool("x", Some(InProgress)), tool("x", None)], &["x InProgress"]),
        (
            "what is left open is closed at the end",
            vec![tool("x", Some(InProgress)), tool("y", None), tool("z", Some(Completed)), ended()],
            &["x Failed", "y Failed", "z Completed"],
        ),
        (
            "a tool may be known first by its permission",
            vec![ask(1), answered(1, option("AllowOnce")), tool("tool-1", Some(Completed))],
            &["tool-1 Completed"],
        ),
        (
            "a refused tool is closed though it never reports back",
            vec![ask(1), answered(1, option("RejectOnce")), said("then not"), ended()],
            &["tool-1 Failed refused", "m:then not"],
        ),
        (
            "so is one whose question was cancelled",
            vec![ask(1), answered(1, Answer::Cancelled)],
            &["tool-1 Failed refused"],
        ),
        (
            "a forged option allows nothing",
            vec![ask(1), answered(1, option("AllowEverything"))],
            &["tool-1 Failed refused"],
        ),
        (
            "answers find their own question",
            vec![
                ask(1),
                ask(2),
                ask(3),
                answered(1, option("AllowOnce")),
                answered(3, option("RejectOnce")),
                answered(2, option("AllowOnce")),
                answered(9, option("RejectOnce")),
            ],
            &["tool-1 -", "tool-2 -", "tool-3 Failed refused"],
        ),
        ("a plan is replaced where it stood", vec![plan(&["a"]), said("b"), plan(&["a", "c"])], &["p:2", "m:b"]),
        ("content stands for itself", vec![Event::Content(Content::text("x")), said("y")], &["content", "m:y"]),
        (
            "the session's own news are no items",
            vec![
                Event::Started,
                Event::Mode("m".into()),
                Event::Title("t".into()),
                Event::Other { kind: "new".into() },
                Event::Context { used: 1, size: 2 },
            ],
            &[],
        ),
    ];
    for (case, events, expected) in table {
        assert_eq!(outline(&fold(&events)), expected, "{case}");
    }
}

#[test]
fn usage_outcome_and_text_come_with_the_fold() {
    let events = [
        said("one "),
        Event::Usage(usage(Some(3), None)),
        tool("x", None),
        said("two"),
        Event::Usage(usage(None, Some(4))),
        Event::Ended(Outcome::Interrupted(failure("gone"))),
    ];
    let fold = fold(&events);
    assert_eq!(fold.text(), "one two");
    assert_eq!(*fold.usage(), usage(Some(3), Some(4)));
    assert_eq!(fold.outcome(), Some(&Outcome::Interrupted(failure("gone"))));
}

fn event() -> impl Strategy<Value = Event> {
    let status = prop::option::of(prop::sample::select(vec![
        ToolStatus::Pending,
        ToolStatus::InProgress,
        ToolStatus::Completed,
        ToolStatus::Failed,
    ]));
    let kinds = vec![OptionKind::AllowOnce, OptionKind::RejectOnce, OptionKind::Unknown];
    prop_oneof![
        4 => ".{0,6}".prop_map(|text| said(&text)),
        2 => ".{0,6}".prop_map(|text| thought(&text)),
        2 => (0..4_u64, status).prop_map(|(id, status)| tool(&format!("tool-{id}"), status)),
        1 => (0..4_u64, vec(prop::sample::select(kinds), 0..3))
            .prop_map(|(id, options)| Event::Asked(Box::new(permission(id, ToolKind::Edit, &options)))),
        1 => (0..4_u64, prop::sample::select(vec!["AllowOnce", "RejectOnce", "x"]))
            .prop_map(|(id, chosen)| answered(id, option(chosen))),
        1 => vec("[a-z]{1,3}", 0..3).prop_map(|steps| plan(&steps.iter().map(String::as_str).collect::<Vec<_>>())),
        1 => (0..9_u64).prop_map(|tokens| Event::Usage(usage(Some(tokens), None))),
    ]
}

/// The same stream with one text cut in two, as another network would have delivered it.
fn cut(events: &[Event], which: Index, place: Index) -> Vec<Event> {
    let halves = |text: &Text| {
        let text = text.to_str();
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let (left, right) = text.split_at(*place.get(&places));
        (Text::from(left), Text::from(right))
    };
    let mut cut = events.to_vec();
    if events.is_empty() {
        return cut;
    }
    let at = which.index(events.len());
    match &events[at] {
        Event::Text(text) => {
            let (left, right) = halves(text);
            cut.splice(at..=at, [Event::Text(left), Event::Text(right)]);
        }
        Event::Thought(text) => {
            let (left, right) = halves(text);
            cut.splice(at..=at, [Event::Thought(left), Event::Thought(right)]);
        }
        _ => {}
    }
    cut
}

proptest! {
    #[test]
    fn folding_any_split_of_the_stream_equals_folding_the_whole(
        events in vec(event(), 0..30),
        pause in any::<Index>(),
        cuts in vec((any::<Index>(), any::<Index>()), 0..8),
    ) {
        let mut events = events;
        events.push(Event::Ended(finished()));
        let whole = fold(&events);

        let (before, after) = events.split_at(pause.index(events.len()));
        let mut resumed = fold(before).clone();
        for event in after {
            resumed.push(event);
        }
        prop_assert_eq!(resumed.items(), whole.items());

        let recut = cuts.iter().fold(events.clone(), |events, (which, place)| cut(&events, *which, *place));
        let recut = fold(&recut);
        prop_assert_eq!(recut.items(), whole.items());
        prop_assert_eq!(recut.usage(), whole.usage());
        prop_assert_eq!(recut.outcome(), whole.outcome());
        prop_assert_eq!(recut.text(), whole.text());
    }
}
