//! Permissions that the agent asks for, decided by the client of the task or by the operator's list.

use std::sync::Arc;

use gembridge_api::a2a::A2aConfig;
use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{Answer, Ask, AskBody, AskId, AskOption, Event, OptionKind, Subject, ToolCall, ToolCallId};
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use super::support::{BOTH, TestServer, Version, events, state, told};
use crate::scenarios::gateway::Gateway;

/// A question about a tool of this name.
fn asks(id: u64, name: &str) -> Signal {
    let option = |id: &str, kind| AskOption { id: id.into(), name: id.into(), kind };
    let options = vec![
        option("once", OptionKind::AllowOnce),
        option("always", OptionKind::AllowAlways),
        option("no", OptionKind::RejectOnce),
    ];
    let mut tool = ToolCall::update(ToolCallId::new(format!("call-{id}")));
    tool.name = Some(name.into());
    tool.title = Some("Run it".into());
    let body = AskBody::Permission { tool: Box::new(tool), options, subject: Subject::AgentTool };
    Signal::Update(Update::ours(Event::Asked(Box::new(Ask { id: AskId(id), body }))))
}

fn decision(version: Version, task: &Value, call: &str, outcome: &str) -> Value {
    let mut message = version.message("d", &[version.data_part(&json!({ "callId": call, "outcome": outcome }))]);
    message["taskId"] = task["id"].clone();
    message
}

#[tokio::test]
async fn a_question_makes_the_task_wait_and_each_outcome_is_an_option() {
    for version in BOTH {
        for (outcome, option) in [("proceed_once", "once"), ("proceed_always", "always"), ("cancel", "no")] {
            let agents = ScriptedAgents::new(|_| vec![vec![asks(1, "run_shell_command")]]);
            let gateway = Gateway::new(&agents);
            let server = TestServer::new(&gateway).await;
            let task = server.send(version, version.text("m", "clean up")).await;
            assert_eq!(state(&task), "input-required");
            let waiting = &task["status"]["message"]["parts"][0]["data"];
            assert_eq!(
                (&waiting["status"], &waiting["request"]["callId"]),
                (&json!("awaiting_approval"), &json!("call-1"))
            );
            assert_eq!(waiting["confirmationDetails"]["outcomes"], json!(["proceed_once", "proceed_always", "cancel"]));
            let (answer, ()) = tokio::join!(
                async { server.stream(version, decision(version, &task, "call-1", outcome)).await.whole().await },
                async {
                    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
                    agents.does(0, [text("done"), done()]).await;
                }
            );
            assert_eq!(agents.answers(0), [(AskId(1), Answer::Option(option.into()))], "{outcome}");
            let events = events(version, &answer);
            assert!(events[0].task.is_some());
            assert_eq!(state(events.last().unwrap().status.as_ref().unwrap()), "input-required");
            assert_eq!(told(&events, "text-content").len(), 1);
        }
    }
}

#[tokio::test]
async fn a_decision_about_nothing_that_waits_is_an_error_and_no_hang() {
    for version in BOTH {
        let agents = ScriptedAgents::new(|_| vec![vec![asks(1, "edit")]]);
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let task = server.send(version, version.text("m", "hi")).await;
        for (call, outcome) in [("call-9", "proceed_once"), ("call-1", "fly")] {
            let params = json!({ "message": decision(version, &task, call, outcome) });
            assert_eq!(server.call(version, version.method("message/send"), params).await.unwrap_err()["code"], -32602);
        }
        let mut mixed = decision(version, &task, "call-1", "cancel");
        mixed["parts"].as_array_mut().unwrap().push(version.text_part("and this"));
        let error =
            server.call(version, version.method("message/send"), json!({ "message": mixed })).await.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert!(agents.answers(0).is_empty());
    }
}

#[tokio::test]
async fn tools_that_the_operator_lists_run_without_a_question_beside_those_that_ask() {
    let agents = ScriptedAgents::new(|_| vec![vec![asks(1, "web_fetch"), asks(2, "edit")]]);
    let gateway = Gateway::new(&agents);
    let config = A2aConfig { auto_approve: Arc::new(["web_fetch".to_owned()]), ..A2aConfig::default() };
    let server = TestServer::with(&gateway, config).await;
    let task = server.send(Version::V03, Version::V03.text("m", "hi")).await;
    let parts = task["status"]["message"]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1, "the client is asked for its own alone");
    assert_eq!(parts[0]["data"]["request"]["callId"], "call-2");
    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("once".into()))]);
}

#[tokio::test]
async fn a_message_instead_of_a_decision_says_no_and_goes_on() {
    let agents = ScriptedAgents::new(|prompted| match prompted.prompt.as_str() {
        "first" => vec![vec![asks(1, "edit")]],
        _ => vec![vec![text("well"), done()]],
    });
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    let task = server.send(Version::V03, Version::V03.text("m", "first")).await;
    let mut other = Version::V03.text("n", "rather this");
    other["taskId"] = task["id"].clone();
    let (task, ()) = tokio::join!(server.send(Version::V03, other), async {
        agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
        agents.does(0, [done()]).await;
    });
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("no".into()))]);
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "well");
}
