//! What the fake says, in the words of its version.

use serde_json::{Value, json};

use super::Manner;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V03,
    V10,
}

/// The names of the methods in both versions.
pub(super) const METHODS: [(&str, &str); 4] = [
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/cancel", "CancelTask"),
];

pub(super) fn card(version: Version, manner: Manner, address: std::net::SocketAddr) -> Value {
    let url = format!("http://{address}/");
    let capabilities = json!({ "streaming": manner != Manner::Whole });
    let mut card = json!({ "name": "fake", "version": "9", "capabilities": capabilities, "skills": [],
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"], "description": "a fake" });
    match version {
        Version::V03 => {
            card["url"] = json!(url);
            card["protocolVersion"] = json!("0.3.0");
        }
        Version::V10 => {
            card["supportedInterfaces"] =
                json!([{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }]);
        }
    }
    card
}

pub(super) fn result(result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

pub(super) fn refusal(code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } })
}

fn state(version: Version, state: &str) -> Value {
    match version {
        Version::V03 => json!(state),
        Version::V10 => json!(format!("TASK_STATE_{}", state.to_uppercase().replace('-', "_"))),
    }
}

pub(super) fn task(version: Version, id: &str, context: &str, now: &str, artifacts: &Value) -> Value {
    let mut task =
        json!({ "id": id, "contextId": context, "status": { "state": state(version, now) }, "artifacts": artifacts });
    if version == Version::V03 {
        task["kind"] = json!("task");
    }
    task
}

/// A task where a message could stand as well.
pub(super) fn wrapped_task(version: Version, id: &str, context: &str, now: &str, artifacts: &Value) -> Value {
    let task = task(version, id, context, now, artifacts);
    match version {
        Version::V03 => task,
        Version::V10 => json!({ "task": task }),
    }
}

pub(super) fn text(version: Version, text: &str) -> Value {
    match version {
        Version::V03 => json!({ "kind": "text", "text": text }),
        Version::V10 => json!({ "text": text }),
    }
}

/// Speaks of one task.
pub(super) struct Teller {
    pub version: Version,
    pub id: String,
    pub context: String,
}

impl Teller {
    fn task(&self) -> Value {
        wrapped_task(self.version, &self.id, &self.context, "submitted", &json!([]))
    }

    fn status(&self, now: &str, kind: Option<&str>, parts: &Value, is_final: bool) -> Value {
        let mut status = json!({ "state": state(self.version, now) });
        if parts.as_array().is_some_and(|parts| !parts.is_empty()) {
            status["message"] = json!({ "messageId": "m", "role": "agent", "parts": parts });
        }
        let mut update = json!({ "taskId": self.id, "contextId": self.context, "status": status });
        if let Some(kind) = kind {
            update["metadata"] = json!({ "coderAgent": { "kind": kind }, "model": "fake-1",
                "usage": { "inputTokens": 3, "outputTokens": 4 } });
        }
        match self.version {
            Version::V03 => {
                update["kind"] = json!("status-update");
                update["final"] = json!(is_final);
                update
            }
            Version::V10 => json!({ "statusUpdate": update }),
        }
    }

    fn text(&self, said: &str) -> Value {
        self.status("working", Some("text-content"), &json!([text(self.version, said)]), false)
    }

    fn data(&self, data: &Value) -> Value {
        match self.version {
            Version::V03 => json!({ "kind": "data", "data": data }),
            Version::V10 => json!({ "data": data }),
        }
    }

    fn artifact(&self, said: &str) -> Value {
        let artifact = json!({ "artifactId": "answer", "parts": [text(self.version, said)] });
        let mut update = json!({ "taskId": self.id, "contextId": self.context, "artifact": artifact, "append": true });
        match self.version {
            Version::V03 => {
                update["kind"] = json!("artifact-update");
                update
            }
            Version::V10 => json!({ "artifactUpdate": update }),
        }
    }

    fn tool(&self, now: &str, status: &str, extra: &Value) -> Value {
        let mut data = json!({ "request": { "callId": "call-1", "name": "run_shell_command", "args": { "command": "ls" } },
            "status": status, "tool": { "name": "run_shell_command", "displayName": "Shell" } });
        for (field, value) in extra.as_object().into_iter().flatten() {
            data[field] = value.clone();
        }
        let kind = if status == "awaiting_approval" { "tool-call-confirmation" } else { "tool-call-update" };
        self.status(now, Some(kind), &json!([self.data(&data)]), false)
    }

    fn end(&self) -> Value {
        self.status("input-required", Some("state-change"), &json!([]), true)
    }
}

pub(super) fn events(teller: &Teller, manner: Manner, words: &str) -> Vec<Value> {
    let version = teller.version;
    let working = teller.status("working", Some("state-change"), &json!([]), false);
    match words {
        "hang" | "half" | "early" | "garbage" => vec![teller.task(), working, teller.text("word")],
        "fail" => {
            let reason = json!([text(version, "the disk is full")]);
            vec![teller.task(), teller.status("failed", None, &reason, true)]
        }
        "message" => {
            let message = json!({ "messageId": "m", "role": "agent", "parts": [text(version, "just this")] });
            match version {
                Version::V03 => {
                    let mut message = message;
                    message["kind"] = json!("message");
                    vec![message]
                }
                Version::V10 => vec![json!({ "message": message })],
            }
        }
        "ask" => vec![
            teller.task(),
            working,
            teller.tool("working", "validating", &json!({})),
            teller.tool(
                "working",
                "awaiting_approval",
                &json!({ "confirmationDetails": { "type": "exec", "title": "Confirm" } }),
            ),
            teller.end(),
        ],
        _ => {
            let mut events = vec![teller.task(), working];
            if words == "think" {
                let thought = teller.data(&json!({ "subject": "Plan", "description": "look first" }));
                events.push(teller.status("working", Some("thought"), &json!([thought]), false));
            }
            match manner {
                Manner::Coder => {
                    events.extend([teller.text("You said: "), teller.text(words), teller.end()]);
                }
                Manner::Plain | Manner::Whole => {
                    let progress = json!([text(version, "looking")]);
                    events.push(teller.status("working", None, &progress, false));
                    events.extend([teller.artifact("You said: "), teller.artifact(words)]);
                    events.push(teller.status("completed", None, &json!([]), true));
                }
            }
            events
        }
    }
}

/// What follows a decision. The tool was aborted if the connection that began it is gone.
pub(super) fn decided(teller: &Teller, decision: &Value, is_aborted: bool) -> Vec<Value> {
    if is_aborted {
        return vec![teller.tool("input-required", "cancelled", &json!({})), teller.text("aborted"), teller.end()];
    }
    if decision["outcome"] == "cancel" {
        return vec![teller.tool("input-required", "cancelled", &json!({})), teller.end()];
    }
    let response = json!({ "response": { "resultDisplay": "a.txt" } });
    vec![
        teller.tool("input-required", "executing", &json!({})),
        teller.tool("input-required", "success", &response),
        teller.text("done"),
        teller.end(),
    ]
}
