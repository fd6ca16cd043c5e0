//! Where the agent works.

use std::path::Path;

use serde_json::Value;

use crate::fixture::{Fake, entries, eventually};

/// What `session/new` was given.
fn cwd(said: &str) -> String {
    let given: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
    given["cwd"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[tokio::test]
async fn the_agent_works_in_the_workspace_that_was_named() {
    let fake = Fake::new();
    let adapter = fake.in_workspace(&[]).build().unwrap();
    let reply = adapter.evaluate("session").await.unwrap();
    assert_eq!(Path::new(&cwd(&reply.text)), fake.workspace());
    adapter.close().await;
    assert!(fake.workspace().is_dir(), "what the caller named is the caller's");
}

#[tokio::test]
async fn without_a_workspace_each_session_has_an_empty_private_folder_that_goes_with_it() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut one = adapter.session().await.unwrap();
    let mut other = adapter.session().await.unwrap();
    let first = cwd(&one.evaluate("session").await.unwrap().text);
    let second = cwd(&other.evaluate("session").await.unwrap().text);
    assert_ne!(first, second);
    assert_eq!(entries(Path::new(&first)), Vec::<String>::new());
    drop(one);
    eventually("the folder of an ended session is gone", || (!Path::new(&first).exists()).then_some(())).await;
    assert!(Path::new(&second).is_dir(), "the other session still works in its own");
    drop(other);
    adapter.close().await;
    assert!(!Path::new(&second).exists());
}

#[tokio::test]
async fn an_adapter_that_is_dropped_leaves_no_process_and_no_folder() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--mode", "fork"]).build().unwrap();
    let folder = cwd(&adapter.evaluate("session").await.unwrap().text);
    drop(adapter);
    fake.is_deserted().await;
    let of_the_adapter = Path::new(&folder).parent().unwrap().to_owned();
    eventually("the adapter's folder is gone", || (!of_the_adapter.exists()).then_some(())).await;
}
