//! Prompts that look like commands of the agent.

use gembridge_core::driver::SlashCommands;
use gembridge_core::model::{ClientId, Content, Prompt};
use gembridge_core::session::NewSession;

use super::gemini_fixture::GeminiAgent;

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_prompt_that_looks_like_a_command_reaches_the_model_as_text() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let prompts: [&[&str]; 7] = [
        &["/init"],
        &["  /init now"],
        &["$init"],
        // What the agent trims, and how it joins, is wider than what looks like a blank.
        &["\u{feff}/init"],
        &["", "/init"],
        &[" \n", "\u{a0}$init"],
        &["/", "init"],
    ];
    for blocks in prompts {
        fixture.api.forget_requests();
        let prompt = Prompt::new(blocks.iter().map(|text| Content::text(*text)).collect());
        let turn = client.handle.prompt(prompt, ClientId(1)).await.unwrap().turn;
        let turned = client.finish(turn).await;
        assert!(turned.text().starts_with("You said: "), "{blocks:?}: {}", turned.text());
        let calls = fixture.api.model_calls();
        assert_eq!(calls.len(), 1, "{blocks:?}");
        assert!(calls[0].body["contents"].to_string().contains("init"), "{blocks:?}");
        assert!(!fixture.workspace().join("GEMINI.md").exists(), "{blocks:?} was obeyed");
    }
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_command_runs() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session_with(NewSession { slash: SlashCommands::Run, ..fixture.new_session() }).await;
    client.turn("/init").await;
    assert!(fixture.workspace().join("GEMINI.md").exists());
    assert_eq!(fixture.api.model_calls().len(), 0);
    fixture.end().await;
}
