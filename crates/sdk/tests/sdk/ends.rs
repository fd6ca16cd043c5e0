//! How evaluations end: deadlines, the quiet period, budgets, answers without a word, callers that leave.

use std::time::{Duration, Instant};

use gembridge_sdk::{Budget, ErrorKind, Phase, Prompt, Stop, Tool};
use serde_json::{Value, json};

use crate::fixture::{Fake, PATIENCE, demo, eventually, next_text, pass};

/// A time that no test waits for: it is moved.
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_deadline_that_has_passed_is_refused_before_anything_is_started() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let error = adapter.evaluate(Prompt::new("say hi").deadline(Instant::now())).await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline));
    let over = Budget::time(Duration::ZERO);
    let error = adapter.evaluate(Prompt::new("say hi").budget(&over)).await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Budget, &ErrorKind::BudgetExhausted));
    assert_eq!(fake.received("initialize"), Vec::<Value>::new());
}

#[tokio::test]
async fn at_the_deadline_the_agent_is_told_to_stop() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    // The start of the agent is not what is looked at.
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say warm").await.unwrap();
    let mut stream = session.stream(Prompt::new("say begun ;; wait-cancel").within(MINUTE)).unwrap();
    next_text(&mut stream).await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    assert_eq!(fake.received("session/cancel").len(), 1);
    assert_eq!(session.evaluate("say on").await.unwrap().text, "on", "the process that obeyed stays");
    assert_eq!(fake.received("initialize").len(), 1);
    adapter.close().await;
}

#[tokio::test]
async fn an_agent_that_does_not_stop_is_ended_after_the_grace() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--mode", "hang-prompt"]).cancel_grace(Duration::from_millis(100)).build().unwrap();
    let stream = adapter.stream(Prompt::new("say hi").within(MINUTE)).await.unwrap();
    fake.receives("session/prompt").await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    fake.is_deserted().await;
    assert_eq!(fake.received("session/cancel").len(), 1, "it was told first");
    adapter.close().await;
}

#[tokio::test]
async fn the_deadline_of_a_budget_holds_where_the_prompt_has_none() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    adapter.evaluate("say warm").await.unwrap();
    let budget = Budget::unlimited().and_time(MINUTE);
    let mut stream = adapter.stream(Prompt::new("say begun ;; wait-cancel").budget(&budget)).await.unwrap();
    next_text(&mut stream).await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    adapter.close().await;
}

#[tokio::test]
async fn a_turn_that_takes_too_long_ends_without_a_deadline() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).turn_timeout(MINUTE).build().unwrap();
    let mut stream = adapter.stream("say begun ;; wait-cancel").await.unwrap();
    next_text(&mut stream).await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    adapter.close().await;
}

#[tokio::test]
async fn updates_that_trail_the_last_word_belong_to_the_answer() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).quiet_period(PATIENCE).allow_empty_answers().build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("stop end_turn").await.unwrap();
    // The quiet period never ends here: the deadline does, and what was said by then counts.
    let mut stream = session.stream(Prompt::new("say all ;; trail 2").within(MINUTE / 6)).unwrap();
    said_all(&mut stream, "alltrail-0 trail-1 ").await;
    pass(MINUTE / 6).await;
    let reply = stream.finish().await.unwrap();
    assert_eq!(reply.text, "alltrail-0 trail-1 ");
    adapter.close().await;
}

#[tokio::test]
async fn quiet_is_waited_for_half_a_minute_at_most() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).quiet_period(PATIENCE).build().unwrap();
    let mut stream = adapter.stream("say all ;; trail 1").await.unwrap();
    said_all(&mut stream, "alltrail-0 ").await;
    // Far less than the quiet period, and there is no deadline.
    pass(Duration::from_secs(30)).await;
    assert_eq!(stream.finish().await.unwrap().text, "alltrail-0 ");
    adapter.close().await;
}

/// Waits until the stream has told this text, in whatever pieces.
async fn said_all(stream: &mut gembridge_sdk::TurnStream, text: &str) {
    let mut said = String::new();
    while said != text {
        said.push_str(&next_text(stream).await);
        assert!(text.starts_with(&said), "{said}");
    }
}

#[tokio::test]
async fn a_turn_in_which_nothing_came_is_over_at_once() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).quiet_period(PATIENCE).allow_empty_answers().build().unwrap();
    // With a wait for the quiet period the test would not end in time.
    let reply = tokio::time::timeout(PATIENCE / 2, adapter.evaluate("stop end_turn")).await.unwrap().unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("", Stop::EndTurn));
    adapter.close().await;
}

#[tokio::test]
async fn an_answer_without_a_word_is_an_error_of_the_response() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let error = adapter.evaluate("stop end_turn").await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Response, &ErrorKind::EmptyResponse));
    let reply = adapter.evaluate("tool read Look => found").await.unwrap();
    assert_eq!(reply.text, "", "work is an answer");
    adapter.close().await;
}

#[tokio::test]
async fn reasons_to_stop_come_through() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    for (reason, stop) in [
        ("max_tokens", Stop::MaxTokens),
        ("max_turn_requests", Stop::MaxTurnRequests),
        ("refusal", Stop::Refusal),
        ("moon_phase", Stop::Other("moon_phase".to_owned())),
    ] {
        let reply = adapter.evaluate(format!("say x ;; stop {reason}")).await.unwrap();
        assert_eq!(reply.stop, stop);
    }
    let cut = adapter.evaluate(Prompt::new("say one two three ;; wait-cancel").stop_at("two")).await.unwrap();
    assert_eq!((cut.text.as_str(), cut.stop), ("one ", Stop::StopText));
    adapter.close().await;
}

#[tokio::test]
async fn tokens_are_counted_against_a_budget_that_several_prompts_share() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let counted = Budget::unlimited();
    let one = adapter.evaluate(Prompt::new("say a ;; usage").budget(&counted)).await.unwrap().usage.unwrap();
    let tokens = one.input.unwrap() + one.output.unwrap();
    assert_eq!(counted.used_tokens(), tokens);
    let budget = Budget::tokens(tokens * 2);
    for _ in 0..2 {
        adapter.evaluate(Prompt::new("say a ;; usage").budget(&budget)).await.unwrap();
    }
    let error = adapter.evaluate(Prompt::new("say a ;; usage").budget(&budget)).await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Budget, &ErrorKind::BudgetExhausted));
    assert_eq!(budget.used_tokens(), tokens * 2);
    adapter.close().await;
}

#[tokio::test]
async fn what_a_failed_evaluation_used_is_counted_too() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let budget = Budget::unlimited();
    adapter.evaluate(Prompt::new("usage-update ;; usage-chunk ;; error 500 broken").budget(&budget)).await.unwrap_err();
    assert!(budget.used_tokens() > 0);
    adapter.close().await;
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_the_turn() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut stream = adapter.stream("say begun ;; wait-cancel").await.unwrap();
    while !matches!(stream.next().await, Some(gembridge_sdk::TurnEvent::Text(_))) {}
    drop(stream);
    fake.receives("session/cancel").await;
    let evaluation = adapter.evaluate("say begun ;; wait-cancel");
    let left =
        async { eventually("the second prompt", || (fake.received("session/prompt").len() == 2).then_some(())).await };
    tokio::select! {
        _ = evaluation => panic!("it waits"),
        () = left => {}
    }
    eventually("the second cancel", || (fake.received("session/cancel").len() == 2).then_some(())).await;
    adapter.close().await;
}

#[tokio::test]
async fn an_agent_that_dies_is_an_error_with_what_it_said_on_its_standard_error() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let error = adapter.evaluate("say a ;; stderr it hurts ;; exit 3").await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Crashed), "{error}");
    assert!(error.stderr.as_deref().is_some_and(|tail| tail.contains("it hurts")), "{error:?}");
    assert_eq!(adapter.evaluate("say again").await.unwrap().text, "again", "the next prompt starts another");
    adapter.close().await;
}

#[tokio::test]
async fn an_adapter_may_be_closed_twice_and_answers_nothing_afterwards() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    adapter.evaluate("say hi").await.unwrap();
    adapter.clone().close().await;
    adapter.clone().close().await;
    fake.is_deserted().await;
    let error = adapter.evaluate("say hi").await.unwrap_err();
    assert_eq!((error.phase, error.kind), (Phase::Request, ErrorKind::Closed));
    fake.adapter(&[]).build().unwrap().close().await;
}

#[tokio::test]
async fn a_deadline_ends_a_function_that_takes_too_long_and_the_turn_with_it() {
    let called = std::sync::Arc::new(tokio::sync::Notify::new());
    let calling = std::sync::Arc::clone(&called);
    let wait = Tool::with_schema("wait", "Waits", &json!({"type": "object"}), move |_| {
        calling.notify_one();
        std::future::pending()
    });
    let adapter = demo().tool(wait).build().unwrap();
    adapter.evaluate("hello").await.unwrap();
    let stream = adapter.stream(Prompt::new("call wait {}").within(MINUTE)).await.unwrap();
    called.notified().await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    assert!(adapter.evaluate("hello").await.is_ok());
    adapter.close().await;
}

#[tokio::test]
async fn a_deadline_counts_while_the_agent_starts() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--mode", "hang-init"]).build().unwrap();
    let stream = adapter.stream(Prompt::new("say hi").within(MINUTE)).await.unwrap();
    fake.receives("initialize").await;
    pass(MINUTE).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    adapter.close().await;
    fake.is_deserted().await;
}
