//! Every kind of update, from the agent's line to the event, with the line itself beside it.

use std::time::Duration;

use crate::agent_fixture::turn_items::{Item, ToolItem};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Content, Event, FailureKind, Outcome, PlanStatus, Stop, ToolCall, ToolContent, ToolKind, ToolStatus, Usage,
};
use serde_json::{Value, json};

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent, Turned};

async fn open() -> (AgentFixture, Client) {
    let fixture = ScriptedAgent::fake(&[]).start();
    let client = fixture.session().await;
    (fixture, client)
}

/// The turn of one script on a fresh agent.
async fn turn(script: &str) -> Turned {
    let (fixture, mut client) = open().await;
    let turned = client.turn(script).await;
    fixture.end().await;
    turned
}

/// The `update` of the line that an entry stands for.
fn update_in(entry: &LogEntry) -> Value {
    let frame = entry.frame.as_ref().expect("the agent sent it");
    let line: Value = serde_json::from_slice(&frame.bytes).unwrap();
    assert_eq!(line["method"], "session/update");
    line["params"]["update"].clone()
}

fn entry(turned: &Turned, wanted: impl Fn(&Event) -> bool) -> &LogEntry {
    let found = turned.events.iter().find(|entry| wanted(&entry.event));
    found.unwrap_or_else(|| panic!("not among {:?}", turned.events().collect::<Vec<_>>()))
}

fn tools(turned: &Turned) -> Vec<ToolItem> {
    let tool = |item: &Item| match item {
        Item::Tool(tool) => Some(tool.clone()),
        _ => None,
    };
    turned.fold().items().iter().filter_map(tool).collect()
}

fn only_tool(turned: &Turned) -> ToolCall {
    let [tool] = &tools(turned)[..] else { panic!("one tool was expected") };
    tool.call.clone()
}

#[tokio::test]
async fn text_and_thought_come_as_they_were_written_and_with_their_lines() {
    let hostile = r#"a\nb "quoted" \ é 😀 "#;
    let turned = turn(&format!("think deep ;; say {hostile}")).await;
    assert_eq!(turned.finished(), "a\nb \"quoted\" \\ é 😀");
    let thought = entry(&turned, |event| matches!(event, Event::Thought(_)));
    assert!(matches!(&thought.event, Event::Thought(text) if text.to_str() == "deep"));
    assert_eq!(update_in(thought)["content"]["text"], "deep");
    let text = entry(&turned, |event| matches!(event, Event::Text(_)));
    assert_eq!(update_in(text)["content"]["text"], "a\nb \"quoted\" \\ é 😀");
}

#[tokio::test]
async fn a_tool_call_is_announced_updated_and_completed() {
    let turned = turn("tool read Read file.txt => the content").await;
    let call = only_tool(&turned);
    assert_eq!((call.kind, call.status), (Some(ToolKind::Read), Some(ToolStatus::Completed)));
    assert_eq!(call.title.as_deref(), Some("Read file.txt"));
    assert_eq!(call.locations.as_ref().unwrap()[0].line, Some(3));
    let Some([ToolContent::Content(Content::Text(text))]) = call.content.as_deref() else { panic!("{call:?}") };
    assert_eq!(text.to_str(), "the content");
    assert_eq!(serde_json::from_slice::<Value>(&call.input.unwrap().0).unwrap(), json!({"title": "Read file.txt"}));
    assert_eq!(serde_json::from_slice::<Value>(&call.output.unwrap().0).unwrap(), json!({"text": "the content"}));
    let steps = turned.events.iter().filter(|entry| matches!(entry.event, Event::ToolCall(_)));
    let statuses: Vec<Value> = steps.map(|entry| update_in(entry)["status"].clone()).collect();
    assert_eq!(statuses, ["pending", "in_progress", "completed"]);
}

#[tokio::test]
async fn a_tool_that_fails_and_an_edit_with_its_diff_say_so() {
    assert_eq!(only_tool(&turn("tool-fail execute Run it").await).status, Some(ToolStatus::Failed));
    let edit = only_tool(&turn("diff src/a.rs old text => new text").await);
    assert_eq!((edit.kind, edit.status), (Some(ToolKind::Edit), Some(ToolStatus::Completed)));
    let Some([ToolContent::Diff { path, old, new }]) = edit.content.as_deref() else { panic!("{edit:?}") };
    assert_eq!(
        (&**path, old.as_ref().unwrap().to_str(), new.to_str()),
        ("src/a.rs", "old text".into(), "new text".into())
    );
}

#[tokio::test]
async fn a_tool_that_was_left_open_does_not_look_as_if_it_still_ran() {
    let raw = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "SESSION",
        "update": {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "half", "status": "in_progress"}}});
    let (fixture, mut client) = open().await;
    client.handle.wake().await.unwrap();
    let session = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    let turned = client.turn(&format!("raw {} ;; error 7 broke", raw.to_string().replace("SESSION", &session))).await;
    turned.failed_as(FailureKind::Refused { code: 7 });
    assert_eq!(only_tool(&turned).status, Some(ToolStatus::Failed));
    fixture.end().await;
}

#[tokio::test]
async fn a_plan_replaces_the_one_before_it() {
    let turned = turn("plan one | two ;; plan A | B | C").await;
    let plans: Vec<_> = turned
        .fold()
        .items()
        .iter()
        .filter_map(|item| if let Item::Plan(plan) = item { Some(plan.clone()) } else { None })
        .collect();
    let [plan] = &plans[..] else { panic!("{plans:?}") };
    let seen: Vec<_> = plan.iter().map(|entry| (&*entry.content, entry.status)).collect();
    assert_eq!(seen, [("A", PlanStatus::Completed), ("B", PlanStatus::InProgress), ("C", PlanStatus::Pending)]);
}

#[tokio::test]
async fn content_of_every_kind_comes_through() {
    let turned = turn("content image ;; content audio ;; content resource ;; content resource_link").await;
    let blocks: Vec<&Content> = turned
        .events()
        .filter_map(|event| if let Event::Content(content) = event { Some(content) } else { None })
        .collect();
    let [
        Content::Image { mime, data, .. },
        Content::Audio { mime: sound, .. },
        Content::Document { uri, text, .. },
        Content::Link { name, .. },
    ] = &blocks[..]
    else {
        panic!("{blocks:?}")
    };
    assert_eq!((&**mime, &**sound, &**uri, &**name), ("image/png", "audio/wav", "file:///notes.txt", "notes.txt"));
    assert!(data.to_str().starts_with("iVBOR"));
    assert_eq!(text.to_str(), "notes");
}

#[tokio::test]
async fn what_no_schema_knows_passes_through_whole() {
    let turned = turn("unknown-update ;; unknown-content ;; notify ;; unknown-stop").await;
    assert_eq!(turned.outcome, Outcome::Finished(Stop::Other("paused_for_tea".into())));
    let report = entry(&turned, |event| matches!(event, Event::Other { kind } if &**kind == "weather_report"));
    let sent = json!({"sessionUpdate": "weather_report", "sky": {"clouds": 3}, "_meta": {"fake": true}});
    assert_eq!(update_in(report), sent);
    let hologram = entry(&turned, |event| matches!(event, Event::Content(_)));
    let Event::Content(Content::Other { kind, body }) = &hologram.event else { panic!("{hologram:?}") };
    assert_eq!(&**kind, "hologram");
    let block = json!({"type": "hologram", "depth": 3, "data": "AAAA"});
    assert_eq!(serde_json::from_slice::<Value>(&body.0).unwrap(), block);
    assert_eq!(update_in(hologram)["content"], block);
    let note = entry(&turned, |event| matches!(event, Event::Other { kind } if &**kind == "_fake/note"));
    let line: Value = serde_json::from_slice(&note.frame.as_ref().unwrap().bytes).unwrap();
    assert_eq!((&line["method"], &line["params"]["text"]), (&json!("_fake/note"), &json!("as told")));
}

#[tokio::test]
async fn facts_of_the_session_become_events_and_are_kept() {
    let (fixture, mut client) = open().await;
    let turned = client.turn("mode plan ;; title A name ;; commands ;; config verbose on ;; usage-update").await;
    turned.finished();
    entry(&turned, |event| matches!(event, Event::Mode(mode) if &**mode == "plan"));
    entry(&turned, |event| matches!(event, Event::Title(title) if &**title == "A name"));
    entry(&turned, |event| matches!(event, Event::Context { used: 1_500, size: 200_000 }));
    let Event::Commands(commands) = &entry(&turned, |event| matches!(event, Event::Commands(_))).event else {
        panic!()
    };
    assert_eq!((&*commands[1].name, commands[1].hint.as_deref()), ("memory", Some("show")));
    let description = client.handle.describe().await.unwrap();
    assert_eq!(description.facts.mode.as_deref(), Some("plan"));
    assert_eq!(description.record.title.as_deref(), Some("A name"));
    let options: Value = serde_json::from_slice(&description.facts.options.unwrap().0).unwrap();
    assert_eq!((&options[0]["id"], &options[0]["currentValue"]), (&json!("verbose"), &json!("on")));
    fixture.end().await;
}

#[tokio::test]
async fn usage_is_read_from_every_place_that_agents_put_it() {
    let whole = Usage {
        input: Some(120),
        output: Some(30),
        thought: Some(8),
        cached_read: Some(11),
        cached_write: Some(2),
        total: Some(158),
        ..Usage::default()
    };
    assert_eq!(*turn("say x ;; usage").await.fold().usage(), whole);
    let quota = Usage { input: Some(120), output: Some(30), ..Usage::default() };
    assert_eq!(*turn("say x ;; usage-quota").await.fold().usage(), quota);
    let chunk = Usage { thought: Some(7), total: Some(150), cached_write: None, ..whole };
    let turned = turn("usage-chunk ;; say x").await;
    assert_eq!(*turned.fold().usage(), chunk);
    assert_eq!(turned.text(), "x", "its empty text shows nothing");
    assert_eq!(*turn("say x").await.fold().usage(), Usage::default(), "what was not reported is not zero");
}

#[tokio::test]
async fn every_stop_reason_has_its_name() {
    for (reason, stop) in
        [("max_tokens", Stop::MaxTokens), ("max_turn_requests", Stop::MaxTurnRequests), ("refusal", Stop::Refusal)]
    {
        assert_eq!(turn(&format!("say x ;; stop {reason}")).await.outcome, Outcome::Finished(stop));
    }
    assert_eq!(turn("say x ;; stop cancelled").await.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn an_error_of_the_agent_ends_the_turn_with_its_code_and_words_and_the_session_lives_on() {
    let (fixture, mut client) = open().await;
    let turned = client.turn("say before ;; error -32603 something broke").await;
    let failure = turned.failed_as(FailureKind::Refused { code: -32603 });
    assert!(failure.message.contains("something broke"), "{failure}");
    assert_eq!(turned.text(), "before");
    assert_eq!(client.turn("say after").await.finished(), "after");
    assert_eq!(fixture.record.starts().len(), 1);
    fixture.end().await;
}

#[tokio::test]
async fn updates_that_trail_the_response_belong_to_the_turn_when_there_is_a_quiet_period() {
    let plan = ScriptedAgent::fake(&[]).limit(|limits| limits.quiet = Duration::from_secs(5));
    let fixture = plan.start();
    let mut client = fixture.session().await;
    let first = client.prompt("say answer- ;; trail 40").await;
    let next = client.prompt("say next").await;
    let turned = client.finish(first).await;
    let trail: Vec<String> = (0..40).map(|number| format!("trail-{number} ")).collect();
    assert_eq!(turned.finished(), format!("answer-{}", trail.concat()));
    assert_eq!(client.finish(next).await.finished(), "next");
    fixture.end().await;
}

#[tokio::test]
async fn without_a_quiet_period_nothing_of_a_turn_comes_after_its_end() {
    let (fixture, mut client) = open().await;
    for _ in 0..20 {
        let turned = client.turn("say answer ;; trail 5").await;
        assert!(matches!(turned.events.last().unwrap().event, Event::Ended(_)));
    }
    // The trails have come by now, or come with this turn: none under a number whose end was told.
    client.turn("say last").await;
    let mut ended = std::collections::BTreeSet::new();
    for entry in client.seen() {
        let Some(turn) = entry.turn else { continue };
        assert!(!ended.contains(&turn), "{:?} comes after the end of its turn", entry.event);
        if matches!(entry.event, Event::Ended(_)) {
            ended.insert(turn);
        }
    }
    fixture.end().await;
}
