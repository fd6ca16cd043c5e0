//! Who decides when the agent asks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gembridge_sdk::{Decision, ErrorKind, PermissionRequest, Permissions, Prompt, TurnEvent};

use crate::fixture::{Fake, pass};

async fn answer(permissions: Permissions, script: &str) -> String {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).permissions(permissions).build().unwrap();
    let reply = adapter.evaluate(script).await.unwrap();
    adapter.close().await;
    reply.text
}

#[tokio::test]
async fn auto_allows_once_by_the_kind_of_the_option() {
    let said = answer(Permissions::Auto, "permission rm -r /tmp/x").await;
    assert!(said.contains("permission: allow_once"), "{said}");
}

#[tokio::test]
async fn auto_never_allows_for_good_or_what_it_does_not_know() {
    for variant in ["only-always", "no-options", "unknown-kind"] {
        let said = answer(Permissions::Auto, &format!("permission {variant} rm")).await;
        assert!(!said.contains("allow"), "{variant}: {said}");
    }
}

#[tokio::test]
async fn deny_refuses_everything() {
    for (script, expected) in [
        ("permission ls", "permission: reject_once"),
        ("permission unknown-kind ls", "permission: "),
        ("permission only-always ls", "permission: cancelled"),
        ("permission no-options ls", "permission: cancelled"),
    ] {
        let said = answer(Permissions::Deny, script).await;
        assert!(said.contains(expected) && !said.contains("allow"), "{script}: {said}");
    }
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).permissions(Permissions::Deny).build().unwrap();
    let mut stream = adapter.stream("permission ls ;; say on").await.unwrap();
    let mut decided = Vec::new();
    while let Some(event) = stream.next().await {
        if let TurnEvent::PermissionDecided { allowed } = event {
            decided.push(allowed);
        }
    }
    assert_eq!(decided, [false], "the stream tells it");
    assert!(stream.finish().await.unwrap().text.ends_with("on"), "the turn goes on");
    adapter.close().await;
}

#[tokio::test]
async fn a_function_of_the_program_is_asked_and_decides() {
    let asked: Arc<Mutex<Vec<PermissionRequest>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let permissions = Permissions::ask(move |request| {
        let decision = if request.title.contains("ls") { Decision::AllowOnce } else { Decision::Reject };
        seen.lock().unwrap().push(request);
        async move { decision }
    });
    let said = answer(permissions, "permission ls ;; permission rm").await;
    assert!(said.contains("permission: allow_once") && said.contains("permission: reject"), "{said}");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().map(|request| request.kind).collect::<Vec<_>>(), ["execute", "execute"]);
    assert!(!asked[0].options.is_empty());
}

#[tokio::test]
async fn an_option_that_was_not_offered_is_a_no() {
    let permissions = Permissions::ask(|_| async { Decision::Option("made-up".to_owned()) });
    let said = answer(permissions, "permission ls").await;
    assert!(said.contains("permission: reject"), "{said}");
}

#[tokio::test]
async fn a_stream_shows_the_question_and_the_decision() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut stream = adapter.stream("permission ls").await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            TurnEvent::Permission(request) => told.push(request.title),
            TurnEvent::PermissionDecided { allowed } => told.push(format!("allowed: {allowed}")),
            _ => {}
        }
    }
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("ls") && told[1] == "allowed: true", "{told:?}");
    stream.finish().await.unwrap();
    adapter.close().await;
}

#[tokio::test]
async fn a_question_that_nobody_decides_is_cancelled_with_its_turn() {
    let fake = Fake::new();
    let undecided = Permissions::ask(|_| std::future::pending());
    let adapter = fake.adapter(&["--quirk", "cancel-waits-for-permission"]).permissions(undecided).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say warm").await.unwrap();
    let minute = Duration::from_mins(1);
    let mut stream = session.stream(Prompt::new("permission ls").within(minute)).unwrap();
    while !matches!(stream.next().await, Some(TurnEvent::Permission(_))) {}
    pass(minute).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Deadline, "{error}");
    assert_eq!(session.evaluate("say on").await.unwrap().text, "on", "the agent got its answer, and obeyed");
    assert_eq!(fake.received("initialize").len(), 1);
    adapter.close().await;
}
