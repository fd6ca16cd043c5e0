//! What the agent inherits.

use serde_json::Value;

use crate::fixture::Fake;

fn environment(said: &str) -> Value {
    let told: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
    told["env"].clone()
}

#[tokio::test]
async fn the_environment_is_inherited_and_what_the_caller_names_goes_over_it() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).env("LANG", "sv_SE.UTF-8").env("OF_THE_CALLER", "{braces} stay");
    let adapter = adapter.env_remove("CARGO_PKG_VERSION").build().unwrap();
    let environment = environment(&adapter.evaluate("env").await.unwrap().text);
    // Set by cargo for every test.
    assert_eq!(environment["CARGO_PKG_NAME"], "gembridge-sdk");
    assert_eq!(environment["CARGO_PKG_VERSION"], Value::Null, "what the caller removes does not arrive");
    assert_eq!(environment["LANG"], "sv_SE.UTF-8");
    assert_eq!(environment["OF_THE_CALLER"], "{braces} stay");
    assert_eq!(environment["TERM"], "dumb");
    adapter.close().await;
}

#[tokio::test]
async fn a_cleared_environment_holds_what_is_necessary_and_what_the_caller_names() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).clear_env().env("OF_THE_CALLER", "yes").build().unwrap();
    let environment = environment(&adapter.evaluate("env").await.unwrap().text);
    assert_eq!(environment["CARGO_PKG_NAME"], Value::Null);
    assert_eq!(environment["OF_THE_CALLER"], "yes");
    assert!(environment["PATH"].is_string());
    adapter.close().await;
}
