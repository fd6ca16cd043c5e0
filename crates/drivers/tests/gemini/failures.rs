//! What the model's provider does wrong.

use gembridge_core::model::FailureKind;
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, script};

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_provider_are_named_soon_and_the_session_goes_on() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    // Without the profile's settings the CLI would ask ten times, and be silent for minutes.
    for (status, kind, attempts) in [
        (429, FailureKind::RateLimited, 2),
        (500, FailureKind::Refused { code: 500 }, 2),
        (400, FailureKind::Refused { code: 400 }, 1),
    ] {
        fixture.api.forget_requests();
        let turned = client.turn(&script(json!([[{"status": status}]]))).await;
        let failure = turned.failed_as(kind);
        assert!(
            failure.message.contains("agent `gemini`") && failure.message.contains(&status.to_string()),
            "{failure}"
        );
        assert_eq!(fixture.api.requests().len(), attempts, "{status}");
        assert_eq!(client.turn("and now?").await.finished(), "You said: and now?", "after {status}");
    }
    assert_eq!(fixture.driver.processes().len(), 1, "the agent lived through all of it");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_loop_that_the_provider_breaks_off_keeps_what_was_done() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let prompt = script(json!([
        [{"text": "looking"}, {"call": {"name": "list_directory", "id": "c1", "args": {"dir_path": fixture.workspace()}}}],
        [{"status": 400}],
    ]));
    let turned = client.turn(&prompt).await;
    turned.failed_as(FailureKind::Refused { code: 400 });
    assert_eq!((turned.text().as_str(), turned.fold().items().len()), ("looking", 2));
    fixture.end().await;
}
