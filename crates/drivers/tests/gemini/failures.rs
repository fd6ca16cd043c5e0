//! What the model's provider does wrong.

use std::time::Duration;

use gembridge_core::model::FailureKind;
use serde_json::json;

use super::lab::{LabPlan, script};

/// Without the profile's settings the CLI is silent for minutes.
const SOON: Duration = Duration::from_secs(45);

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_provider_are_named_soon_and_the_session_goes_on() {
    let lab = LabPlan::agent().await.start();
    let mut client = lab.session().await;
    client.handle.wake().await.unwrap();
    for (status, kind) in [
        (429, FailureKind::RateLimited),
        (500, FailureKind::Refused { code: 500 }),
        (400, FailureKind::Refused { code: 400 }),
    ] {
        let prompt = script(json!([[{"status": status}]]));
        let turned = tokio::time::timeout(SOON, client.turn(&prompt)).await.unwrap();
        let failure = turned.failed_as(kind);
        assert!(
            failure.message.contains("agent `gemini`") && failure.message.contains(&status.to_string()),
            "{failure}"
        );
        assert_eq!(client.turn("and now?").await.finished(), "You said: and now?", "after {status}");
    }
    assert_eq!(lab.driver.processes().len(), 1, "the agent lived through all of it");
    lab.end().await;
}
