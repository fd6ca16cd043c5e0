//! All sessions seen from outside, and a reader that joins one of them.

use std::time::Duration;

use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{Answer, AskId, ClientId, Event, Principal, Seq};
use gembridge_core::session::{SessionChange, SessionStatus, SessionView, TurnState, Viewer};
use gembridge_core::turn::{Attendance, PermissionPolicy};
use tokio::sync::broadcast;

use crate::support::test_sessions::{CLIENT, TestSessions, new_session, prompt};
use crate::support::turn_harness::{Order, TurnHarness};
use crate::support::{asked, done, text, usual_ask};

async fn shown(changes: &mut broadcast::Receiver<SessionChange>, fits: impl Fn(&SessionView) -> bool) -> SessionView {
    loop {
        if let SessionChange::Shown(view) = changes.recv().await.unwrap()
            && fits(&view)
        {
            return (*view).clone();
        }
    }
}

fn live(view: &SessionView) -> Option<(TurnState, usize)> {
    match view.status {
        SessionStatus::Live { turn, open_asks, .. } => Some((turn, open_asks)),
        SessionStatus::Stored => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_a_session_run_wait_rest_and_leave() {
    let mut test = TestSessions::new();
    let mut changes = test.sessions.watch(Viewer::Admin).changes;
    let session = test.session().await;
    let turn = prompt(&session, "count").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("count").await;
    let running = shown(&mut changes, |view| live(view) == Some((TurnState::Running(turn), 0))).await;
    assert_eq!(running.record.title.as_deref(), Some("count"));
    agent.does([asked(usual_ask(1))]).await;
    shown(&mut changes, |view| live(view) == Some((TurnState::Running(turn), 1))).await;
    session.answer(AskId(1), Answer::Cancelled, CLIENT).await.unwrap();
    agent.does([done()]).await;
    shown(&mut changes, |view| live(view) == Some((TurnState::Idle, 0))).await;
    session.rename("geese".into()).await.unwrap();
    shown(&mut changes, |view| view.record.title.as_deref() == Some("geese")).await;
    session.close().await.unwrap();
    shown(&mut changes, |view| view.status == SessionStatus::Stored).await;
}

#[tokio::test(start_paused = true)]
async fn views_are_those_of_the_viewer_live_or_stored_the_newest_first() {
    let test = TestSessions::new();
    let one = test.session().await;
    let two = test.session().await;
    let other = test.sessions.create(new_session("bob")).await.unwrap();
    one.close().await.unwrap();
    two.rename("two".into()).await.unwrap();
    let ann = Viewer::Principal(Principal::new("ann"));
    let ids = async |viewer: &Viewer, limit: usize| {
        let views = test.sessions.views(viewer, limit).await.unwrap();
        views.iter().map(|view| (view.record.id, view.status == SessionStatus::Stored)).collect::<Vec<_>>()
    };
    let mut of_ann = ids(&ann, 10).await;
    of_ann.sort_unstable();
    assert_eq!(of_ann, [(one.id(), true), (two.id(), false)]);
    assert_eq!(ids(&Viewer::Admin, 10).await.len(), 3);
    assert_eq!(ids(&Viewer::Admin, 2).await.len(), 2);
    let renamed = test.sessions.views(&ann, 10).await.unwrap();
    let renamed = renamed.iter().find(|view| view.record.id == two.id()).unwrap();
    assert_eq!(renamed.record.title.as_deref(), Some("two"), "a live one is newer than its record on disk");
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn a_removed_session_ends_is_told_of_and_is_never_found_again() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "go").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("go").await;
    let stranger = Viewer::Principal(Principal::new("bob"));
    let unknown = Err(Error::UnknownSession(session.id().to_string()));
    assert_eq!(test.sessions.remove(session.id(), &stranger).await, unknown);
    let mut changes = test.sessions.watch(Viewer::Admin).changes;
    test.sessions.remove(session.id(), &Viewer::Admin).await.unwrap();
    let removed = loop {
        if let SessionChange::Removed { id, principal } = changes.recv().await.unwrap() {
            break (id, principal);
        }
    };
    assert_eq!(removed, (session.id(), Principal::new("ann")));
    assert_eq!(test.sessions.remove(session.id(), &Viewer::Admin).await, unknown);
    assert_eq!(
        test.sessions.get(session.id(), &Viewer::Admin).await.map(|found| found.id()),
        unknown.map(|()| session.id())
    );
    assert!(test.sessions.views(&Viewer::Admin, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_joins_late_gets_the_open_questions_wherever_they_stand() {
    let mut test = TestSessions::with(Limits { ring_entries: 2, ..Limits::default() });
    let session = test.session().await;
    let turn = prompt(&session, "go").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("go").await;
    agent.does([asked(usual_ask(1)), asked(usual_ask(2))]).await;
    for _ in 0..5 {
        agent.does([text("more")]).await;
    }
    let mut watching = session.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
    while session.describe().await.unwrap().last < Seq(9) {
        watching.follow.recv().await.unwrap();
    }
    session.answer(AskId(1), Answer::Cancelled, CLIENT).await.unwrap();
    let joined = session.join(From::Now, Backpressure::Own).await.unwrap();
    assert!(joined.attachment.snapshot.is_empty() && joined.attachment.older.is_none());
    let open: Vec<_> = joined.attachment.open.iter().map(|entry| (entry.seq, entry.turn)).collect();
    assert_eq!(open, [(Seq(4), Some(turn))]);
    assert_eq!(joined.description.last, joined.attachment.last);
    assert_eq!(joined.description.turn, TurnState::Running(turn));
    agent.does([done()]).await;
    while !matches!(watching.follow.recv().await.unwrap().last().unwrap().event, Event::Ended(_)) {}
    let later = session.join(From::Now, Backpressure::Own).await.unwrap();
    assert!(later.attachment.open.is_empty());
}

#[test]
fn s19_what_needs_a_person_is_refused_at_once_where_there_is_none() {
    for (attendance, answered) in [(Attendance::Nobody, true), (Attendance::Somebody, false)] {
        let mut harness = TurnHarness::with_policy(Limits::default(), PermissionPolicy::ask_if_attended());
        harness.attend(attendance);
        harness.agent(asked(usual_ask(1)));
        let is_answered = harness.orders.iter().any(|order| matches!(order, Order::Answer(AskId(1), _)));
        assert_eq!(is_answered, answered, "{attendance:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s19_a_question_waits_for_whoever_watches_the_list_and_may_see_the_session() {
    for (viewer, waits) in [
        (Some(Viewer::Admin), true),
        (Some(Viewer::Principal(Principal::new("ann"))), true),
        (Some(Viewer::Principal(Principal::new("bob"))), false),
        (None, false),
    ] {
        let mut test = TestSessions::new();
        let session = test.sessions.create(new_session("ann")).await.unwrap();
        let mut watching = session.attach(From::Now, Backpressure::Own).await.unwrap();
        let list = viewer.clone().map(|viewer| test.sessions.watch(viewer));
        prompt(&session, "may I").await;
        let mut agent = test.desk.open("a").await;
        agent.expect_prompt("may I").await;
        agent.does([asked(usual_ask(1))]).await;
        while !matches!(watching.follow.recv().await.unwrap().last().unwrap().event, Event::Asked(_)) {}
        tokio::time::sleep(Duration::from_mins(1)).await;
        let is_open = !session.describe().await.unwrap().open_asks.is_empty();
        assert_eq!(is_open, waits, "{viewer:?}");
        drop(list);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(session.describe().await.unwrap().open_asks.is_empty(), "nobody is left to wait for");
    }
}

#[test]
fn no_two_clients_of_a_process_are_the_same() {
    let (one, two) = (ClientId::fresh(), ClientId::fresh());
    assert_ne!(one, two);
}
