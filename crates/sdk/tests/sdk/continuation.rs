//! Rounds that a completion check adds.

use std::time::Duration;

use gembridge_sdk::{Budget, Completion, ErrorKind, Phase, Prompt, TurnEvent};

use crate::fixture::{Fake, PATIENCE, next_text, pass};

#[tokio::test]
async fn the_agent_goes_on_with_feedback_until_the_check_is_content() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let prompt = Prompt::new("say first ;; tool read Look => x ;; usage").until_complete(|reply| {
        if reply.text == "second" { Completion::Done } else { Completion::GoOn("say second ;; usage".to_owned()) }
    });
    let alone = adapter.evaluate("say first ;; usage").await.unwrap().usage.unwrap();
    let reply = adapter.evaluate(prompt).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.rounds, reply.complete), ("second", 2, true));
    assert_eq!(reply.tools, [], "each round begins anew");
    assert_eq!(reply.usage.unwrap().input, alone.input.map(|input| input * 2), "tokens are summed");
    let prompts = fake.received("session/prompt");
    assert_eq!(prompts[1]["params"]["sessionId"], prompts[2]["params"]["sessionId"], "in one session");
    adapter.close().await;
}

#[tokio::test]
async fn there_are_ten_continuations_at_most() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let prompt = Prompt::new("say no").until_complete(|_| Completion::GoOn("say no".to_owned()));
    let reply = adapter.evaluate(prompt).await.unwrap();
    assert_eq!((reply.rounds, reply.complete), (11, false));
    adapter.close().await;
}

#[tokio::test]
async fn without_feedback_or_budget_the_answer_is_returned_as_it_is() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let reply = adapter.evaluate(Prompt::new("say no").until_complete(|_| Completion::Incomplete)).await.unwrap();
    assert_eq!((reply.rounds, reply.complete), (1, false));
    let budget = Budget::tokens(1);
    let prompt = Prompt::new("say no ;; usage").budget(&budget);
    let reply =
        adapter.evaluate(prompt.until_complete(|_| Completion::GoOn("say no ;; usage".to_owned()))).await.unwrap();
    assert_eq!((reply.rounds, reply.complete), (1, false), "nothing is left for a second round");
    adapter.close().await;
}

#[tokio::test]
async fn the_deadline_ends_a_continuation_and_after_it_none_is_begun() {
    let (fake, minute) = (Fake::new(), Duration::from_mins(1));
    let adapter = fake.adapter(&[]).build().unwrap();
    // It passes while the second round runs.
    let going_on = |_: &gembridge_sdk::Reply| Completion::GoOn("say second ;; wait-cancel".to_owned());
    let prompt = Prompt::new("say first").until_complete(going_on).within(minute);
    let mut stream = adapter.stream(prompt).await.unwrap();
    while next_text(&mut stream).await != "second" {}
    pass(minute).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    assert_eq!(fake.received("session/cancel").len(), 1, "the agent was told");

    adapter.close().await;

    // It passes between the last word and the check: what there is, is the answer.
    let adapter = fake.adapter(&[]).quiet_period(PATIENCE).build().unwrap();
    let prompt = Prompt::new("say first ;; trail 1").until_complete(going_on).within(minute / 6);
    let mut stream = adapter.stream(prompt).await.unwrap();
    while !next_text(&mut stream).await.contains("trail-0") {}
    pass(minute / 6).await;
    let reply = stream.finish().await.unwrap();
    assert_eq!((reply.rounds, reply.complete), (1, false), "no round is begun after it");
    adapter.close().await;
}

#[tokio::test]
async fn only_the_first_round_must_say_something() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let check = |reply: &gembridge_sdk::Reply| {
        if reply.rounds == 1 { Completion::GoOn("stop end_turn".to_owned()) } else { Completion::Done }
    };
    let mut stream = adapter.stream(Prompt::new("say a").until_complete(check)).await.unwrap();
    let mut continued = Vec::new();
    while let Some(event) = stream.next().await {
        if let TurnEvent::Continued { round, feedback } = event {
            continued.push((round, feedback));
        }
    }
    assert_eq!(continued, [(2, "stop end_turn".to_owned())]);
    assert_eq!(stream.finish().await.unwrap().rounds, 2);
    let error = adapter.evaluate(Prompt::new("stop end_turn").until_complete(check)).await.unwrap_err();
    assert_eq!((error.phase, error.kind), (Phase::Response, ErrorKind::EmptyResponse));
    adapter.close().await;
}
