//! Answers of a type.

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{ErrorKind, Phase};
use serde::{Deserialize, Serialize};

use crate::fixture::{Fake, demo};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Review {
    title: String,
    score: u8,
}

fn review(title: &str, score: u8) -> Review {
    Review { title: title.to_owned(), score }
}

#[tokio::test]
async fn an_answer_of_a_type_is_delivered_by_the_hidden_tool() {
    let adapter = demo().build().unwrap();
    let prompt = r#"answer-with structured_output {"title": "fine", "score": 7}"#;
    let answer = adapter.evaluate_as::<Review>(prompt).await.unwrap();
    assert_eq!(answer.value, review("fine", 7));
    assert_eq!(answer.reply.tools, [], "the tool stays hidden");
    adapter.close().await;
}

#[tokio::test]
async fn the_last_valid_answer_counts_and_an_invalid_one_is_told_to_the_agent() {
    let adapter = demo().build().unwrap();
    let prompt = "call structured_output {\"title\": \"first\", \"score\": 1}\n\
                  call structured_output {\"title\": \"wrong\"}\n\
                  call structured_output {\"title\": \"last\", \"score\": 2}";
    assert_eq!(adapter.evaluate_as::<Review>(prompt).await.unwrap().value, review("last", 2));
    adapter.close().await;
}

#[tokio::test]
async fn an_array_is_wrapped_on_its_way_and_unwrapped_here() {
    let adapter = demo().build().unwrap();
    let prompt = r#"answer-with structured_output {"data": [{"title": "a", "score": 1}, {"title": "b", "score": 2}]}"#;
    let answer = adapter.evaluate_as::<Vec<Review>>(prompt).await.unwrap();
    assert_eq!(answer.value, [review("a", 1), review("b", 2)]);
    adapter.close().await;
}

#[tokio::test]
async fn text_that_holds_the_answer_is_taken_as_well() {
    let adapter = demo().build().unwrap();
    let answer = adapter.evaluate_as::<Review>(r#"json {"title": "as text", "score": 3}"#).await.unwrap();
    assert_eq!(answer.value, review("as text", 3));
    adapter.close().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_repaired_in_the_same_session() {
    let adapter = demo().build().unwrap();
    let prompt = "say nothing of use\nnext json {\"title\": \"repaired\", \"score\": 4}";
    let answer = adapter.evaluate_as::<Review>(prompt).await.unwrap();
    assert_eq!(answer.value, review("repaired", 4));
    adapter.close().await;
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error_of_the_response_with_what_was_said() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let error = adapter.evaluate_as::<Review>("say only prose").await.unwrap_err();
    assert_eq!(error.phase, Phase::Response);
    assert!(error.message.starts_with("structured output is required, but"), "{error}");
    assert!(
        matches!(&error.kind, ErrorKind::Output { said } if !said.is_empty() && said.chars().count() <= 2_100),
        "{error:?}"
    );
    assert_eq!(fake.received("session/prompt").len(), 3, "one answer and two repairs");
    adapter.close().await;
}

#[tokio::test]
async fn text_and_typed_answers_share_a_session() {
    let adapter = demo().build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("hello").await.unwrap();
    let answer = session.evaluate_as::<Review>(r#"json {"title": "later", "score": 5}"#).await.unwrap();
    assert_eq!(answer.value, review("later", 5));
    assert_eq!(answer.reply.warnings.len(), 1, "another agent took over: {:?}", answer.reply.warnings);
    let history = session.evaluate("history").await.unwrap();
    assert!(history.text.contains("hello"), "it was told what was said: {}", history.text);
    assert_eq!(history.warnings, Vec::<String>::new());
    adapter.close().await;
}
