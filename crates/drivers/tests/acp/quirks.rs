//! What agents do differently, each under its name.

use gembridge_core::driver::SlashCommands;
use gembridge_core::model::{ClientId, Content, Event, FailureKind, Prompt};
use gembridge_core::session::NewSession;
use gembridge_drivers::profile::Quirk;
use serde_json::Value;

use super::agent_fixture::{Client, ScriptedAgent};

#[tokio::test]
async fn a_mode_update_as_text_becomes_a_mode_and_is_not_shown() {
    let plan = ScriptedAgent::fake(&["--quirk", "mode-update-text"]);
    let fixture = plan.quirks(&[Quirk::ModeUpdateAsText]).start();
    let mut client = fixture.session().await;
    let turned = client.turn("say a ;; mode yolo ;; say b ;; say [MODE_UPDATE] not a mode").await;
    assert_eq!(turned.finished(), "ab[MODE_UPDATE] not a mode");
    let modes: Vec<_> = turned.events().filter(|event| matches!(event, Event::Mode(_))).collect();
    assert_eq!(modes, [&Event::Mode("yolo".into())]);
    assert_eq!(client.handle.describe().await.unwrap().facts.mode.as_deref(), Some("yolo"));
    fixture.end().await;
    let fixture = ScriptedAgent::fake(&["--quirk", "mode-update-text"]).start();
    let unquirked = fixture.session().await.turn("mode yolo").await;
    assert_eq!(unquirked.finished(), "[MODE_UPDATE] yolo", "without the quirk it is text like any other");
    fixture.end().await;
}

/// What the agent got as the text blocks of this prompt.
async fn received(client: &mut Client, blocks: &[&str]) -> Vec<String> {
    let content = blocks.iter().map(|text| Content::text(*text)).chain([Content::text("echo")]).collect();
    let turn = client.handle.prompt(Prompt::new(content), ClientId(1)).await.unwrap().turn;
    let said: Vec<Value> = serde_json::from_str(&client.finish(turn).await.finished()).unwrap();
    let texts = said.iter().map(|block| block["text"].as_str().unwrap().to_owned());
    texts.take(blocks.len()).collect()
}

#[tokio::test]
async fn f13_a_leading_slash_does_not_command_an_agent_without_any_quirk() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    for armed in ["/memory show", "  /init", "\n\t/x"] {
        let [got] = &received(&mut client, &[armed]).await[..] else { panic!() };
        assert!(!got.trim_start().starts_with('/'), "{got:?}");
        assert!(got.ends_with(armed), "nothing is taken away: {got:?}");
    }
    assert_eq!(received(&mut client, &["what is /etc?", "1 / 2"]).await, ["what is /etc?", "1 / 2"]);
    fixture.end().await;
}

#[tokio::test]
async fn the_operators_own_leading_slash_runs() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let new = NewSession { slash: SlashCommands::Run, ..fixture.new_session() };
    let mut client = fixture.session_with(new).await;
    assert_eq!(received(&mut client, &["/memory show"]).await, ["/memory show"]);
    fixture.end().await;
}

#[tokio::test]
async fn an_agent_without_commands_gets_a_leading_slash_unchanged() {
    let fixture = ScriptedAgent::fake(&[]).quirks(&[Quirk::LeadingSlashIsText]).start();
    let mut client = fixture.session().await;
    assert_eq!(received(&mut client, &["/memory show"]).await, ["/memory show"]);
    fixture.end().await;
}

#[tokio::test]
async fn a_thought_without_a_subject_loses_its_empty_markup_only() {
    let fixture = ScriptedAgent::fake(&[]).quirks(&[Quirk::ThoughtSubjectMarkup]).start();
    let turned = fixture.session().await.turn("think ****\\nplain ;; think **Subject**\\ntext ;; say x").await;
    let thoughts: Vec<String> = turned
        .events()
        .filter_map(|event| if let Event::Thought(text) = event { Some(text.to_str().into_owned()) } else { None })
        .collect();
    assert_eq!(thoughts, ["plain", "**Subject**\ntext"]);
    fixture.end().await;
}

#[tokio::test]
async fn an_http_status_as_error_code_is_told_apart_from_an_agents_own_codes() {
    let fixture = ScriptedAgent::fake(&[]).quirks(&[Quirk::HttpStatusAsErrorCode]).start();
    let mut client = fixture.session().await;
    let turned = client.turn("error 429 quota exceeded").await;
    assert!(turned.failed_as(FailureKind::RateLimited).message.contains("quota exceeded"));
    client.turn("error 500 oops").await.failed_as(FailureKind::Refused { code: 500 });
    fixture.end().await;
}

#[tokio::test]
async fn a_tools_name_is_read_from_its_call_id() {
    let fixture = ScriptedAgent::fake(&[]).quirks(&[Quirk::ToolNameInCallId]).start();
    let turned = fixture.session().await.turn("tool read Read it").await;
    let names: Vec<_> = turned
        .events()
        .filter_map(|event| if let Event::ToolCall(call) = event { call.name.clone() } else { None })
        .collect();
    assert!(names.len() == 3 && names.iter().all(|name| &**name == "read"), "{names:?}");
    fixture.end().await;
}

#[tokio::test]
async fn text_that_a_retry_repeats_is_shown_once() {
    let fixture = ScriptedAgent::fake(&[]).quirks(&[Quirk::RetriesRepeatText]).start();
    let turned = fixture
        .session()
        .await
        .turn("say part1 ;; say -part2 ;; sleep 1200 ;; say part1 ;; say -part2 ;; say -end")
        .await;
    assert_eq!(turned.finished(), "part1-part2-end");
    fixture.end().await;
}
