//! What every agent can do.

use gembridge_core::model::{Outcome, Stop};

use super::agent_fixture::ScriptedAgent;

#[tokio::test]
async fn a_prompt_goes_in_and_its_answer_comes_back() {
    let fixture = ScriptedAgent::fake(&["--mode", "ok"]).start();
    let mut client = fixture.session().await;
    let turned = client.turn("say hello ;; say world").await;
    assert_eq!(turned.text(), "helloworld");
    assert_eq!(turned.outcome, Outcome::Finished(Stop::EndTurn));
    fixture.end().await;
}
