//! A prompt and its answer.

use gembridge_sdk::{BuildError, ErrorKind, Phase, Prompt, Stop, ToolStatus, TurnEvent};
use serde_json::json;

use crate::fixture::{Fake, demo};

#[tokio::test]
async fn a_prompt_is_answered_by_the_demo_agent() {
    let adapter = demo().build().unwrap();
    assert_eq!(adapter.name(), "demo_acp");
    let reply = adapter.evaluate("hello").await.unwrap();
    assert!(reply.text.contains("hello"), "{reply:?}");
    assert_eq!(reply.stop, Stop::EndTurn);
    adapter.close().await;
}

#[tokio::test]
async fn text_thoughts_tools_and_tokens_are_in_the_reply() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let script = "think hm ;; say one ;; tool read Look at it => found ;; say two ;; usage";
    let reply = adapter.evaluate(script).await.unwrap();
    assert_eq!(reply.text, "onetwo");
    assert_eq!(reply.thoughts, "hm");
    let [tool] = &reply.tools[..] else { panic!("{:?}", reply.tools) };
    assert_eq!((tool.name.as_str(), tool.status), ("acp:Look at it", ToolStatus::Completed));
    assert!(reply.usage.is_some_and(|usage| usage.input.is_some() && usage.output.is_some()), "{:?}", reply.usage);
    adapter.close().await;
    fake.is_deserted().await;
}

#[tokio::test]
async fn a_stream_tells_what_happens_in_its_order_and_ends_with_the_reply() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut stream = adapter.stream("say one ;; tool read Look => found ;; say two").await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            TurnEvent::Text(text) => told.push(text),
            TurnEvent::Tool(tool) => told.push(format!("{} {:?}", tool.name, tool.status)),
            TurnEvent::Started { .. } => told.push("started".to_owned()),
            _ => {}
        }
    }
    assert_eq!(told.first().map(String::as_str), Some("started"), "{told:?}");
    let place = |wanted: &str| told.iter().position(|told| told == wanted);
    assert!(place("one") < place("acp:Look Completed") && place("acp:Look Completed") < place("two"), "{told:?}");
    assert_eq!(stream.finish().await.unwrap().text, "onetwo");
    adapter.close().await;
}

#[tokio::test]
async fn an_error_of_the_agent_is_an_error_of_the_request() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let error = adapter.evaluate("error 429 slow down").await.unwrap_err();
    assert_eq!(error.phase, Phase::Request);
    assert!(error.message.contains("slow down"), "{error}");
    adapter.close().await;
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_started() {
    let relative = demo().workspace("somewhere").build().unwrap_err();
    assert!(matches!(relative, BuildError::RelativeWorkspace(_)), "{relative}");
    let missing = gembridge_sdk::Adapter::custom("mine", "no-such-program-anywhere")
        .helper_program(crate::fixture::helper())
        .build()
        .unwrap_err();
    assert!(missing.to_string().contains("no-such-program-anywhere"), "{missing}");
}

#[tokio::test]
async fn an_empty_prompt_is_refused() {
    let adapter = demo().build().unwrap();
    let error = adapter.evaluate("").await.unwrap_err();
    assert_eq!((error.phase, error.kind), (Phase::Request, ErrorKind::Invalid));
}

#[tokio::test]
async fn blocks_of_a_prompt_reach_the_agent_in_their_order() {
    let fake = Fake::new();
    let adapter = fake.in_workspace(&[]).build().unwrap();
    let (inside, outside) = (fake.workspace().join("x.rs"), fake.path("y.rs"));
    std::fs::write(&inside, "").unwrap();
    let prompt = Prompt::new("say seen").image("image/png", b"bytes").document("a/notes.md", "words");
    let prompt = prompt.file(&inside).file(&outside);
    adapter.evaluate(prompt).await.unwrap();
    let blocks = fake.received("session/prompt")[0]["params"]["prompt"].clone();
    assert_eq!(blocks[0], json!({"type": "text", "text": "say seen"}));
    assert_eq!(blocks[1], json!({"type": "image", "mimeType": "image/png", "data": "Ynl0ZXM="}));
    assert_eq!(blocks[2]["resource"]["text"], "words");
    assert_eq!(blocks[3]["uri"], format!("file://{}", inside.display()), "{blocks}");
    assert_eq!(blocks[4]["type"], "text", "a file outside of the workspace is only spoken of: {blocks}");
    adapter.close().await;
}

#[tokio::test]
async fn an_image_is_words_for_an_agent_that_takes_none() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--without", "image,embedded"]).build().unwrap();
    let prompt = Prompt::new("say seen").image("image/png", b"bytes").document("notes.md", "the words of it");
    let reply = adapter.evaluate(prompt).await.unwrap();
    assert_eq!(reply.text, "seen");
    let blocks = fake.received("session/prompt")[0]["params"]["prompt"].clone();
    let texts: Vec<&str> = blocks.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(texts[0], "say seen");
    assert_eq!(texts[1], "[An image of the type image/png was attached here; it cannot be shown to you.]");
    assert!(texts[2].contains("notes.md") && texts[2].contains("the words of it"), "{texts:?}");
    assert!(!blocks.to_string().contains("Ynl0ZXM="), "no bytes of it are sent");
    assert!(reply.warnings.iter().any(|warning| warning.contains("takes no images")), "{:?}", reply.warnings);
    adapter.close().await;
}
