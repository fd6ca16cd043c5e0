//! A2A in either version, over streams. Its clients keep a task instead of a history: of a history they say what is new.

use gembridge_core::test_support::ScriptedAgents;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::api::{Answered, Api, Ask, Called, Failed, FailedKind, Questions, Said};
use super::gateway::Gateway;
use crate::a2a::support::{TestServer, Version, events, state};
use crate::openai::support::http::Stream;

pub struct A2a<const IS_NEW: bool> {
    server: TestServer,
    /// The task of the last answer.
    task: Mutex<Option<Value>>,
}

impl<const IS_NEW: bool> A2a<IS_NEW> {
    const VERSION: Version = if IS_NEW { Version::V10 } else { Version::V03 };

    async fn over(gateway: &Gateway, task: Option<Value>) -> Self {
        Self { server: TestServer::new(gateway).await, task: Mutex::new(task) }
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let is_old = |said: &Said| matches!(said, Said::Assistant(_) | Said::Called(_));
        let last = ask.messages.iter().rposition(is_old);
        let new = &ask.messages[last.map_or(0, |at| at + 1)..];
        let mut message = Self::VERSION.message("m", &new.iter().map(part::<IS_NEW>).collect::<Vec<_>>());
        if let (Some(_), Some(task)) = (last, self.task.lock().await.clone()) {
            message["taskId"] = task;
        }
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "name": name, "parameters": { "type": "object" } });
            message["metadata"] = json!({ "tools": ask.tools.iter().map(tool).collect::<Vec<_>>() });
        }
        self.server.stream(Self::VERSION, message).await
    }

    /// Reads a stream to its end. The call that waits for a decision, if it ends with one.
    async fn read(&self, stream: Stream, answered: &mut Answered) -> Option<Value> {
        let answer = stream.whole().await;
        let only = serde_json::from_str::<Value>(answer.body.trim_start_matches("data: "));
        if let Some(error) = only.ok().filter(|only| only.get("error").is_some()) {
            let is_busy = error["error"].to_string().contains("QUEUE_FULL");
            let kind = if is_busy { FailedKind::Busy } else { FailedKind::Other };
            let told = error["error"]["message"].as_str().unwrap_or_default().to_owned();
            answered.failed = Some(Failed { kind, told });
            return None;
        }
        let mut waiting = None;
        for event in events(Self::VERSION, &answer) {
            if let Some(task) = &event.task {
                *self.task.lock().await = Some(task["id"].clone());
            }
            let Some(status) = event.status else { continue };
            let parts = status["status"]["message"]["parts"].as_array().cloned().unwrap_or_default();
            let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            match status["metadata"]["coderAgent"]["kind"].as_str().expect("a kind") {
                "text-content" => answered.text += &text,
                "thought" => answered.thoughts += parts[0]["data"]["description"].as_str().expect("a thought"),
                "tool-call-confirmation" if parts[0]["data"]["tool"]["runs"] == "client" => {
                    answered.calls.push(called(&parts[0]["data"]["request"]));
                }
                "tool-call-confirmation" => waiting = Some(parts[0]["data"]["request"]["callId"].clone()),
                "state-change" => end(&status, &text, answered),
                _ => {}
            }
        }
        waiting
    }
}

fn end(status: &Value, text: &str, answered: &mut Answered) {
    let finish = match state(status).as_str() {
        "input-required" if answered.calls.is_empty() => "stop",
        "input-required" => "tool_calls",
        "canceled" => "cancelled",
        "failed" => {
            answered.failed = Some(Failed { kind: FailedKind::Other, told: text.to_owned() });
            return;
        }
        _ => return,
    };
    finish.clone_into(&mut answered.finish);
}

fn part<const IS_NEW: bool>(said: &Said) -> Value {
    let version = A2a::<IS_NEW>::VERSION;
    match said {
        Said::User(text) => version.text_part(text),
        Said::Image(data) => version.image_part(data),
        Said::Result { id, text } => version.data_part(&json!({
            "callId": id, "outcome": "inject_result", "functionResponse": { "name": "any", "response": { "output": text } },
        })),
        Said::Assistant(_) | Said::Called(_) => panic!("nothing that an A2A client says"),
    }
}

fn called(request: &Value) -> Called {
    let text = |field: &str| request[field].as_str().expect("text").to_owned();
    Called { id: text("callId"), tool: text("name"), arguments: request["args"].to_string() }
}

impl<const IS_NEW: bool> Api for A2a<IS_NEW> {
    const QUESTIONS: Questions = Questions::ForTheClient;

    async fn new(gateway: &Gateway) -> Self {
        Self::over(gateway, None).await
    }

    async fn reconnect(self, gateway: &Gateway) -> Self {
        Self::over(gateway, self.task.into_inner()).await
    }

    async fn ask(&self, ask: &Ask) -> Answered {
        let mut answered = Answered::default();
        let mut waiting = self.read(self.send(ask).await, &mut answered).await;
        while let Some(call) = waiting {
            let yes = Self::VERSION.data_part(&json!({ "callId": call, "outcome": "proceed_once" }));
            let mut message = Self::VERSION.message("yes", &[yes]);
            message["taskId"] = self.task.lock().await.clone().expect("a task");
            waiting = self.read(self.server.stream(Self::VERSION, message).await, &mut answered).await;
        }
        answered
    }

    async fn ask_until(&self, ask: &Ask, words: &str, then: impl Future<Output = ()>) -> Answered {
        let mut stream = self.send(ask).await;
        stream.until(words).await;
        then.await;
        let mut answered = Answered::default();
        self.read(stream, &mut answered).await;
        answered
    }

    async fn ask_and_cancel(&self, ask: &Ask, agents: &ScriptedAgents) {
        let mut stream = self.send(ask).await;
        let begun = stream.until("\n\n").await.to_owned();
        let first = begun.lines().next().and_then(|line| line.strip_prefix("data: ")).expect("an event");
        let first: Value = serde_json::from_str(first).expect("JSON");
        agents.until_prompted(0).await;
        let id = Self::VERSION.task(&first["result"])["id"].clone();
        let cancel = Self::VERSION.method("tasks/cancel");
        let cancelled = self.server.call(Self::VERSION, cancel, json!({ "id": id })).await;
        assert_eq!(state(&cancelled.expect("the task")), "canceled");
    }
}
