//! Steps that show tool calls, plans and permission requests. Nothing is ever executed.

use serde_json::{Value, json};

use super::{End, Turn};
use crate::script::StopReason;
use crate::session::Verdict;

/// What a tool call is announced with.
pub(super) struct Announced<'a> {
    pub title: &'a str,
    pub kind: &'a str,
    pub input: Value,
    pub locations: Value,
    pub content: Value,
}

enum Asked {
    Allowed,
    Rejected(&'static str),
    Cancelled,
    Failed(String),
}

impl Turn {
    /// Announces a pending tool call and remembers that it is open.
    pub(super) async fn open_call(&self, call: Announced<'_>) -> String {
        let id = self.session.next_tool_call();
        self.open_calls.borrow_mut().push(id.clone());
        self.update(json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": call.title, "kind": call.kind,
            "status": "pending", "rawInput": call.input, "locations": call.locations, "content": call.content,
        }))
        .await;
        id
    }

    pub(super) async fn start_call(&self, id: &str) {
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})).await;
    }

    /// Ends a call with its content and the raw output it came from.
    pub(super) async fn close_call(&self, id: &str, status: &str, content: Value, output: Value) {
        self.open_calls.borrow_mut().retain(|open| open != id);
        self.update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
            "content": content, "rawOutput": output,
        }))
        .await;
    }

    /// A turn that ends early leaves no call behind that looks as if it were still running.
    pub(super) async fn fail_open_calls(&self) {
        let open = std::mem::take(&mut *self.open_calls.borrow_mut());
        for id in open {
            let content = text_content("the turn ended before this call did");
            self.close_call(&id, "failed", content, Value::Null).await;
        }
    }

    pub(super) async fn tool(&self) {
        let path = self.path("README.md");
        let id = self
            .open_call(Announced {
                title: "Read README.md",
                kind: "read",
                input: json!({"path": path}),
                locations: json!([{"path": path, "line": 1}]),
                content: json!([]),
            })
            .await;
        self.pause().await;
        self.start_call(&id).await;
        self.pause().await;
        let found = "# A demo\n\nThe demo agent made this text up; it read no file.";
        self.close_call(&id, "completed", text_content(found), json!({"lines": 3})).await;
        self.stream("I pretended to read `README.md`.").await;
    }

    pub(super) async fn edit(&self) {
        let path = self.path("src/greeting.txt");
        let diff = json!([{"type": "diff", "path": path, "oldText": "hello world\n", "newText": "hello, world!\n"}]);
        let id = self
            .open_call(Announced {
                title: "Edit src/greeting.txt",
                kind: "edit",
                input: json!({"path": path, "old": "hello world", "new": "hello, world!"}),
                locations: json!([{"path": path, "line": 1}]),
                content: diff.clone(),
            })
            .await;
        self.pause().await;
        self.start_call(&id).await;
        self.pause().await;
        self.close_call(&id, "completed", diff, json!({"changed": 1})).await;
        self.stream("I pretended to edit `src/greeting.txt`; no file was touched.").await;
    }

    pub(super) async fn plan(&self) {
        const ENTRIES: [(&str, &str); 3] =
            [("Look at the question", "high"), ("Pretend to work", "medium"), ("Say that it is done", "low")];
        for done in 0..=ENTRIES.len() {
            let entries: Vec<_> = ENTRIES
                .iter()
                .enumerate()
                .map(|(index, (content, priority))| {
                    let status = match index.cmp(&done) {
                        std::cmp::Ordering::Less => "completed",
                        std::cmp::Ordering::Equal => "in_progress",
                        std::cmp::Ordering::Greater => "pending",
                    };
                    json!({"content": content, "priority": priority, "status": status})
                })
                .collect();
            self.update(json!({"sessionUpdate": "plan", "entries": entries})).await;
            self.pause().await;
        }
        self.stream("The plan is done.").await;
    }

    /// Asks before it pretends to run a command, unless the mode or an earlier answer decides.
    pub(super) async fn permission(&self, command: &str) -> Result<(), End> {
        let input = json!({"command": command});
        let call = Announced {
            title: command,
            kind: "execute",
            input: input.clone(),
            locations: json!([]),
            content: json!([]),
        };
        let id = self.open_call(call).await;
        let asked = match (self.session.mode(), self.session.standing(command)) {
            ("yolo", _) | (_, Some(Verdict::Allowed)) => Asked::Allowed,
            ("plan", _) => Asked::Rejected("mode `plan` runs nothing"),
            (_, Some(Verdict::Rejected)) => Asked::Rejected("it was rejected for the whole session"),
            _ => self.ask_permission(&id, command, &input).await,
        };
        let why_not = match asked {
            Asked::Allowed => {
                self.start_call(&id).await;
                let output = format!("(pretended to run `{command}`; nothing was executed)");
                self.close_call(&id, "completed", text_content(&output), json!({"exitCode": 0})).await;
                self.stream(&format!("Allowed: I pretended to run `{command}`. Nothing was executed.")).await;
                return Ok(());
            }
            Asked::Cancelled => return Err(End::Stop(StopReason::Cancelled)),
            Asked::Rejected(why) => why.to_owned(),
            Asked::Failed(why) => why,
        };
        self.close_call(&id, "failed", text_content(&format!("rejected: {why_not}")), Value::Null).await;
        self.stream(&format!("Rejected: I did not pretend to run `{command}`, because {why_not}.")).await;
        Ok(())
    }

    async fn ask_permission(&self, call: &str, command: &str, input: &Value) -> Asked {
        let params = json!({
            "sessionId": self.session.id,
            "toolCall": {
                "toolCallId": call, "title": command, "kind": "execute", "status": "pending", "rawInput": input,
            },
            // The widest permission stands first on purpose, as real agents have it: choose by kind.
            "options": [
                {"optionId": "allow-always", "name": "Always allow in this session", "kind": "allow_always"},
                {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
                {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
                {"optionId": "reject-always", "name": "Always reject in this session", "kind": "reject_always"},
            ],
        });
        let answer = match self.connection.ask("session/request_permission", params).await {
            Ok(answer) => answer,
            Err(error) => return Asked::Failed(format!("the client could not be asked ({})", error.message)),
        };
        let outcome = &answer["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("selected"), Some("allow-once")) => Asked::Allowed,
            (Some("selected"), Some("allow-always")) => {
                self.session.remember(command, Verdict::Allowed);
                Asked::Allowed
            }
            (Some("selected"), Some("reject-once")) => Asked::Rejected("it was rejected"),
            (Some("selected"), Some("reject-always")) => {
                self.session.remember(command, Verdict::Rejected);
                Asked::Rejected("it was rejected for the whole session")
            }
            (Some("cancelled"), _) => Asked::Cancelled,
            _ => Asked::Failed(format!("the client's answer is none of the options: `{outcome}`")),
        }
    }

    /// A path of the session's folder.
    pub(super) fn path(&self, path: &str) -> String {
        let joined = std::path::Path::new(&self.session.cwd()).join(path);
        joined.to_string_lossy().into_owned()
    }
}

pub(super) fn text_content(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}
