//! Which session a history finds, and what an agent is told that has not heard it.

use std::borrow::Cow;
use std::sync::Arc;

use gembridge_core::exchange::{Claim, ConversationLimits, Conversations, Held, Mark, Owner, fit, news};
use gembridge_core::model::{
    AgentName, CallName, Content, Message, Part, Principal, Role, SessionId, TurnId, blocks_with_names,
};
use proptest::prelude::*;

fn conversations(limits: ConversationLimits) -> Arc<Conversations> {
    Arc::new(Conversations::new(limits))
}

fn owner(name: &str) -> Owner {
    Owner { principal: Principal::new(name), agent: AgentName::new("agent"), model: None }
}

fn held(turn: u64) -> Held {
    Held { session: SessionId::new(), turn: TurnId(turn) }
}

fn said(messages: &[(Role, &'static str)]) -> Vec<Message> {
    messages.iter().map(|(role, text)| Message::text(*role, *text)).collect()
}

fn mark(all: &Conversations, messages: &[Message]) -> Mark {
    let mut fingerprint = all.fingerprint();
    for message in messages {
        fingerprint.add(message);
    }
    fingerprint.mark()
}

#[test]
fn a_session_is_found_once_by_its_owner_and_back_when_it_was_not_used() {
    let all = conversations(ConversationLimits::default());
    let mark = mark(&all, &said(&[(Role::User, "a"), (Role::Assistant, "b")]));
    let held = held(1);
    all.remember(&owner("ann"), mark, held);
    assert!(all.claim(&owner("bob"), mark).is_none());
    let claim = all.claim(&owner("ann"), mark).expect("it is there");
    assert!(all.claim(&owner("ann"), mark).is_none(), "it is taken");
    drop(claim);
    let claim = all.claim(&owner("ann"), mark).expect("it is back");
    assert_eq!(claim.spend(), Some(held));
    assert!(all.claim(&owner("ann"), mark).is_none());
}

#[test]
fn two_sessions_may_hold_one_history() {
    let all = conversations(ConversationLimits::default());
    let mark = mark(&all, &said(&[(Role::User, "hi"), (Role::Assistant, "hello")]));
    all.remember(&owner("ann"), mark, held(1));
    all.remember(&owner("ann"), mark, held(1));
    let one = all.claim(&owner("ann"), mark).and_then(Claim::spend);
    let other = all.claim(&owner("ann"), mark).and_then(Claim::spend);
    assert!(one.is_some() && other.is_some() && one != other);
}

#[test]
fn a_session_holds_one_history_at_a_time() {
    let all = conversations(ConversationLimits::default());
    let older = mark(&all, &said(&[(Role::User, "a")]));
    let newer = mark(&all, &said(&[(Role::User, "b")]));
    let held = held(1);
    all.remember(&owner("ann"), older, held);
    all.remember(&owner("ann"), newer, Held { turn: TurnId(2), ..held });
    assert!(all.claim(&owner("ann"), older).is_none());
    all.forget(&owner("ann"), held.session);
    assert!(all.claim(&owner("ann"), newer).is_none());
}

#[test]
fn the_oldest_are_forgotten_first_and_nobody_pushes_out_another() {
    let all = conversations(ConversationLimits { owners: 2, of_each: 2 });
    let texts = ["a", "b", "c"];
    let marks: Vec<Mark> = texts.iter().map(|text| mark(&all, &[Message::text(Role::User, *text)])).collect();
    all.remember(&owner("bob"), marks[0], held(1));
    for mark in &marks {
        all.remember(&owner("ann"), *mark, held(1));
    }
    assert!(all.claim(&owner("ann"), marks[0]).is_none());
    assert!(all.claim(&owner("ann"), marks[1]).is_some());
    assert!(all.claim(&owner("bob"), marks[0]).is_some(), "it went back when the claim was dropped");
    all.remember(&owner("cat"), marks[0], held(1));
    let owners = ["ann", "bob", "cat"]
        .into_iter()
        .filter(|name| marks.iter().any(|mark| all.claim(&owner(name), *mark).is_some()));
    assert_eq!(owners.count(), 2, "a third owner takes the place of one");
}

#[test]
fn marks_of_two_processes_have_nothing_in_common() {
    let messages = said(&[(Role::User, "a")]);
    let (one, other) = (conversations(ConversationLimits::default()), conversations(ConversationLimits::default()));
    assert_ne!(mark(&one, &messages), mark(&other, &messages));
}

#[test]
fn speakers_borders_and_media_make_a_difference() {
    let all = conversations(ConversationLimits::default());
    let picture = |data: &str| Part::Content(Content::Image { mime: "image/png".into(), data: data.into(), uri: None });
    let with = |parts| vec![Message { role: Role::User, parts }];
    let histories = [
        said(&[(Role::User, "ab")]),
        said(&[(Role::Assistant, "ab")]),
        said(&[(Role::User, "a"), (Role::User, "b")]),
        said(&[(Role::User, "a"), (Role::Assistant, "b")]),
        said(&[(Role::User, "ab"), (Role::User, "")]),
        said(&[(Role::User, "a b")]),
        with(vec![Part::text("ab"), picture("AAAA")]),
        with(vec![Part::text("ab"), picture("AAAB")]),
        with(vec![Part::text("ab"), picture("AAAA"), picture("AAAA")]),
    ];
    let marks: std::collections::HashSet<Mark> = histories.iter().map(|history| mark(&all, history)).collect();
    assert_eq!(marks.len(), histories.len());
}

proptest! {
    #[test]
    fn a_fingerprint_does_not_care_how_a_text_came_in_pieces(
        pieces in prop::collection::vec("[ab \\n\\té]{0,5}", 0..80),
    ) {
        let all = conversations(ConversationLimits::default());
        let whole: String = pieces.concat();
        let mut streamed = all.fingerprint().begin(Role::Assistant);
        for piece in &pieces {
            streamed.text(piece);
        }
        let streamed = streamed.end();
        prop_assert_eq!(streamed.mark(), mark(&all, &[Message::text(Role::Assistant, whole.as_str())]));
        // A client that trims means the same.
        prop_assert_eq!(streamed.mark(), mark(&all, &[Message::text(Role::Assistant, whole.trim())]));
        let parts = pieces.iter().map(|piece| Part::text(piece.as_str())).collect();
        let in_parts = Message { role: Role::Assistant, parts };
        prop_assert_eq!(streamed.mark(), mark(&all, &[in_parts]));
    }

    #[test]
    fn a_fold_keeps_the_system_the_last_user_message_and_an_unbroken_end(
        roles in prop::collection::vec(0..4_usize, 2..12),
        sizes in prop::collection::vec(0..60_usize, 12),
        budget in 0..400_usize,
    ) {
        let kinds = [Role::System, Role::User, Role::Assistant, Role::Tool];
        let texts: Vec<String> = roles.iter().enumerate().map(|(at, _)| format!("<{at}>{}", "x".repeat(sizes[at]))).collect();
        let all: Vec<Message> =
            roles.iter().zip(&texts).map(|(role, text)| Message::text(kinds[*role], text.as_str())).collect();
        let folded = fit(&all, budget);
        let prompt = folded.prompt.plain_text();
        let is_kept: Vec<bool> = texts.iter().map(|text| prompt.contains(text.as_str())).collect();
        prop_assert_eq!(is_kept.iter().filter(|kept| !**kept).count(), folded.left_out);
        let last_user = all.iter().rposition(|said| said.role == Role::User);
        for (at, said) in all.iter().enumerate() {
            if said.role == Role::System || Some(at) == last_user {
                prop_assert!(is_kept[at]);
            }
        }
        // What is left out is older than everything that could be left out and was not.
        let could_go = |at: &usize| all[*at].role != Role::System && Some(*at) != last_user;
        let fates: Vec<bool> = (0..all.len()).filter(could_go).map(|at| is_kept[at]).collect();
        prop_assert!(fates.is_sorted(), "{fates:?}");
        if folded.left_out > 0 {
            let with_oldest_left_out = texts.iter().map(|text| text.len() + 16).sum::<usize>();
            prop_assert!(with_oldest_left_out > budget);
        }
    }
}

#[test]
fn what_is_new_goes_out_as_it_was_said() {
    let image = Content::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None };
    let parts = vec![Part::text("look"), Part::Content(image.clone())];
    let said = [Message::text(Role::User, "one"), Message { role: Role::User, parts }];
    assert_eq!(news(&said).content, [Content::text("one"), Content::text("look"), image]);
    assert_eq!(news(&said[..1]).content, fit(&said[..1], 0).prompt.content);
}

fn call(tool: &str, arguments: &str, number: Option<usize>) -> Part {
    Part::Call { call: CallName { tool: tool.into(), number }, arguments: arguments.into() }
}

fn result(tool: &str, number: Option<usize>, text: &str) -> Message {
    let parts = vec![Part::ResultOf(CallName { tool: tool.into(), number }), Part::text(text)];
    Message { role: Role::Tool, parts }
}

fn calling(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

#[test]
fn what_was_called_with_what_and_what_came_of_it_make_a_difference() {
    let all = conversations(ConversationLimits::default());
    let histories = [
        vec![calling(vec![call("f", "{}", None)])],
        vec![calling(vec![call("g", "{}", None)])],
        vec![calling(vec![call("f", "{\"a\":1}", None)])],
        vec![calling(vec![Part::text("f"), call("f", "{}", None)])],
        vec![calling(vec![call("f", "{}", Some(1)), call("f", "{}", Some(2))])],
        vec![calling(vec![call("f", "{}", None)]), result("f", None, "x")],
        vec![calling(vec![call("f", "{}", None)]), result("f", None, "y")],
        vec![calling(vec![call("f", "{}", None)]), result("f", Some(1), "x"), result("f", Some(2), "y")],
        vec![calling(vec![call("f", "{}", None)]), result("f", Some(2), "x"), result("f", Some(1), "y")],
        said(&[(Role::Assistant, "f{}")]),
    ];
    let marks: std::collections::HashSet<Mark> = histories.iter().map(|history| mark(&all, history)).collect();
    assert_eq!(marks.len(), histories.len());
    let mut streamed = all.fingerprint().begin(Role::Assistant);
    streamed.text("f ");
    streamed.call("f", "{}");
    assert_eq!(streamed.end().mark(), mark(&all, &histories[3]));
}

#[test]
fn calls_and_their_results_are_told_with_their_names() {
    let history = [
        Message::text(Role::User, "compare"),
        calling(vec![Part::text("well"), call("f", "{\"a\":1}", Some(1)), call("f", "{\"a\":2}", Some(2))]),
        result("f", Some(2), "two"),
        result("f", Some(1), "one"),
    ];
    let told = "[User]\ncompare\n\n[Assistant]\nwell\ncalled the tool f (call 1) with {\"a\":1}\n\
                called the tool f (call 2) with {\"a\":2}\n\n\
                [Tool]\nf (call 2) gave back:\ntwo\n\n[Tool]\nf (call 1) gave back:\none";
    assert_eq!(fit(&history, 10_000).prompt.plain_text(), told);
    assert_eq!(blocks_with_names([Cow::Owned(Message::text(Role::User, "stop"))]), [Content::text("[User]\nstop")]);
}

#[test]
fn the_newest_results_are_told_whole_however_large_they_are() {
    let large = "x".repeat(10_000);
    let history = [
        Message::text(Role::User, "old"),
        Message::text(Role::Assistant, "older"),
        Message::text(Role::User, "look it up"),
        calling(vec![call("f", "{}", None)]),
        result("f", None, &large),
    ];
    let folded = fit(&history, 100);
    assert_eq!(folded.left_out, 2);
    assert!(folded.prompt.plain_text().ends_with(&large));
}
