//! Another model, another mode.

use gembridge_core::driver::Change;
use gembridge_core::error::Error;
use gembridge_core::model::{Event, FailureKind};
use gembridge_core::session::NewSession;
use gembridge_drivers::profile::{ApprovalMode, Trust};
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, allow, calling, only_tool_of, refuse, script, turn_answering};

#[tokio::test(flavor = "multi_thread")]
async fn the_next_prompt_goes_to_the_model_that_was_chosen_and_unknown_ones_are_refused_before_it() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    let facts = client.handle.wake().await.unwrap();
    assert_eq!(facts.model.as_deref(), Some("gemini-3.8-flash"), "the pinned model");
    assert!(facts.models.iter().any(|model| &*model.id == "gemini-2.5-pro"), "{:?}", facts.models);
    client.turn("one").await;

    let refused = client.handle.change(Change::Model("not-a-model".into())).await.unwrap_err();
    let Error::Agent(failure) = &refused else { panic!("{refused:?}") };
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(failure.message.contains("`not-a-model`") && failure.message.contains("gemini-2.5-pro"), "{failure}");
    client.turn("two").await;

    let changed = client.handle.change(Change::Model("gemini-2.5-pro".into())).await.unwrap();
    assert_eq!(changed.events, [Event::Model("gemini-2.5-pro".into())]);
    client.turn("three").await;

    let paths: Vec<String> = fixture.api.requests().into_iter().map(|request| request.path).collect();
    let models: Vec<&str> =
        paths.iter().map(|path| path.rsplit('/').next().unwrap().split(':').next().unwrap()).collect();
    assert_eq!(models, ["gemini-3.8-flash", "gemini-3.8-flash", "gemini-2.5-pro"]);

    let mut other =
        fixture.session_with(NewSession { model: Some("gemini-3.5-flash-lite".into()), ..fixture.new_session() }).await;
    fixture.api.forget_requests();
    other.turn("four").await;
    assert!(
        fixture.api.requests()[0].path.contains("gemini-3.5-flash-lite:"),
        "a session may begin with its own model"
    );

    assert!(!facts.models.iter().any(|model| &*model.id == "gemini-2.5-flash"), "{:?}", facts.models);
    let mut unlisted =
        fixture.session_with(NewSession { model: Some("gemini-2.5-flash".into()), ..fixture.new_session() }).await;
    fixture.api.forget_requests();
    unlisted.turn("five").await;
    assert!(
        fixture.api.requests()[0].path.contains("gemini-2.5-flash:"),
        "it is taken, though the agent does not list it"
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_switched_by_us_or_by_the_model_and_never_shows_as_text() {
    let fixture = GeminiAgent::agent().await.start();
    let mut client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let touch = |name: &str| calling("run_shell_command", json!({"command": format!("touch {name}")}));

    client.handle.change(Change::Mode("plan".into())).await.unwrap();
    let turned = turn_answering(&mut client, &touch("planned"), allow).await;
    assert_eq!(turned.text(), "done", "no `[MODE_UPDATE]` in the text");
    assert!(!fixture.workspace().join("planned").exists(), "nothing is done while it plans");

    client.handle.change(Change::Mode("yolo".into())).await.unwrap();
    let turned = turn_answering(&mut client, &touch("unasked"), allow).await;
    assert!(turned.asks.is_empty(), "{:?}", turned.asks);
    assert!(fixture.workspace().join("unasked").exists());
    only_tool_of(&turned);

    client.handle.change(Change::Mode("default".into())).await.unwrap();
    let enters = script(json!([
        [{"call": {"name": "enter_plan_mode", "id": "c1", "args": {"reason": "to think first"}}}],
        [{"text": "planning"}],
    ]));
    let turned = turn_answering(&mut client, &enters, allow).await;
    assert_eq!(turned.finished(), "planning");
    let modes = turned.events.iter().filter_map(|entry| match &entry.event {
        Event::Mode(mode) => Some(mode.as_ref()),
        _ => None,
    });
    assert_eq!(modes.last(), Some("plan"), "{:?}", turned.events);
    assert_eq!(client.handle.describe().await.unwrap().facts.mode.as_deref(), Some("plan"));

    let unknown = client.handle.change(Change::Mode("no-such-mode".into())).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Agent(failure) if matches!(failure.kind, FailureKind::Refused { .. })),
        "{unknown:?}"
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_approval_mode_holds_from_the_first_prompt() {
    let mut plan = GeminiAgent::agent().await;
    plan.plan.setup.approval = ApprovalMode::Yolo;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    assert_eq!(client.handle.wake().await.unwrap().mode.as_deref(), Some("yolo"));
    let touch = calling("run_shell_command", json!({"command": "touch unasked"}));
    let turned = turn_answering(&mut client, &touch, allow).await;
    assert_eq!((turned.finished().as_str(), turned.asks.len()), ("done", 0));
    assert!(fixture.workspace().join("unasked").exists());
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_folder_that_is_not_trusted_there_is_no_privileged_mode() {
    let mut plan = GeminiAgent::agent().await;
    plan.plan.setup.trust = Trust::Untrusted;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    client.handle.wake().await.unwrap();
    for mode in ["yolo", "autoEdit"] {
        let refused = client.handle.change(Change::Mode(mode.into())).await.unwrap_err();
        assert!(refused.to_string().contains("needs an admin key and a trusted folder"), "{refused}");
    }
    let touch = calling("run_shell_command", json!({"command": "touch made"}));
    let turned = turn_answering(&mut client, &touch, refuse).await;
    assert_eq!((turned.finished().as_str(), turned.asks.len()), ("done", 1), "it still asks");
    assert!(!fixture.workspace().join("made").exists());
    fixture.end().await;
}
