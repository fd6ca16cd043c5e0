//! The contract of a store. Every function here runs on every back end.

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer, AnsweredBy, Ask, AskBody, AskId, AskOption, ClientId, Content, Dialect, Event, Failure, FailureKind, Frame,
    Location, Opaque, OptionKind, Outcome, PlanEntry, PlanPriority, PlanStatus, Principal, Prompt, PromptLabel, Seq,
    SessionId, Stop, Subject, Text, Timestamp, ToolCall, ToolCallId, ToolContent, ToolKind, ToolStatus, TurnId, Usage,
};
use gembridge_core::store::{StoreError, TurnStart};

use super::samples::{Backend, SMALL, entry, prompted, record, spoken, turn, turns};

const ALL: Seq = Seq(u64::MAX);

macro_rules! on_every_back_end {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $test() { super::$test(super::Backend::memory()).await; })*
        }
        mod disk {
            use gembridge_store::DiskOptions;
            $(#[tokio::test] async fn $test() {
                super::$test(super::Backend::disk(DiskOptions::default())).await;
            })*
        }
        mod disk_with_small_segments {
            $(#[tokio::test] async fn $test() { super::$test(super::Backend::disk(super::SMALL)).await; })*
        }
    };
}

on_every_back_end![
    entries_come_back_in_order_and_equal,
    every_kind_of_event_comes_back_equal,
    a_read_gives_the_half_open_range_and_keeps_the_limit,
    a_reader_sees_what_was_appended_while_the_log_is_open,
    reopening_gives_the_tail_and_goes_on_where_it_ended,
    reopening_an_empty_log_starts_at_the_beginning,
    turn_starts_are_the_newest_with_the_newest_last,
    a_prompt_that_queues_during_a_turn_starts_its_own_turn,
    order_is_by_number_when_the_clock_jumps,
    numbers_that_do_not_follow_are_refused_and_change_nothing,
    large_frames_come_back_whole,
    an_empty_batch_changes_nothing,
    records_are_listed_newest_change_first_and_by_owner,
    a_record_is_replaced_by_an_update,
    a_deleted_session_is_gone,
    a_writer_of_a_deleted_session_is_told_so,
    an_unknown_session_is_an_error_everywhere,
    a_session_is_created_once_and_has_one_writer,
];

async fn stored(backend: &Backend, id: SessionId) -> Vec<LogEntry> {
    backend.store().read(id, Seq::START, ALL, usize::MAX).await.unwrap()
}

async fn entries_come_back_in_order_and_equal(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    for number in 1..=30 {
        writer.append(&turn(number)).unwrap();
    }
    writer.sync().await.unwrap();
    assert_eq!(stored(&backend, record.id).await, turns(1..=30));
    drop(writer);
    backend.restart();
    assert_eq!(stored(&backend, record.id).await, turns(1..=30));
}

fn one_of_each() -> Vec<Event> {
    let mut call = ToolCall::update(ToolCallId::new("call-1"));
    call.name = Some("shell".into());
    call.kind = Some(ToolKind::Execute);
    call.status = Some(ToolStatus::Completed);
    call.content = Some(vec![
        ToolContent::Content(Content::text("öut")),
        ToolContent::Diff { path: "/a".into(), old: None, new: "neu\n".into() },
        ToolContent::Terminal("t1".into()),
        ToolContent::Other { kind: "x".into(), body: Opaque(Bytes::from_static(b"{\"a\":[1]}")) },
    ]);
    call.locations = Some(vec![Location { path: "/a".into(), line: Some(3) }]);
    call.input = Some(Opaque(Bytes::from_static("{\"command\":\"echo \\\"日本\\\"\"}".as_bytes())));
    call.output = Some(Opaque(Bytes::from_static(b"\xff\xfe not text \x00")));
    let option = AskOption { id: "y".into(), name: "Yes".into(), kind: OptionKind::AllowOnce };
    let body =
        AskBody::Permission { tool: Box::new(call.clone()), options: vec![option], subject: Subject::ClientTool };
    let image = Content::Image { mime: "image/png".into(), data: "AAAA".into(), uri: Some("file:///i".into()) };
    let failure = Failure::new(FailureKind::Refused { code: -32603 }, "it broke").with_stderr("tail".to_owned());
    vec![
        Event::Prompted {
            prompt: Prompt {
                history: Vec::new(),
                content: vec![Content::text("\u{0}\u{1f}\"\\ é中😀"), image.clone()],
                label: Some(PromptLabel { message: "theirs".into(), task: "ours".into(), context: "theirs".into() }),
            },
            by: ClientId(9),
        },
        Event::Started,
        Event::Text("plain".into()),
        Event::Thought(Text::escaped(Bytes::from_static(br"half \ud83d\ude00"))),
        Event::Text("".into()),
        Event::Content(image),
        Event::ToolCall(Box::new(call)),
        Event::Plan(vec![PlanEntry {
            content: "step".into(),
            priority: PlanPriority::High,
            status: PlanStatus::InProgress,
        }]),
        Event::Asked(Box::new(Ask { id: AskId(4), body })),
        Event::Answered { ask: AskId(4), answer: Answer::Option("y".into()), by: AnsweredBy::Policy },
        Event::Usage(Usage { input: Some(u64::MAX), ..Usage::default() }),
        Event::Context { used: 1, size: 2 },
        Event::Mode("plan".into()),
        Event::Options(Opaque(Bytes::from_static(b"[]"))),
        Event::Other { kind: "new_kind".into() },
        Event::AgentReplaced { reason: "it crashed".to_owned() },
        Event::HistoryReplayed { left_out: 2 },
        Event::Ended(Outcome::Interrupted(failure)),
        Event::Ended(Outcome::Finished(Stop::Other("odd".into()))),
    ]
}

async fn every_kind_of_event_comes_back_equal(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    let mut written: Vec<_> = one_of_each().into_iter().zip(1..).map(|(event, seq)| entry(seq, None, event)).collect();
    for (entry, dialect) in written.iter_mut().zip([Dialect::Acp, Dialect::Headless, Dialect::A2a].into_iter().cycle())
    {
        entry.frame = Some(Frame { dialect, bytes: Bytes::from_static("{\"ü\":1}".as_bytes()) });
    }
    for escaped in ["", "plain", r"\u4e16 \ud83d\ude00 \n", "\u{202e}é中😀"] {
        written.push(spoken(written.len() as u64 + 1, 1, escaped));
    }
    writer.append(&written).unwrap();
    drop(writer);
    backend.restart();
    assert_eq!(stored(&backend, record.id).await, written);
}

async fn a_read_gives_the_half_open_range_and_keeps_the_limit(backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&turns(1..=20)).unwrap();
    let numbers = async |after: u64, until: u64, limit: usize| {
        let entries = backend.store().read(record.id, Seq(after), Seq(until), limit).await.unwrap();
        entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(numbers(0, 3, 100).await, [1, 2, 3]);
    assert_eq!(numbers(57, 60, 100).await, [58, 59, 60]);
    assert_eq!(numbers(57, 60, 2).await, [58, 59]);
    assert_eq!(numbers(118, 1_000, 100).await, [119, 120]);
    assert_eq!(numbers(5, 5, 100).await, [0; 0]);
    assert_eq!(numbers(9, 5, 100).await, [0; 0]);
    assert_eq!(numbers(0, 10, 0).await, [0; 0]);
    assert_eq!(numbers(120, u64::MAX, 10).await, [0; 0]);
    assert_eq!(numbers(u64::MAX, u64::MAX, 10).await, [0; 0]);
    for after in 0..120 {
        assert_eq!(numbers(after, u64::MAX, 1).await, [after + 1]);
    }
}

async fn a_reader_sees_what_was_appended_while_the_log_is_open(backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    assert_eq!(stored(&backend, record.id).await, []);
    for number in 1..=12 {
        writer.append(&turn(number)).unwrap();
        assert_eq!(stored(&backend, record.id).await, turns(1..=number));
        let starts = backend.store().turn_starts(record.id, 1).await.unwrap();
        assert_eq!(starts[0].turn, TurnId(number));
        if number % 3 == 0 {
            writer.sync().await.unwrap();
        }
    }
}

async fn reopening_gives_the_tail_and_goes_on_where_it_ended(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&turns(1..=10)).unwrap();
    drop(writer);
    for number in 11..=15 {
        backend.restart();
        let last = (number - 1) * 6;
        let mut reopened = backend.store().reopen(record.id, 4).await.unwrap();
        assert_eq!(reopened.record, record);
        assert_eq!(reopened.last, Seq(last));
        assert_eq!(reopened.last_turn, Some(TurnId(number - 1)));
        assert_eq!(reopened.tail, turn(number - 1)[2..]);
        reopened.writer.append(&turn(number)).unwrap();
        if number % 2 == 0 {
            reopened.writer.sync().await.unwrap();
        }
    }
    backend.restart();
    let reopened = backend.store().reopen(record.id, 1_000).await.unwrap();
    assert_eq!(reopened.tail, turns(1..=15));
}

async fn reopening_an_empty_log_starts_at_the_beginning(mut backend: Backend) {
    let record = record("me", 1);
    drop(backend.store().create(record.clone()).await.unwrap());
    backend.restart();
    let mut reopened = backend.store().reopen(record.id, 10).await.unwrap();
    assert_eq!((reopened.last, reopened.last_turn), (Seq::START, None));
    assert_eq!(reopened.tail, []);
    reopened.writer.append(&turn(1)).unwrap();
    assert_eq!(stored(&backend, record.id).await, turn(1));
}

async fn turn_starts_are_the_newest_with_the_newest_last(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    assert_eq!(backend.store().turn_starts(record.id, 5).await.unwrap(), []);
    writer.append(&turns(1..=20)).unwrap();
    writer.sync().await.unwrap();
    writer.append(&turns(21..=25)).unwrap();
    let expected = |range: std::ops::RangeInclusive<u64>| {
        let start = |turn: u64| TurnStart {
            turn: TurnId(turn),
            after: Seq((turn - 1) * 6),
            at: Timestamp(((turn - 1) * 6 + 1) * 10),
        };
        range.map(start).collect::<Vec<_>>()
    };
    let starts = async |backend: &Backend, turns: usize| backend.store().turn_starts(record.id, turns).await.unwrap();
    for _ in 0..2 {
        assert_eq!(starts(&backend, 1).await, expected(25..=25));
        assert_eq!(starts(&backend, 8).await, expected(18..=25));
        assert_eq!(starts(&backend, 100).await, expected(1..=25));
        assert_eq!(starts(&backend, 0).await, []);
    }
    drop(writer);
    backend.restart();
    assert_eq!(starts(&backend, 8).await, expected(18..=25));
    assert_eq!(starts(&backend, 100).await, expected(1..=25));
}

async fn a_prompt_that_queues_during_a_turn_starts_its_own_turn(backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&[prompted(1, 1), prompted(2, 2), spoken(3, 1, "one"), spoken(4, 2, "two")]).unwrap();
    let starts = backend.store().turn_starts(record.id, 9).await.unwrap();
    let starts: Vec<_> = starts.iter().map(|start| (start.turn.0, start.after.0)).collect();
    assert_eq!(starts, [(1, 0), (2, 1)]);
}

async fn order_is_by_number_when_the_clock_jumps(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    let mut written = turns(1..=4);
    for (entry, at) in written.iter_mut().zip([90_000, 5, 86_400_000, 0, 7].into_iter().cycle()) {
        entry.at = Timestamp(at);
    }
    writer.append(&written).unwrap();
    drop(writer);
    backend.restart();
    assert_eq!(stored(&backend, record.id).await, written);
    assert_eq!(backend.store().turn_starts(record.id, 9).await.unwrap().len(), 4);
}

async fn numbers_that_do_not_follow_are_refused_and_change_nothing(backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&turn(1)).unwrap();
    for wrong in [turn(1), turn(3), vec![entry(7, None, Event::Started), entry(9, None, Event::Started)]] {
        assert!(matches!(writer.append(&wrong), Err(StoreError::Refused(_))));
    }
    writer.append(&turn(2)).unwrap();
    assert_eq!(stored(&backend, record.id).await, turns(1..=2));
}

async fn large_frames_come_back_whole(mut backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    let long = "0123456789abcdef".repeat(5 * 65_536);
    let written = vec![prompted(1, 1), spoken(2, 1, &long), spoken(3, 1, "short"), spoken(4, 1, &long)];
    writer.append(&written).unwrap();
    drop(writer);
    backend.restart();
    let read = stored(&backend, record.id).await;
    assert!(read == written);
    let Event::Text(text) = &read[1].event else { panic!("not a text") };
    assert!(text.range_in(&read[1].frame.as_ref().unwrap().bytes).is_some());
}

async fn an_empty_batch_changes_nothing(backend: Backend) {
    let record = record("me", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&[]).unwrap();
    writer.sync().await.unwrap();
    writer.append(&turn(1)).unwrap();
    writer.append(&[]).unwrap();
    assert_eq!(stored(&backend, record.id).await, turn(1));
}

async fn records_are_listed_newest_change_first_and_by_owner(mut backend: Backend) {
    let records = [record("a", 30), record("b", 10), record("a", 20), record("a", 20)];
    for record in &records {
        drop(backend.store().create(record.clone()).await.unwrap());
    }
    backend.restart();
    let listed = async |principal: Option<&str>, limit: usize| {
        backend.store().list(principal.map(Principal::new), limit).await.unwrap()
    };
    let [first, other, second, third] = records.clone();
    assert_eq!(listed(Some("a"), 9).await, [first.clone(), third.clone(), second.clone()]);
    assert_eq!(listed(Some("a"), 1).await, std::slice::from_ref(&first));
    assert_eq!(listed(None, 9).await, [first, third, second, other]);
    assert_eq!(listed(Some("nobody' OR 1=1 --"), 9).await, []);
}

async fn a_record_is_replaced_by_an_update(mut backend: Backend) {
    let mut record = record("a", 1);
    drop(backend.store().create(record.clone()).await.unwrap());
    record.title = Some("'; DROP TABLE sessions; -- 題".into());
    record.workspace = None;
    record.agent_session = None;
    record.model = Some("m".into());
    record.updated = Timestamp(99);
    backend.store().update(record.clone()).await.unwrap();
    backend.restart();
    assert_eq!(backend.store().record(record.id).await.unwrap(), record);
}

async fn a_deleted_session_is_gone(mut backend: Backend) {
    let (kept, gone) = (record("a", 1), record("a", 2));
    for record in [&kept, &gone] {
        let mut writer = backend.store().create(record.clone()).await.unwrap();
        writer.append(&turns(1..=9)).unwrap();
    }
    backend.store().delete(gone.id).await.unwrap();
    for _ in 0..2 {
        assert_eq!(backend.store().read(gone.id, Seq::START, ALL, 9).await, Err(StoreError::Unknown(gone.id)));
        assert_eq!(backend.store().list(None, 9).await.unwrap(), std::slice::from_ref(&kept));
        assert_eq!(stored(&backend, kept.id).await, turns(1..=9));
        backend.restart();
    }
}

async fn a_writer_of_a_deleted_session_is_told_so(backend: Backend) {
    let record = record("a", 1);
    let mut writer = backend.store().create(record.clone()).await.unwrap();
    writer.append(&turn(1)).unwrap();
    backend.store().delete(record.id).await.unwrap();
    assert_eq!(writer.append(&turn(2)), Err(StoreError::Unknown(record.id)));
}

async fn an_unknown_session_is_an_error_everywhere(backend: Backend) {
    let (store, unknown) = (backend.store(), record("a", 1));
    let error = StoreError::Unknown(unknown.id);
    assert_eq!(store.reopen(unknown.id, 1).await.err(), Some(error.clone()));
    assert_eq!(store.read(unknown.id, Seq::START, ALL, 1).await.err(), Some(error.clone()));
    assert_eq!(store.turn_starts(unknown.id, 1).await.err(), Some(error.clone()));
    assert_eq!(store.record(unknown.id).await.err(), Some(error.clone()));
    assert_eq!(store.update(unknown.clone()).await.err(), Some(error.clone()));
    assert_eq!(store.delete(unknown.id).await.err(), Some(error));
}

async fn a_session_is_created_once_and_has_one_writer(backend: Backend) {
    let record = record("a", 1);
    let writer = backend.store().create(record.clone()).await.unwrap();
    let again = backend.store().create(record.clone()).await;
    assert!(matches!(again, Err(StoreError::Refused(_))));
    let second = backend.store().reopen(record.id, 1).await;
    assert!(matches!(second, Err(StoreError::Refused(_))));
    drop(writer);
    let again = backend.store().create(record.clone()).await;
    assert!(matches!(again, Err(StoreError::Refused(_))));
    assert!(backend.store().reopen(record.id, 1).await.is_ok());
}
