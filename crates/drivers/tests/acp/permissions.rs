//! May this tool run? Asked of people, decided by kind, never left open.

use std::time::Duration;

use crate::agent_fixture::turn_items::{Item, ToolItem};
use gembridge_core::error::Error;
use gembridge_core::model::{Answer, AnsweredBy, AskBody, ClientId, Event, OptionKind, Outcome, ToolKind, ToolStatus};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::Quirk;

use super::agent_fixture::{AgentFixture, ScriptedAgent, Turned, eventually};

/// Who decided the questions of a turn, and how.
fn decisions(turned: &Turned) -> Vec<(Answer, AnsweredBy)> {
    let decided = |event: &Event| match event {
        Event::Answered { answer, by, .. } => Some((answer.clone(), *by)),
        _ => None,
    };
    turned.events().filter_map(decided).collect()
}

fn tool(turned: &Turned) -> ToolItem {
    let tools: Vec<ToolItem> = turned
        .fold()
        .items()
        .iter()
        .filter_map(|item| if let Item::Tool(tool) = item { Some(tool.clone()) } else { None })
        .collect();
    assert_eq!(tools.len(), 1, "{tools:?}");
    tools[0].clone()
}

fn soon(policy: PermissionPolicy) -> AgentFixture {
    ScriptedAgent::fake(&[]).policy(policy).limit(|limits| limits.answer = Duration::from_millis(200)).start()
}

#[tokio::test]
async fn s19_the_default_is_to_ask_and_the_answer_is_chosen_by_kind_never_by_position() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission rm -rf build").await;
    let ask = client.asked().await;
    let AskBody::Permission { tool: asked, options, .. } = &ask.body else { panic!("{ask:?}") };
    assert_eq!((asked.title.as_deref(), asked.kind), (Some("rm -rf build"), Some(ToolKind::Execute)));
    assert_eq!(options[0].kind, OptionKind::AllowAlways, "the first one is the widest");
    client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap();
    let turned = client.finish(turn).await;
    assert_eq!(turned.finished(), "permission: allow_once (proceed_once)");
    assert_eq!(decisions(&turned), [(Answer::Option("proceed_once".into()), AnsweredBy::Client(ClientId(1)))]);
    assert_eq!(tool(&turned).call.status, Some(ToolStatus::Completed));
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_person_may_reject_or_give_no_decision() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission touch file").await;
    let ask = client.asked().await;
    client.answer(ask.id, ask.reject()).await.unwrap();
    let turned = client.finish(turn).await;
    assert_eq!(turned.finished(), "permission: reject_once (cancel)");
    assert!(tool(&turned).refused);
    let turn = client.prompt("permission touch file").await;
    let ask = client.asked().await;
    client.answer(ask.id, Answer::Cancelled).await.unwrap();
    assert_eq!(client.finish(turn).await.finished(), "permission: cancelled");
    fixture.end().await;
}

#[tokio::test]
async fn s19_no_answer_in_time_means_no() {
    let fixture = soon(PermissionPolicy::ask());
    let turned = fixture.session().await.turn("permission touch file").await;
    assert_eq!(turned.finished(), "permission: reject_once (cancel)");
    assert_eq!(decisions(&turned), [(Answer::Option("cancel".into()), AnsweredBy::Timeout)]);
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_forged_a_late_and_a_second_answer_are_refused() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission touch file ;; permission touch file").await;
    let ask = client.asked().await;
    for forged in ["proceed_everything", "", "Allow", "allow_once"] {
        let refused = client.answer(ask.id, Answer::Option(forged.into())).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{forged}: {refused:?}");
    }
    client.answer(ask.id, ask.reject()).await.unwrap();
    assert_eq!(client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap_err(), Error::NotAsked);
    let second = client.asked().await;
    assert_ne!(second.id, ask.id);
    client.answer(second.id, second.reject()).await.unwrap();
    client.finish(turn).await.finished();
    assert_eq!(client.answer(second.id, second.allow_once().unwrap()).await.unwrap_err(), Error::NotAsked);
    fixture.end().await;
}

#[tokio::test]
async fn s19_when_only_always_is_offered_nobody_but_a_person_says_yes() {
    let fixture = soon(PermissionPolicy::ask().with_auto([ToolKind::Execute, ToolKind::Other]));
    let turned = fixture.session().await.turn("permission only-always touch file").await;
    assert_eq!(turned.finished(), "permission: cancelled");
    assert_eq!(decisions(&turned), [(Answer::Cancelled, AnsweredBy::Timeout)]);
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_question_without_options_is_cancelled_at_once() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let turned = fixture.session().await.turn("permission no-options touch file").await;
    assert_eq!(turned.finished(), "permission: cancelled");
    assert_eq!(decisions(&turned), [(Answer::Cancelled, AnsweredBy::Policy)]);
    fixture.end().await;
}

#[tokio::test]
async fn s19_an_option_of_an_unknown_kind_is_never_taken() {
    let fixture = soon(PermissionPolicy::ask());
    let mut client = fixture.session().await;
    let turn = client.prompt("permission unknown-kind touch file").await;
    let ask = client.asked().await;
    assert_eq!(ask.allow_once(), None);
    let refused = client.answer(ask.id, Answer::Option("proceed_maybe".into())).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(client.finish(turn).await.finished(), "permission: cancelled");
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_question_in_the_name_of_another_session_is_refused() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let turned = fixture.session().await.turn("permission other-session touch file").await;
    assert_eq!(turned.finished(), "permission: error -32602");
    assert_eq!(decisions(&turned), []);
    fixture.end().await;
}

#[tokio::test]
async fn s19_running_deleting_and_moving_are_never_allowed_unasked() {
    let policy = PermissionPolicy::reject().with_auto([ToolKind::Execute, ToolKind::Delete, ToolKind::Move]);
    let fixture = ScriptedAgent::fake(&[]).policy(policy).start();
    let turned = fixture.session().await.turn("permission touch file").await;
    assert_eq!(turned.finished(), "permission: reject_once (cancel)");
    assert_eq!(decisions(&turned), [(Answer::Option("cancel".into()), AnsweredBy::Policy)]);
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_storm_of_a_thousand_questions_is_answered_to_the_last_one_by_policy() {
    let fixture = ScriptedAgent::fake(&["--mode", "permission-storm:1000"]).policy(PermissionPolicy::reject()).start();
    let turned = fixture.session().await.turn("go").await;
    assert_eq!(turned.finished(), "storm: 0 allowed, 1000 rejected, 0 cancelled, 0 errors");
    assert_eq!(decisions(&turned).len(), 1_000);
    fixture.end().await;
}

#[tokio::test]
async fn s19_of_a_storm_only_a_bounded_number_waits_for_a_person() {
    let fixture =
        ScriptedAgent::fake(&["--mode", "permission-storm:1000"]).limit(|limits| limits.open_asks = 10).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("go").await;
    // All but ten are refused at once; the ten wait.
    let mut answered = 0;
    while answered < 990 {
        answered += usize::from(matches!(client.next().await.event, Event::Answered { by: AnsweredBy::Policy, .. }));
    }
    let open = client.handle.describe().await.unwrap().open_asks;
    assert_eq!(open.len(), 10);
    for ask in open {
        client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap();
    }
    assert_eq!(client.finish(turn).await.finished(), "storm: 10 allowed, 990 rejected, 0 cancelled, 0 errors");
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_larger_storm_than_we_keep_in_mind_still_gets_an_answer_to_each() {
    let fixture = ScriptedAgent::fake(&["--mode", "permission-storm:5000"]).policy(PermissionPolicy::reject()).start();
    let turned = fixture.session().await.turn("go").await;
    let text = turned.finished();
    assert!(text.starts_with("storm: 0 allowed, ") && text.ends_with(", 0 errors"), "{text}");
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_cancel_answers_what_is_open_so_that_the_agent_can_end() {
    let fixture = ScriptedAgent::fake(&["--quirk", "cancel-waits-for-permission"]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission touch file ;; say never").await;
    client.asked().await;
    client.handle.cancel().await.unwrap();
    let turned = client.finish(turn).await;
    assert_eq!(turned.outcome, Outcome::Cancelled);
    assert_eq!(decisions(&turned), [(Answer::Cancelled, AnsweredBy::Cancel)]);
    assert_eq!(client.turn("say next").await.finished(), "next");
    assert_eq!(fixture.record.starts().len(), 1, "it obeyed");
    fixture.end().await;
}

#[tokio::test]
async fn a_question_that_the_agent_takes_back_is_closed_and_answered_as_taken_back() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission withdrawn touch file ;; say on").await;
    let ask = client.asked().await;
    let turned = client.finish(turn).await;
    assert_eq!(turned.finished(), "permission: error -32800on");
    assert_eq!(decisions(&turned), [(Answer::Cancelled, AnsweredBy::Cancel)]);
    assert_eq!(client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap_err(), Error::NotAsked);
    fixture.end().await;
}

#[tokio::test]
async fn a_tool_that_is_first_heard_of_by_its_permission_has_a_record_which_a_refusal_closes() {
    let plan = ScriptedAgent::fake(&["--quirk", "no-tool-call-before-permission"]);
    let fixture = plan
        .quirks(&[Quirk::PermissionWithoutToolCall, Quirk::RefusedToolsStaySilent, Quirk::ToolNameInCallId])
        .start();
    let mut client = fixture.session().await;
    let turn = client.prompt("permission touch file ;; say after").await;
    let announced =
        client.until(|event| if let Event::ToolCall(call) = event { Some((**call).clone()) } else { None }).await;
    assert_eq!((announced.name.as_deref(), announced.status), (Some("run_shell_command"), Some(ToolStatus::Pending)));
    let ask = client.asked().await;
    client.answer(ask.id, ask.reject()).await.unwrap();
    let turned = client.finish(turn).await;
    assert_eq!(turned.finished(), "permission: reject_once (cancel)after");
    let last = turned
        .events()
        .filter_map(|event| if let Event::ToolCall(call) = event { Some(call) } else { None })
        .last()
        .unwrap();
    assert_eq!((&last.id, last.status), (&announced.id, Some(ToolStatus::Failed)), "closed by us: the agent is silent");
    assert!(tool(&turned).refused);
    fixture.end().await;
}

#[tokio::test]
async fn an_elicitation_and_an_extension_request_are_questions_too() {
    use bytes::Bytes;
    use gembridge_core::model::Opaque;

    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("elicit ;; ext").await;
    let form = client.asked().await;
    assert_eq!(form.body, AskBody::Form { message: "What is your name?".into() });
    let filled = Bytes::from_static(br#"{"action":"accept","content":{"name":"Ada"}}"#);
    client.answer(form.id, Answer::Result(Opaque(filled))).await.unwrap();
    let extension = client.asked().await;
    assert_eq!(extension.body, AskBody::Extension { method: "_fake/ext".into() });
    client.answer(extension.id, Answer::Result(Opaque(Bytes::from_static(br#"{"me":true}"#)))).await.unwrap();
    let text = client.finish(turn).await.finished();
    assert_eq!(text, r#"elicit: {"action":"accept","content":{"name":"Ada"}}ext: {"me":true}"#);
    fixture.end().await;
}

#[tokio::test]
async fn questions_that_nobody_can_answer_are_refused_in_the_words_of_their_method() {
    let fixture = ScriptedAgent::fake(&[]).policy(PermissionPolicy::reject()).start();
    let text = fixture.session().await.turn("elicit ;; ext").await.finished();
    assert_eq!(text, r#"elicit: {"action":"cancel"}ext error -32601: method `_fake/ext` is not supported"#);
    fixture.end().await;
}

#[tokio::test]
async fn s19_a_question_between_turns_is_answered_with_no() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    client.turn("say hello").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    // The response ends the turn; the question comes behind it.
    let request = serde_json::json!({"jsonrpc": "2.0", "id": 77, "method": "session/request_permission", "params": {
        "sessionId": *name, "toolCall": {"toolCallId": "late"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}});
    let mut other = fixture.session().await;
    other.turn(&format!("raw {request}")).await.finished();
    let by = client.until(|event| if let Event::Answered { by, .. } = event { Some(*by) } else { None }).await;
    assert_eq!(by, AnsweredBy::Policy);
    let answer = eventually("the answer", || {
        fixture.record.messages().into_iter().find(|message| message["id"] == 77 && message.get("method").is_none())
    })
    .await;
    assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled");
    fixture.end().await;
}
