//! What every agent can do.

use gembridge_core::model::{Outcome, Stop};

use super::stage::Plan;

#[tokio::test]
async fn a_prompt_goes_in_and_its_answer_comes_back() {
    let stage = Plan::fake(&["--mode", "ok"]).start();
    let mut client = stage.session().await;
    let turned = client.turn("say hello ;; say world").await;
    assert_eq!(turned.text(), "helloworld");
    assert_eq!(turned.outcome, Outcome::Finished(Stop::EndTurn));
    stage.end().await;
}
