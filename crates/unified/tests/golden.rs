//! Logs as Rust, and beside them in `golden/` what they fold into: the stream's lines and the whole report.
//!
//! `UPDATE_GOLDEN=1` writes the files anew; read the difference before you commit it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer, AnsweredBy, Ask, AskBody, AskId, AskOption, ClientId, Content, Dialect, Event, Failure, FailureKind, Frame,
    Location, Opaque, OptionKind, Outcome, PlanEntry, PlanPriority, PlanStatus, Prompt, Seq, Stop, Subject, Text,
    Timestamp, ToolCall, ToolCallId, ToolContent, ToolKind, ToolStatus, TurnId, Usage,
};
use gembridge_unified::{Body, Context, Fold, Init, Line, Originals, Report, RunResult};

fn context(originals: Originals) -> Context {
    Context { session_id: "session-1".to_owned(), agent: "demo".to_owned(), model: Some("small".to_owned()), originals }
}

/// Numbers the events of turn 1, ten milliseconds apart.
fn log(events: Vec<Event>) -> Vec<LogEntry> {
    let number = |(event, seq): (Event, u64)| LogEntry {
        seq: Seq(seq),
        at: Timestamp(1_000 + seq * 10),
        turn: Some(TurnId(1)),
        event,
        frame: None,
    };
    events.into_iter().zip(1..).map(number).collect()
}

/// A turn with these events between its beginning and its end.
fn turn(events: Vec<Event>, outcome: Outcome) -> Vec<LogEntry> {
    let prompt = Prompt::text("what is it?");
    let mut all = vec![Event::Prompted { prompt, by: ClientId(1) }, Event::Started];
    all.extend(events);
    all.push(Event::Ended(outcome));
    log(all)
}

fn finished(events: Vec<Event>) -> Vec<LogEntry> {
    turn(events, Outcome::Finished(Stop::EndTurn))
}

fn call(id: &str, change: impl FnOnce(&mut ToolCall)) -> Event {
    let mut call = ToolCall::update(ToolCallId::new(id));
    change(&mut call);
    Event::ToolCall(Box::new(call))
}

fn permission(ask: u64, id: &str, change: impl FnOnce(&mut ToolCall)) -> Event {
    let Event::ToolCall(tool) = call(id, change) else { unreachable!() };
    let option = |id: &str, kind| AskOption { id: id.into(), name: id.into(), kind };
    let options = vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)];
    Event::Asked(Box::new(Ask {
        id: AskId(ask),
        body: AskBody::Permission { tool, options, subject: Subject::AgentTool },
    }))
}

fn answer(ask: u64, option: &str) -> Event {
    let (answer, by) = (Answer::Option(option.into()), AnsweredBy::Client(ClientId(1)));
    Event::Answered { ask: AskId(ask), answer, by }
}

fn output(text: &str) -> Vec<ToolContent> {
    vec![ToolContent::Content(Content::text(text))]
}

#[expect(clippy::disallowed_methods, reason = "the switch of a test is no setting of the product")]
fn update_is_wanted() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn compare(path: &Path, actual: &str) {
    if update_is_wanted() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs", path.display());
}

/// Folds the log both ways, compares both with their files, and gives the lines.
fn check_with(name: &str, entries: &[LogEntry], originals: Originals) -> Vec<Line> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let mut fold = Fold::new(context(originals));
    let lines: Vec<Line> = entries.iter().flat_map(|entry| fold.push(entry)).collect();
    let printed: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    compare(&folder.join("stream.jsonl"), &printed);

    let report = Report::of(context(originals), entries);
    let whole = serde_json::to_string_pretty(&report).unwrap() + "\n";
    compare(&folder.join("report.json"), &whole);

    let read: Vec<Line> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(Report::from_lines(read), report, "folding the stream gives the whole");
    lines
}

fn check(name: &str, entries: &[LogEntry]) -> Vec<Line> {
    check_with(name, entries, Originals::Leave)
}

#[test]
fn thoughts_and_text_are_one_message_that_comes_in_pieces() {
    let usage = Usage { input: Some(10), output: Some(5), cached_read: Some(2), total: Some(15), ..Usage::default() };
    check(
        "text",
        &finished(vec![
            Event::Thought("Let me ".into()),
            Event::Thought("think.".into()),
            Event::Text("It is ".into()),
            Event::Text(Text::escaped(Bytes::from_static(br"\u4e16\n\ud83d\ude00"))),
            Event::Usage(usage),
        ]),
    );
}

#[test]
fn a_tool_is_shown_when_it_runs_and_its_result_when_it_is_done() {
    check(
        "tool",
        &finished(vec![
            Event::Text("I will look.".into()),
            call("c1", |call| {
                call.title = Some("Read a file".into());
                call.kind = Some(ToolKind::Read);
                call.status = Some(ToolStatus::Pending);
            }),
            call("c1", |call| {
                call.name = Some("read_file".into());
                call.input = Some(Opaque(Bytes::from_static(br#"{"file_path":"/a"}"#)));
            }),
            call("c1", |call| call.status = Some(ToolStatus::InProgress)),
            call("c1", |call| {
                call.status = Some(ToolStatus::Completed);
                call.content = Some(output("contents"));
            }),
            Event::Text("It says contents.".into()),
        ]),
    );
}

#[test]
fn tools_that_run_at_once_have_a_result_each() {
    let running = |call: &mut ToolCall| {
        call.title = Some("ls".into());
        call.kind = Some(ToolKind::Execute);
        call.description = Some("List files".into());
        call.working_dir = Some("/w".into());
        call.locations =
            Some(vec![Location { path: "/w/a".into(), line: Some(3) }, Location { path: "/w/b".into(), line: None }]);
        call.status = Some(ToolStatus::InProgress);
    };
    check(
        "parallel",
        &finished(vec![
            call("a", running),
            call("b", |call| call.status = Some(ToolStatus::Pending)),
            call("a", |call| {
                call.status = Some(ToolStatus::Failed);
                call.output = Some(Opaque(Bytes::from_static(br#"{"code":1}"#)));
            }),
            call("b", |call| {
                call.status = Some(ToolStatus::Completed);
                call.output = Some(Opaque(Bytes::from_static(br#""done""#)));
            }),
            call("late", |call| call.status = Some(ToolStatus::Failed)),
            call("a", |call| call.content = Some(output("too late"))),
        ]),
    );
}

#[test]
fn an_allowed_tool_is_shown_with_its_question() {
    let diff = ToolContent::Diff { path: "/a".into(), old: Some("x".into()), new: "y".into() };
    check(
        "allowed",
        &finished(vec![
            permission(1, "edit__1", |call| {
                call.name = Some("edit".into());
                call.status = Some(ToolStatus::Pending);
                call.content = Some(vec![diff]);
            }),
            answer(1, "yes"),
            call("edit__1", |call| call.status = Some(ToolStatus::Completed)),
            Event::Text("Done.".into()),
        ]),
    );
}

#[test]
fn a_refused_tool_that_is_never_heard_of_again_ends_as_an_error() {
    let ask = |ask: u64, id: &str| {
        permission(ask, id, |call| {
            call.name = Some("shell".into());
            call.title = Some("rm -rf /".into());
            call.content = Some(output("rm -rf /"));
        })
    };
    check(
        "refused",
        &finished(vec![
            ask(1, "silent"),
            answer(1, "no"),
            Event::Text("Then not.".into()),
            ask(2, "spoken"),
            answer(2, "no"),
            call("spoken", |call| {
                call.status = Some(ToolStatus::Completed);
                call.content = Some(output("rejected by the user"));
            }),
            ask(3, "last"),
            Event::Answered { ask: AskId(3), answer: Answer::Cancelled, by: AnsweredBy::Timeout },
        ]),
    );
}

#[test]
fn a_cancelled_turn_closes_what_was_open() {
    check(
        "cancelled",
        &turn(
            vec![
                Event::Text("Working".into()),
                call("c1", |call| call.status = Some(ToolStatus::InProgress)),
                call("c2", |call| call.title = Some("announced only".into())),
            ],
            Outcome::Cancelled,
        ),
    );
}

#[test]
fn a_failed_turn_keeps_what_came_and_names_the_failure() {
    let failure = Failure::new(FailureKind::RateLimited, "the provider asks to slow down")
        .with_stderr("secrets that must not be printed".to_owned());
    let lines = check("failed", &turn(vec![Event::Text("Half an ans".into())], Outcome::Interrupted(failure)));
    assert!(!serde_json::to_string(&lines).unwrap().contains("secrets"));
}

#[test]
fn every_kind_of_content_has_a_block() {
    let content = |content: Content| Event::Content(content);
    let prompt = Prompt::new(vec![
        Content::text("look"),
        Content::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None },
        Content::Link { uri: "file:///a".into(), name: "a".into(), mime: None },
        Content::Document { uri: "file:///b".into(), mime: None, text: "bee".into() },
    ]);
    check(
        "content",
        &log(vec![
            Event::Prompted { prompt, by: ClientId(1) },
            Event::Started,
            content(Content::Image { mime: "image/png".into(), data: "".into(), uri: Some("https://x/y.png".into()) }),
            content(Content::Audio { mime: "audio/wav".into(), data: "BBBB".into() }),
            content(Content::Blob { uri: "file:///c".into(), mime: None, data: "CCCC".into() }),
            content(Content::Other { kind: "hologram".into(), body: Opaque(Bytes::from_static(br#"{"z":1}"#)) }),
            call("t", |call| {
                call.status = Some(ToolStatus::Completed);
                call.content = Some(vec![
                    ToolContent::Terminal("term-1".into()),
                    ToolContent::Other { kind: "x".into(), body: Opaque(Bytes::from_static(b"not json")) },
                ]);
            }),
            Event::Ended(Outcome::Finished(Stop::Other("whim".into()))),
        ]),
    );
}

#[test]
fn what_changes_beside_the_messages_is_a_line_of_its_own() {
    check(
        "notices",
        &finished(vec![
            Event::Plan(vec![PlanEntry {
                content: "step".into(),
                priority: PlanPriority::High,
                status: PlanStatus::InProgress,
            }]),
            Event::Mode("plan".into()),
            Event::Model("large".into()),
            Event::Title("A talk".into()),
            Event::AgentReplaced { reason: "it crashed".to_owned() },
            Event::Context { used: 1, size: 2 },
            Event::Other { kind: "news".into() },
            Event::Text("ok".into()),
        ]),
    );
}

#[test]
fn a_prompt_that_waited_stands_before_its_own_answer() {
    let mut entries = log(vec![
        Event::Prompted { prompt: Prompt::text("first"), by: ClientId(1) },
        Event::Started,
        Event::Text("one, ".into()),
        Event::Prompted { prompt: Prompt::text("second"), by: ClientId(2) },
        Event::Prompted { prompt: Prompt::text("third, cancelled in the queue"), by: ClientId(2) },
        Event::Text("still one".into()),
        Event::Ended(Outcome::Finished(Stop::EndTurn)),
        Event::Ended(Outcome::Cancelled),
        Event::Started,
        Event::Text("two".into()),
        Event::Ended(Outcome::Finished(Stop::MaxTokens)),
    ]);
    for (entry, turn) in entries.iter_mut().zip([1, 1, 1, 2, 3, 1, 1, 3, 2, 2, 2]) {
        entry.turn = Some(TurnId(turn));
    }
    check("queued", &entries);
}

#[test]
fn the_frames_of_a_message_are_kept_with_it_when_they_are_wanted() {
    let mut entries = finished(vec![
        Event::Text("hi".into()),
        call("c", |call| call.status = Some(ToolStatus::InProgress)),
        call("c", |call| call.status = Some(ToolStatus::Completed)),
    ]);
    for entry in &mut entries[2..5] {
        let bytes = Bytes::from(format!("{{\"frame\":{}}}", entry.seq.0));
        entry.frame = Some(Frame { dialect: Dialect::Acp, bytes });
    }
    check_with("originals", &entries, Originals::Keep);
}

#[test]
fn the_first_line_says_what_is_talked_to() {
    let line = Line::from(Init {
        session_id: "session-1".to_owned(),
        agent: "demo".to_owned(),
        model: Some("small".to_owned()),
        mode: None,
        cwd: Some("/w".into()),
    });
    assert_eq!(
        serde_json::to_string(&line).unwrap(),
        r#"{"type":"system","subtype":"init","session_id":"session-1","agent":"demo","model":"small","cwd":"/w"}"#
    );
}

#[test]
fn a_run_that_never_had_a_turn_is_a_result_too() {
    let kind = FailureKind::Unavailable { retry_after: Duration::from_secs(3) };
    let line = Line::Result(RunResult::from(&Failure::new(kind, "no agent can be had")));
    assert_eq!(
        serde_json::to_string(&line).unwrap(),
        r#"{"type":"result","subtype":"error","is_error":true,"result":"","stop_reason":null,"duration_ms":0,"usage":{},"session_id":null,"error":{"kind":"unavailable","message":"no agent can be had","retry_after_ms":3000}}"#
    );
}

#[test]
fn a_log_without_an_end_has_no_report() {
    let mut entries = finished(vec![Event::Text("hi".into())]);
    entries.pop();
    assert_eq!(Report::of(context(Originals::Leave), &entries), None);
}

#[test]
fn a_prompt_of_one_text_is_a_plain_string() {
    let report = Report::of(context(Originals::Leave), &finished(vec![])).unwrap();
    assert_eq!(report.messages[0].content, Body::Text("what is it?".to_owned()));
}
