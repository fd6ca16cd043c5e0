//! Sessions come and go: closing, shutting down, being killed, idling away, and coming back from the store.

use std::time::Duration;

use gembridge_core::admission::GuestLimits;
use gembridge_core::driver::{Change, CloseMode};
use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, FailureKind, Principal, Prompt, Seq, SessionId, Timestamp, TurnId};
use gembridge_core::session::{SessionsConfig, Viewer};
use gembridge_core::store::{Records as _, SessionRecord};
use tokio::task::JoinSet;

use crate::support::follow::Reader;
use crate::support::store::FaultyStore;
use crate::support::test_sessions::{CLIENT, TestSessions, agent_name, new_session, prompt};
use crate::support::{asked, done, finished, interrupted_by, ledger, text, usual_ask};

#[tokio::test(start_paused = true)]
async fn closing_ends_the_running_and_the_waiting_turns_once_each() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    prompt(&session, "two").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([asked(usual_ask(1))]).await;
    reader.until_asked().await;
    let (first, second) = tokio::join!(session.close(), session.close());
    assert_eq!((first, second), (Ok(()), Ok(())));
    let entries = test.entries(&session);
    ledger::check_settled(&entries);
    for outcome in ledger::outcomes(&entries).values() {
        assert_eq!(interrupted_by(outcome), Some(FailureKind::ShuttingDown));
    }
    while reader.next().await.is_some() {}
    let refused = session.prompt(Prompt::text("late"), CLIENT).await.map(|accepted| accepted.turn);
    assert_eq!(refused, Err(Error::Closed));
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_everything_and_takes_nothing_new() {
    let mut test = TestSessions::new();
    let (busy, opening, idle) = (test.session().await, test.session().await, test.session().await);
    prompt(&busy, "work").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("work").await;
    prompt(&opening, "soon").await;
    let request = test.desk.next().await;
    test.sessions.shutdown().await;
    drop(request);
    for session in [&busy, &opening, &idle] {
        ledger::check_settled(&test.entries(session));
        assert!(session.is_closed());
    }
    agent.expect_cancel().await;
    agent.expect_close(CloseMode::Release).await;
    assert!(test.driver.is_shut_down(), "the agents' processes are gone too");
    assert!(matches!(test.sessions.create(new_session("ann")).await, Err(Error::Closed)));
    assert!(matches!(test.sessions.get(idle.id(), &Viewer::Admin).await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_agent_never_answers_does_not_hold_up_the_shutdown() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let (_, mut agent) = tokio::join!(session.wake(), test.desk.open("a"));
    let mut callers = JoinSet::new();
    let caller = session.clone();
    callers.spawn(async move { caller.change(Change::Mode("x".into())).await });
    let (_, unanswered) = agent.expect_change().await;
    tokio::time::timeout(Duration::from_mins(10), test.sessions.shutdown()).await.expect("it comes to its end");
    assert_eq!(callers.join_next().await.unwrap().unwrap(), Err(Error::Closed));
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_comes_back_with_its_log() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("memory").await;
    agent.expect_prompt("one").await;
    session.close().await.unwrap();
    let session = test.get(session.id()).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(interrupted_by(&reader.until_ended(TurnId(1)).await), Some(FailureKind::ShuttingDown));
    assert_eq!(prompt(&session, "two").await, TurnId(2), "turns go on counting");
    let request = test.desk.next().await;
    assert_eq!(request.wanted(), Some("memory"));
    let mut agent = request.accept("other");
    agent.expect_prompt("two").await;
    reader.until(|entry| matches!(entry.event, Event::AgentReplaced { .. }).then_some(())).await;
    agent.does([done()]).await;
    assert_eq!(reader.until_ended(TurnId(2)).await, finished());
    ledger::check_settled(&test.entries(&session));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ran_when_the_process_was_killed_is_marked_interrupted() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    let mut reader = Reader::of(&session, &test.store).await;
    prompt(&session, "one").await;
    prompt(&session, "two").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([text("seen")]).await;
    assert_eq!(reader.until_text().await, "seen");
    let id = session.id();
    // A process that is killed closes nothing: another one finds what was stored.
    let (store, writer) = test.store.in_another_process(id);
    drop((test, session, reader, agent, writer));

    let test = TestSessions::on(store.clone(), Limits::default(), SessionsConfig::default());
    let session = test.get(id).await;
    let mut reader = Reader::of(&session, &store).await;
    assert_eq!(reader.until_text().await, "seen", "what a client saw is still there");
    for turn in 1..=2 {
        assert_eq!(interrupted_by(&reader.until_ended(TurnId(turn)).await), Some(FailureKind::ShuttingDown));
    }
    ledger::check_settled(&store.entries(id));
}

#[tokio::test(start_paused = true)]
async fn two_clients_that_ask_for_a_stored_session_at_once_share_it() {
    let (store, record) = (FaultyStore::default(), record());
    let id = record.id;
    store.put(record, &left_behind("P1 S1 T1"));
    let test = TestSessions::on(store.clone(), Limits::default(), SessionsConfig::default());
    let (first, second) = tokio::join!(test.get(id), test.get(id));
    first.rename("by the first".into()).await.unwrap();
    assert_eq!(second.describe().await.unwrap().record.title.as_deref(), Some("by the first"));
    assert_eq!(store.reopenings(), 1, "a log has one writer");
    ledger::check_settled(&store.entries(id));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_on_its_way_out_is_waited_for() {
    let test = TestSessions::new();
    let mut session = test.session().await;
    for round in 0..20 {
        let (closed, back) = tokio::join!(session.close(), test.sessions.get(session.id(), &Viewer::Admin));
        assert_eq!(closed, Ok(()));
        session = match back.unwrap() {
            // It may have been found just before it closed.
            found if found.is_closed() => test.get(session.id()).await,
            found => found,
        };
        session.rename(format!("round {round}").into()).await.expect("whoever got it can use it");
    }
    ledger::check_settled(&test.entries(&session));
}

/// Entries by a short script: `P1` prompted, `S1` started, `T1` text, `E1` ended, `M` a mode between turns.
fn left_behind(script: &str) -> Vec<LogEntry> {
    let entries = script.split_whitespace().enumerate().map(|(at, word)| {
        let (kind, turn) = word.split_at(1);
        let event = match kind {
            "P" => Event::Prompted { prompt: Prompt::text("p"), by: CLIENT },
            "S" => Event::Started,
            "T" => Event::Text("t".into()),
            "E" => Event::Ended(finished()),
            _ => Event::Mode("m".into()),
        };
        let turn = turn.parse().ok().map(TurnId);
        LogEntry { seq: Seq(at as u64 + 1), at: Timestamp(at as u64), turn, event, frame: None }
    });
    entries.collect()
}

fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::new(),
        principal: Principal::new("ann"),
        agent: agent_name(),
        agent_session: None,
        workspace: None,
        model: None,
        mode: None,
        title: None,
        created: Timestamp(1),
        updated: Timestamp(1),
    }
}

#[tokio::test(start_paused = true)]
async fn unfinished_turns_are_found_however_little_of_the_log_is_in_memory() {
    let table: [(&str, &[u64]); 11] = [
        ("", &[]),
        ("M M M M M", &[]),
        ("P1", &[1]),
        ("P1 S1 T1", &[1]),
        ("P1 S1 T1 E1", &[]),
        ("P1 S1 P2 T1 T1 T1 T1 T1 T1", &[1, 2]),
        ("P1 S1 P2 P3 E3 T1 T1 T1 T1 T1 T1", &[1, 2]),
        ("P1 S1 T1 E1 M M M M M M", &[]),
        ("P1 S1 T1 T1 T1 P2", &[1, 2]),
        ("P1 S1 P2 P3 P4 E3 E1 S2 T2 T2 T2 T2", &[2, 4]),
        ("P1 E1 P2 E2 P3 E3 P4", &[4]),
    ];
    for (script, expected) in table {
        for ring_entries in [0, 1, 2, 3, 2_000] {
            let (store, record) = (FaultyStore::default(), record());
            let (id, before) = (record.id, left_behind(script));
            store.put(record, &before);
            let limits = Limits { ring_entries, ..Limits::default() };
            let test = TestSessions::on(store.clone(), limits, SessionsConfig::default());
            let session = test.get(id).await;
            let entries = store.entries(id);
            ledger::check_settled(&entries);
            let added: Vec<u64> = entries[before.len()..].iter().filter_map(|entry| Some(entry.turn?.0)).collect();
            assert_eq!(added, expected, "`{script}` with {ring_entries} entries in memory");
            test.sessions.shutdown().await;
            assert!(session.is_closed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_does_not_reorder_the_log() {
    let (store, record) = (FaultyStore::default(), record());
    let (id, mut entries) = (record.id, left_behind("P1 S1 E1"));
    let tomorrow = Timestamp(Timestamp::now().0 + 86_400_000);
    entries.last_mut().unwrap().at = tomorrow;
    store.put(record, &entries);
    let mut test = TestSessions::on(store.clone(), Limits::default(), SessionsConfig::default());
    let session = test.get(id).await;
    let mut reader = Reader::of(&session, &store).await;
    prompt(&session, "two").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("two").await;
    agent.does([done()]).await;
    reader.until_ended(TurnId(2)).await;
    let entries = store.entries(id);
    ledger::check_settled(&entries);
    assert!(entries[3..].iter().all(|entry| entry.at >= tomorrow));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_leaves_the_memory_and_comes_back_when_asked_for() {
    let mut test = TestSessions::new();
    let session = test.session().await;
    prompt(&session, "one").await;
    let mut agent = test.desk.open("a").await;
    agent.expect_prompt("one").await;
    agent.does([done()]).await;
    // Nothing else is there to wait for: the next thing that happens is the end of the wait.
    agent.expect_close(CloseMode::Release).await;
    let session = test.get(session.id()).await;
    let mut reader = Reader::of(&session, &test.store).await;
    assert_eq!(reader.until_ended(TurnId(1)).await, finished());
    prompt(&session, "two").await;
    test.desk.open("b").await.expect_prompt("two").await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_somebody_watches_stays_in_memory() {
    let limits = Limits::default();
    let test = TestSessions::with(limits);
    let session = test.session().await;
    let reader = Reader::of(&session, &test.store).await;
    for _ in 0..5 {
        tokio::time::sleep(limits.keep).await;
        assert_eq!(session.describe().await.unwrap().followers, 1);
    }
    drop(reader);
    while session.describe().await.is_ok() {
        tokio::time::sleep(limits.keep).await;
    }
    assert!(session.is_closed());
}

#[tokio::test(start_paused = true)]
async fn using_a_session_keeps_it_for_another_while() {
    let limits = Limits::default();
    let test = TestSessions::with(limits);
    let session = test.session().await;
    for _ in 0..5 {
        tokio::time::sleep(limits.keep * 3 / 4).await;
        session.rename("in use".into()).await.expect("it was used within the time");
    }
}

#[tokio::test(start_paused = true)]
async fn another_principals_session_cannot_be_told_from_one_that_does_not_exist() {
    let test = TestSessions::new();
    let session = test.session().await;
    let (ann, bob) = (Viewer::Principal(Principal::new("ann")), Viewer::Principal(Principal::new("bob")));
    assert!(test.sessions.get(session.id(), &ann).await.is_ok());
    assert!(test.sessions.get(session.id(), &Viewer::Admin).await.is_ok());
    let text_of = async |id: SessionId| {
        let error = test.sessions.get(id, &bob).await.expect_err("not for bob");
        assert!(matches!(error, Error::UnknownSession(_)), "{error:?}");
        error.to_string().replace(&id.to_string(), "<id>")
    };
    let unknown = text_of(SessionId::new()).await;
    assert_eq!(text_of(session.id()).await, unknown, "while it is live");
    session.close().await.unwrap();
    assert_eq!(text_of(session.id()).await, unknown, "while it is only stored");
    assert_eq!(test.sessions.list(&bob, 10).await.unwrap(), []);
    assert_eq!(test.sessions.list(&ann, 10).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_table_of_sessions_refuses_the_next_until_one_has_gone() {
    let test = TestSessions::on(FaultyStore::default(), Limits::default(), SessionsConfig { live: 2 });
    let (first, _second) = (test.session().await, test.session().await);
    let refused = test.sessions.create(new_session("ann")).await.map(|session| session.id());
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    first.close().await.unwrap();
    while test.sessions.create(new_session("ann")).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(test.store.list(None, 10).await.unwrap().len(), 3, "a refused session leaves no record");
}

#[tokio::test(start_paused = true)]
async fn a_session_of_an_agent_that_is_not_configured_is_refused_by_name() {
    let test = TestSessions::new();
    let mut new = new_session("ann");
    new.agent = gembridge_core::model::AgentName::new("nobody");
    let refused = test.sessions.create(new).await.map(|session| session.id());
    assert!(matches!(&refused, Err(Error::Invalid(message)) if message.contains("`nobody`")), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn f6_one_guest_cannot_fill_the_table_of_sessions() {
    let TestSessions { sessions, .. } =
        TestSessions::on(FaultyStore::default(), Limits::default(), SessionsConfig { live: 6 });
    let sessions = std::sync::Arc::into_inner(sessions).expect("nobody else has it");
    let is_guest = std::sync::Arc::new(|principal: &Principal| principal.as_str() != "op");
    let sessions = sessions.with_guests(GuestLimits { each: 2, together: 4, is_guest });
    let mut refused = Vec::new();
    for owner in ["ann", "ann", "ann", "bob", "op", "bob", "eve", "op", "op"] {
        refused.extend(sessions.create(new_session(owner)).await.err().map(|error| (owner, error.to_string())));
    }
    let told: Vec<_> = refused.iter().map(|(owner, error)| (*owner, error.split(" is full").next().unwrap())).collect();
    let expected = [
        ("ann", "this key's share of the gateway's table of sessions"),
        ("eve", "the guests' share of the gateway's table of sessions"),
        ("op", "the gateway's table of sessions"),
    ];
    assert_eq!(told, expected);
}
