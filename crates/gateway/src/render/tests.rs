//! Golden renderings: a list of events and the text that a person sees.

use std::sync::Arc;

use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, AskOption, Content, Failure, FailureKind, Opaque, OptionKind, Outcome, PlanEntry,
    PlanPriority, PlanStatus, Stop, Subject, ToolContent, ToolKind, ToolStatus,
};

use super::*;

fn render(style: Style, events: &[Event]) -> String {
    let mut renderer = Renderer::new(style);
    events.iter().map(|event| renderer.event(event)).collect()
}

fn check(events: &[Event], expected: &str) {
    assert_eq!(render(Style::Plain, events), expected);
}

fn text(text: &str) -> Event {
    Event::Text(text.into())
}

fn thought(text: &str) -> Event {
    Event::Thought(text.into())
}

fn call(id: &str, change: impl FnOnce(&mut ToolCall)) -> ToolCall {
    let mut call = ToolCall::update(ToolCallId::new(id));
    change(&mut call);
    call
}

fn tool(id: &str, change: impl FnOnce(&mut ToolCall)) -> Event {
    Event::ToolCall(Box::new(call(id, change)))
}

fn done() -> Event {
    Event::Ended(Outcome::Finished(Stop::EndTurn))
}

#[test]
fn text_streams_as_it_comes_and_the_turn_ends_on_a_line_of_its_own() {
    check(&[Event::Started, text("Hel"), text("lo\nwor"), text("ld"), done()], "Hello\nworld\n");
    check(&[text("Hello\n"), done(), text("again"), done()], "Hello\nagain\n");
}

#[test]
fn thoughts_are_dimmed_or_marked_and_stand_apart_from_the_answer() {
    let events = [thought("let me "), thought("see"), text("42"), done()];
    check(&events, "(thinking) let me see\n42\n");
    assert_eq!(render(Style::Coloured, &events), "\u{1b}[2mlet me \u{1b}[0m\u{1b}[2msee\u{1b}[0m\n42\n");
}

#[test]
fn a_tool_call_is_two_lines_however_often_it_is_updated() {
    let events = [
        text("I look."),
        tool("1", |call| {
            call.title = Some("ls -F [current working directory /w] (List files)".into());
            call.description = Some("List files".into());
            call.working_dir = Some("/w".into());
            call.status = Some(ToolStatus::Pending);
        }),
        tool("1", |call| call.status = Some(ToolStatus::InProgress)),
        tool("1", |call| {
            call.status = Some(ToolStatus::Completed);
            call.content = Some(vec![ToolContent::Content(Content::text("a\nb\nc\nd\ne\nf\ng\n"))]);
        }),
        tool("1", |call| call.status = Some(ToolStatus::Completed)),
        text("Done."),
        done(),
    ];
    check(
        &events,
        "I look.\n◐ ls -F — List files in /w\n✓ ls -F — List files in /w\n    a\n    b\n    c\n    d\n    e\n    … 2 more lines\nDone.\n",
    );
}

#[test]
fn a_failed_edit_shows_its_cross_and_its_diff() {
    let events = [tool("1", |call| {
        call.kind = Some(ToolKind::Edit);
        call.status = Some(ToolStatus::Failed);
        call.content =
            Some(vec![ToolContent::Diff { path: "/w/a".into(), old: Some("1\n".into()), new: "2\n".into() }]);
    })];
    check(&events, "✗ edit\n    /w/a +1 -1\n    -1\n    +2\n");
}

#[test]
fn a_plan_shows_how_far_it_is() {
    let entry = |content: &str, status| PlanEntry { content: content.into(), priority: PlanPriority::Medium, status };
    let plan = Event::Plan(vec![
        entry("read", PlanStatus::Completed),
        entry("write", PlanStatus::InProgress),
        entry("test", PlanStatus::Pending),
    ]);
    check(&[text("plan:"), plan], "plan:\n  ✓ read\n  ◐ write\n  ○ test\n");
}

#[test]
fn a_turn_that_breaks_says_why_with_the_agents_last_words() {
    let failure =
        Failure::new(FailureKind::Crashed, "agent `x` ended with code 1").with_stderr("trace\nboom".to_owned());
    check(
        &[text("half"), Event::Ended(Outcome::Interrupted(failure))],
        "half\n✗ agent `x` ended with code 1\n    trace\n    boom\n",
    );
    check(&[text("half"), Event::Ended(Outcome::Cancelled)], "half\n· cancelled\n");
    check(&[Event::Ended(Outcome::Finished(Stop::MaxTokens))], "! the answer reached the model's length limit\n");
}

#[test]
fn usage_is_told_once_at_the_end_of_its_turn() {
    let used = |input, output| Event::Usage(Usage { input, output, ..Usage::default() });
    check(
        &[used(Some(10), None), text("x"), used(None, Some(2)), done(), text("y"), done()],
        "x\n· tokens: 10 in · 2 out\ny\n",
    );
}

#[test]
fn what_is_not_text_is_named() {
    let image = Content::Image { mime: "image/png".into(), data: "AAAA".repeat(1024).into(), uri: None };
    check(&[text("see"), Event::Content(image)], "see\n[image image/png, 3 kB]\n");
    let link = Content::Link { uri: "file:///a".into(), name: "a".into(), mime: None };
    check(&[Event::Content(link)], "[a](file:///a)\n");
}

#[test]
fn s16_s22_nothing_of_the_agent_steers_the_terminal() {
    let hostile = "\u{1b}[2J\u{1b}]0;x\u{7}\r\u{9b}31m\u{202e}";
    let name: Arc<str> = hostile.into();
    let ask = permission(hostile);
    let events = [
        text(hostile),
        thought(hostile),
        tool("1", |call| {
            call.title = Some(Arc::clone(&name));
            call.description = Some(Arc::clone(&name));
            call.working_dir = Some(Arc::clone(&name));
            call.status = Some(ToolStatus::Completed);
            call.content = Some(vec![
                ToolContent::Content(Content::text(hostile)),
                ToolContent::Diff { path: Arc::clone(&name), old: Some(hostile.into()), new: hostile.repeat(2).into() },
            ]);
        }),
        Event::Plan(vec![PlanEntry {
            content: Arc::clone(&name),
            priority: PlanPriority::Low,
            status: PlanStatus::Pending,
        }]),
        Event::Content(Content::Link { uri: Arc::clone(&name), name: Arc::clone(&name), mime: None }),
        Event::Mode(Arc::clone(&name)),
        Event::AgentReplaced { reason: hostile.to_owned() },
        Event::Ended(Outcome::Interrupted(Failure::new(FailureKind::Crashed, hostile).with_stderr(hostile.to_owned()))),
        Event::Ended(Outcome::Finished(Stop::Other(name))),
    ];
    let shown = format!("{}{}", render(Style::Plain, &events), ask::question(&ask, Style::Plain));
    let raw: Vec<_> = shown.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
    assert!(raw.is_empty(), "{raw:?} in {shown:?}");
    assert!(shown.contains(r"\u{1b}[2J"), "it is shown instead");
}

fn permission(command: &str) -> Ask {
    let option = |id: &str, name: &str, kind| AskOption { id: id.into(), name: name.into(), kind };
    let tool = call("1", |call| {
        call.kind = Some(ToolKind::Execute);
        call.title = Some(format!("{command} (Clean up)").into());
        call.description = Some("Clean up".into());
        call.working_dir = Some("/w".into());
        call.input = Some(Opaque(serde_json::json!({ "command": command }).to_string().into()));
    });
    let options = vec![
        option("always", "Always", OptionKind::AllowAlways),
        option("once", "Allow", OptionKind::AllowOnce),
        option("odd", "Odd", OptionKind::Unknown),
        option("no", "Reject", OptionKind::RejectOnce),
    ];
    Ask { id: AskId(1), body: AskBody::Permission { tool: Box::new(tool), options, subject: Subject::AgentTool } }
}

#[test]
fn a_permission_question_shows_the_exact_command_and_what_each_answer_means() {
    let expected = "\
? the agent asks to execute:
    rm -rf build
    command: rm -rf build
    what for: Clean up
    in: /w
  1) Always — yes, from now on without asking
  2) Allow — yes, this once
  3) Reject — no
  your choice (number, y or n): ";
    assert_eq!(ask::question(&permission("rm -rf build"), Style::Plain), expected);
}

#[test]
fn a_long_command_is_never_cut_in_silence() {
    let long = format!("echo {}; rm -rf /", "x".repeat(9000));
    let shown = ask::question(&permission(&long), Style::Plain);
    assert!(shown.contains("bytes more that are not shown"), "{shown}");
    assert!(shown.contains("; rm -rf /"), "the title is whole");
}

#[test]
fn an_answer_is_a_number_yes_or_no_and_anything_else_asks_again() {
    let ask = permission("ls");
    let option = |id: &str| Some(Answer::Option(id.into()));
    for (typed, meant) in [
        ("1", option("always")),
        (" 2 ", option("once")),
        ("3", option("no")),
        ("y", option("once")),
        ("Yes", option("once")),
        ("n", option("no")),
        ("", None),
        ("0", None),
        ("4", None),
        ("always", None),
    ] {
        assert_eq!(ask::answer(&ask, typed), meant, "{typed:?}");
    }
}
