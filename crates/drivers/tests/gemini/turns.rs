//! A turn from prompt to end: text, thoughts, tokens, cancelling, and streams that break.

use crate::agent_fixture::turn_items::Item;
use gembridge_core::model::Outcome;
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, script};

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_brings_thoughts_text_and_the_tokens_it_used() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let turned = client.turn("ping").await;
    assert_eq!(turned.finished(), "You said: ping");

    let prompt = script(json!([[
        {"thought": "**Planning** two words"}, {"thought": "without a subject"}, {"text": "Hello"}, {"text": " world"}
    ]]));
    let turned = client.turn(&prompt).await;
    let fold = turned.fold();
    assert_eq!(
        fold.items(),
        [Item::Thought("**Planning**\ntwo wordswithout a subject".to_owned()), Item::Message("Hello world".to_owned())]
    );
    assert_eq!((fold.usage().input, fold.usage().output), (Some(1000), Some(20)));
    let framed = turned.events.iter().filter(|entry| entry.frame.is_some()).count();
    assert_eq!(framed, 4, "every update comes with the agent's own frame");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_cancelled_mid_stream_ends_once_and_the_session_goes_on() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    client.turn("remember the plum").await.finished();
    let before = fixture.driver.processes();

    let turn = client.prompt(&script(json!([[{"text": "first"}, {"delay_ms": 1}, {"stall": true}]]))).await;
    client.said("first").await;
    client.handle.cancel().await.unwrap();
    let cancelled = client.finish(turn).await;
    assert_eq!((&cancelled.outcome, client.ends_of(turn).await), (&Outcome::Cancelled, 1));

    fixture.api.forget_requests();
    let after = client.turn("what was it?").await;
    assert_eq!(after.text(), "You said: what was it?");
    let body = fixture.api.model_calls()[0].body.to_string();
    assert!(body.contains("remember the plum"), "the session kept its memory: {body}");
    assert_eq!(fixture.driver.processes(), before, "and its process");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_and_is_asked_again_is_shown_once() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    // The pause keeps the reader's own lateness out of what the filter sees as the pause of a retry.
    let prompt = script(json!([{"attempts": [
        [{"text": "one "}, {"text": "two "}, {"delay_ms": 300}, {"end": true}],
        [{"text": "one two th"}, {"text": "ree"}],
    ]}]));
    let turned = client.turn(&prompt).await;
    assert_eq!(turned.finished(), "one two three");
    assert_eq!(fixture.api.model_calls().len(), 2, "it was really asked again");
    fixture.end().await;
}
