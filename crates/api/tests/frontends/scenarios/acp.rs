//! ACP over WebSocket. Its clients keep a session instead of a history: of a history they say what is new.

use std::sync::Arc;

use gembridge_core::model::AgentName;
use gembridge_core::test_support::ScriptedAgents;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::api::{Answered, Api, Ask, Failed, FailedKind, Questions, Said};
use super::gateway::{AGENT, Gateway};
use crate::acp::support::client::Client;
use crate::acp::support::server::{ServerSetup, TestServer};

pub struct Acp {
    server: TestServer,
    /// The session of the last answer.
    session: Mutex<Option<String>>,
}

impl Acp {
    fn over(gateway: &Gateway, session: Option<String>) -> Self {
        let (sessions, catalog) = (Arc::clone(&gateway.sessions), Arc::clone(&gateway.catalog));
        let server = TestServer::over(sessions, catalog, AgentName::new(AGENT), ServerSetup::default());
        Self { server, session: Mutex::new(session) }
    }

    /// A client with the prompt on its way: its session, and the id of its request.
    async fn prompt(&self, ask: &Ask) -> (Client, String, u64) {
        let mut client = self.server.client().await;
        let known = self.session.lock().await.clone();
        let goes_on = ask.messages.iter().any(|said| matches!(said, Said::Assistant(_)));
        let session = match known.filter(|_| goes_on) {
            Some(session) => {
                let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
                client.call("session/resume", params).await.expect("the session is there");
                session
            }
            None => client.new_session().await,
        };
        let is_old = |said: &Said| matches!(said, Said::Assistant(_));
        let new = ask.messages.iter().rposition(is_old).map_or(0, |at| at + 1);
        let blocks: Vec<Value> = ask.messages[new..].iter().map(block).collect();
        let id = client.request("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await;
        (client, session, id)
    }

    /// Reads on until what comes is the last for the caller.
    async fn read(&self, client: &mut Client, request: u64, answered: &mut Answered, words: Option<&str>) {
        while words.is_none_or(|words| !answered.text.contains(words)) {
            let message = client.next().await;
            if message["method"] == "session/request_permission" {
                let outcome = json!({ "outcome": "selected", "optionId": "yes" });
                let result = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "outcome": outcome } });
                client.send(&result).await;
            } else if message["id"] == request {
                return end(&message, answered);
            }
            let update = &message["params"]["update"];
            let text = update["content"]["text"].as_str().unwrap_or_default();
            match update["sessionUpdate"].as_str() {
                Some("agent_message_chunk") => answered.text += text,
                Some("agent_thought_chunk") => answered.thoughts += text,
                _ => {}
            }
        }
    }
}

fn block(said: &Said) -> Value {
    match said {
        Said::User(text) => json!({ "type": "text", "text": text }),
        Said::Image(data) => json!({ "type": "image", "mimeType": "image/png", "data": data }),
        Said::Assistant(_) | Said::Called(_) | Said::Result { .. } => panic!("nothing that an ACP client says"),
    }
}

fn end(message: &Value, answered: &mut Answered) {
    if let Some(told) = message["error"]["message"].as_str() {
        let is_busy = message["error"]["data"]["code"] == "queue_full";
        let kind = if is_busy { FailedKind::Busy } else { FailedKind::Other };
        answered.failed = Some(Failed { kind, told: told.to_owned() });
        return;
    }
    let reason = message["result"]["stopReason"].as_str().expect("a reason");
    answered.finish = reason.replace("end_turn", "stop");
}

impl Api for Acp {
    const QUESTIONS: Questions = Questions::ForTheClient;

    async fn new(gateway: &Gateway) -> Self {
        Self::over(gateway, None)
    }

    async fn reconnect(self, gateway: &Gateway) -> Self {
        Self::over(gateway, self.session.into_inner())
    }

    async fn ask(&self, ask: &Ask) -> Answered {
        let (mut client, session, request) = self.prompt(ask).await;
        let mut answered = Answered::default();
        self.read(&mut client, request, &mut answered, None).await;
        *self.session.lock().await = Some(session);
        answered
    }

    async fn ask_until(&self, ask: &Ask, words: &str, then: impl Future<Output = ()>) -> Answered {
        let (mut client, _, request) = self.prompt(ask).await;
        let mut answered = Answered::default();
        self.read(&mut client, request, &mut answered, Some(words)).await;
        then.await;
        self.read(&mut client, request, &mut answered, None).await;
        answered
    }

    async fn ask_and_cancel(&self, ask: &Ask, agents: &ScriptedAgents) {
        let (mut client, session, request) = self.prompt(ask).await;
        agents.until_prompted(0).await;
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        let mut answered = Answered::default();
        self.read(&mut client, request, &mut answered, None).await;
        assert_eq!(answered.finish, "cancelled");
    }
}
