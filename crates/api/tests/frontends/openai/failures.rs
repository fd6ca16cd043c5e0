//! What a client sees when something breaks.

use std::time::Duration;

use gembridge_core::driver::{AgentStop, Signal};
use gembridge_core::model::{
    Ask, AskBody, AskId, AskOption, Event, Failure, FailureKind, OptionKind, Stop, Subject, ToolCall, ToolCallId,
    ToolKind,
};
use serde_json::{Value, json};

use crate::openai::support::server::{TestServer, chat, chat_with};
use crate::openai::support::{stopped, text, update};
use gembridge_core::test_support::ScriptedAgents;

fn failing(kind: FailureKind) -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(move |_| {
        let failure = Failure::new(kind, "what happened and the way out").with_stderr("secret prompt".into());
        vec![vec![Signal::Failed(failure)]]
    })
}

#[tokio::test]
async fn a_failure_before_the_first_event_is_a_status() {
    let minute = Duration::from_mins(1);
    for (kind, status, code) in [
        (FailureKind::Refused { code: 1 }, 502, "agent_error"),
        (FailureKind::Crashed, 502, "agent_error"),
        (FailureKind::RateLimited, 429, "provider_rate_limit"),
        (FailureKind::TimedOut, 504, "timeout"),
        (FailureKind::Unavailable { retry_after: minute }, 503, "unavailable"),
        (FailureKind::Internal, 500, "internal_error"),
    ] {
        let server = TestServer::new(&failing(kind)).await;
        for stream in [false, true] {
            let request = chat_with(&[("user", "hi")], json!({"stream": stream}));
            let answer = server.stream(&request).await.whole().await;
            assert_eq!(answer.status, status, "{kind:?}");
            let error = &answer.json()["error"];
            assert_eq!(error["code"], code, "{kind:?}");
            assert_eq!(error["message"], "what happened and the way out");
            assert!(error["request_id"].as_str().is_some_and(|id| !id.is_empty()));
            assert!(!answer.body.contains("secret"), "standard error stays here");
            if let FailureKind::Unavailable { .. } = kind {
                assert_eq!(answer.header("retry-after"), Some("60"));
            }
        }
    }
}

/// The first agents die at this prompt without a word.
fn dying(agents: usize) -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(move |scene| {
        if scene.agent < agents && scene.prompt.ends_with("two") {
            return vec![vec![Signal::Lost(Failure::new(FailureKind::Crashed, "killed by signal 9"))]];
        }
        vec![vec![text("fine"), stopped(Stop::EndTurn)]]
    })
}

#[tokio::test]
async fn an_agent_that_dies_before_its_first_event_is_replaced_once() {
    let request =
        |stream: bool| chat_with(&[("user", "one"), ("assistant", "fine"), ("user", "two")], json!({"stream": stream}));
    for stream in [false, true] {
        let agents = dying(1);
        let server = TestServer::new(&agents).await;
        let first = server.ask(&chat(&[("user", "one")])).await;
        let second = server.ask(&request(stream)).await;
        assert_eq!((second.status, agents.opened()), (200, 2), "{}", second.body);
        assert_eq!(second.header("x-session-id"), first.header("x-session-id"));
        assert_eq!(agents.prompts(1), ["[User]\none\n\n[Assistant]\nfine\n\n[User]\ntwo"]);
        // The one after it is an agent that knows everything.
        let third = [("user", "one"), ("assistant", "fine"), ("user", "two"), ("assistant", "fine"), ("user", "three")];
        assert_eq!(server.ask(&chat(&third)).await.text(), "fine");
        assert_eq!(agents.prompts(1)[1..], ["three"]);

        let agents = dying(usize::MAX);
        let server = TestServer::new(&agents).await;
        let dead = server.ask(&request(stream)).await;
        assert_eq!((dead.status, agents.opened()), (502, 2), "{}", dead.body);
        assert_eq!(dead.json()["error"]["code"], "agent_error");
    }
}

#[tokio::test]
async fn news_of_the_session_are_no_first_event() {
    let agents = ScriptedAgents::new(|_| {
        let news = [Event::Commands([].into()), Event::Title("a title".into()), Event::Mode("plan".into())];
        let failure = Failure::new(FailureKind::RateLimited, "slow down");
        vec![news.into_iter().map(update).collect(), vec![Signal::Failed(failure)]]
    });
    let server = TestServer::new(&agents).await;
    let answer = server.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await.whole().await;
    assert_eq!(answer.status, 429, "{}", answer.body);
}

#[tokio::test]
async fn a_failure_to_open_the_agent_is_a_status() {
    let agents = ScriptedAgents::new(|_| vec![]);
    agents.refuse_next(Failure::new(FailureKind::NeedsLogin, "log in first"));
    let server = TestServer::new(&agents).await;
    let answer = server.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await.whole().await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.json()["error"]["message"], "log in first");
}

#[tokio::test]
async fn r1_a_failure_in_the_middle_is_an_event_after_what_came_before() {
    let agents = ScriptedAgents::new(|_| {
        let lost = Signal::Lost(Failure::new(FailureKind::Crashed, "the agent ended with exit code 3"));
        vec![vec![text("a")], vec![text("b")], vec![text("c")], vec![lost]]
    });
    let server = TestServer::new(&agents).await;
    let answer = server.stream(&chat_with(&[("user", "hi")], json!({"stream": true}))).await.whole().await;
    assert_eq!(answer.status, 200);
    let events = answer.events();
    let (last, chunks) = events.split_last().unwrap();
    let texts: String = chunks
        .iter()
        .map(|chunk| serde_json::from_str::<Value>(chunk).unwrap())
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(texts, "abc");
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "agent_error");
    assert_eq!(error["error"]["message"], "the agent ended with exit code 3");
    assert!(!answer.body.contains("[DONE]"), "a broken stream does not end well");
    // Without streaming the whole is a status.
    assert_eq!(server.ask(&chat(&[("user", "hi")])).await.status, 502);
}

#[tokio::test]
async fn the_ways_in_which_an_agent_stops_have_their_reasons() {
    for (stop, reason) in [
        (Stop::EndTurn, "stop"),
        (Stop::MaxTokens, "length"),
        (Stop::MaxTurnRequests, "length"),
        (Stop::Refusal, "content_filter"),
        (Stop::Other("because".into()), "stop"),
    ] {
        let shown = stop.clone();
        let agents = ScriptedAgents::new(move |_| vec![vec![text("x"), stopped(stop.clone())]]);
        let server = TestServer::new(&agents).await;
        assert_eq!(server.ask(&chat(&[("user", "hi")])).await.finish(), reason, "{shown:?}");
    }
}

#[tokio::test]
async fn one_failure_among_several_answers_fails_the_request() {
    let agents = ScriptedAgents::new(|scene| match scene.agent {
        1 => vec![vec![Signal::Failed(Failure::new(FailureKind::Refused { code: 1 }, "not me"))]],
        _ => vec![],
    });
    let server = TestServer::new(&agents).await;
    let answer = server.ask(&chat_with(&[("user", "hi")], json!({"n": 2}))).await;
    assert_eq!(answer.status, 502);
    agents.until_cancelled(0).await;
}

/// The agent asks for a tool of its own; these servers refuse it.
fn wanting_a_shell() -> Signal {
    let mut tool = ToolCall::update(ToolCallId::new("c1"));
    (tool.name, tool.kind) = (Some("run_shell_command".into()), Some(ToolKind::Execute));
    let option = |id: &str, kind| AskOption { id: id.into(), name: id.into(), kind };
    let options = vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)];
    let body = AskBody::Permission { tool: Box::new(tool), options, subject: Subject::AgentTool };
    update(Event::Asked(Box::new(Ask { id: AskId(1), body })))
}

#[tokio::test]
async fn an_agent_that_ends_over_a_refused_tool_has_not_answered() {
    for end in [stopped(Stop::EndTurn), Signal::Done { stop: AgentStop::Cancelled, usage: None }] {
        let server = TestServer::new(&ScriptedAgents::new({
            let end = end.clone();
            move |_| vec![vec![text("let me see"), wanting_a_shell(), end.clone()]]
        }))
        .await;
        let answer = server.stream(&chat(&[("user", "hi")])).await.whole().await;
        let choice = &answer.json()["choices"][0];
        assert_eq!(choice["finish_reason"], "content_filter", "{}", answer.body);
        assert_eq!(choice["message"]["content"], "let me see");
        let refusal = choice["message"]["refusal"].as_str().unwrap();
        assert!(refusal.contains("`run_shell_command`, which was not allowed"), "{refusal}");
    }
}

#[tokio::test]
async fn an_agent_that_goes_on_without_a_refused_tool_has_answered() {
    let server = TestServer::new(&ScriptedAgents::new(|_| {
        vec![vec![wanting_a_shell(), text("then without"), stopped(Stop::EndTurn)]]
    }))
    .await;
    let answer = server.stream(&chat(&[("user", "hi")])).await.whole().await;
    let choice = &answer.json()["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["refusal"]), (&json!("stop"), &Value::Null));
    assert_eq!(choice["message"]["content"], "then without");
}
