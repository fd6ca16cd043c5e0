//! Steps that use what the client offers: its files, its terminals, its forms.

use std::rc::Rc;

use serde_json::{Value, json};

use super::Turn;
use super::tools::{Announced, text_content};
use crate::connection::Connection;
use crate::script::command_words;

impl Turn {
    pub(super) async fn read_file(&self, path: &str, line: Option<u64>, limit: Option<u64>) {
        if !self.connection.client.borrow().fs.read_text_file {
            return self.stream("The client does not offer to read files (`fs.readTextFile`).").await;
        }
        let path = self.path(path);
        let mut input = json!({"sessionId": self.session.id, "path": path});
        for (key, value) in [("line", line), ("limit", limit)] {
            if let Some(value) = value {
                input[key] = value.into();
            }
        }
        let id = self
            .open_call(Announced {
                title: &format!("Read {path}"),
                kind: "read",
                input: input.clone(),
                locations: json!([{"path": path}]),
                content: json!([]),
            })
            .await;
        self.start_call(&id).await;
        match self.connection.ask("fs/read_text_file", input).await {
            Ok(answer) => {
                let content = answer["content"].as_str().unwrap_or_default();
                self.close_call(&id, "completed", text_content(content), Value::Null).await;
                self.stream(&format!("`{path}` holds:\n\n")).await;
                self.stream(content).await;
            }
            Err(error) => self.report_failure(&id, &error.message).await,
        }
    }

    pub(super) async fn write_file(&self, path: &str, text: &str) {
        if !self.connection.client.borrow().fs.write_text_file {
            return self.stream("The client does not offer to write files (`fs.writeTextFile`).").await;
        }
        let path = self.path(path);
        let diff = json!([{"type": "diff", "path": path, "oldText": null, "newText": text}]);
        let id = self
            .open_call(Announced {
                title: &format!("Write {path}"),
                kind: "edit",
                input: json!({"path": path, "content": text}),
                locations: json!([{"path": path}]),
                content: diff.clone(),
            })
            .await;
        self.start_call(&id).await;
        let params = json!({"sessionId": self.session.id, "path": path, "content": text});
        match self.connection.ask("fs/write_text_file", params).await {
            Ok(_) => {
                self.close_call(&id, "completed", diff, Value::Null).await;
                self.stream(&format!("I wrote {} bytes to `{path}`.", text.len())).await;
            }
            Err(error) => self.report_failure(&id, &error.message).await,
        }
    }

    pub(super) async fn terminal(&self, command: &str) {
        if !self.connection.client.borrow().terminal {
            return self.stream("The client does not offer terminals (`terminal`).").await;
        }
        let mut words = command_words(command).into_iter();
        let program = words.next().unwrap_or_default();
        let id = self
            .open_call(Announced {
                title: command,
                kind: "execute",
                input: json!({"command": command}),
                locations: json!([]),
                content: json!([]),
            })
            .await;
        let params = json!({
            "sessionId": self.session.id, "command": program, "args": words.collect::<Vec<_>>(),
            "cwd": self.session.cwd(), "outputByteLimit": 64 * 1024,
        });
        let terminal = match self.connection.ask("terminal/create", params).await {
            Ok(answer) => Terminal {
                connection: Rc::clone(&self.connection),
                params: json!({"sessionId": self.session.id, "terminalId": answer["terminalId"]}),
            },
            Err(error) => return self.report_failure(&id, &error.message).await,
        };
        let shown = json!([{"type": "terminal", "terminalId": terminal.params["terminalId"]}]);
        self.update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "content": shown,
        }))
        .await;
        match terminal.result().await {
            Ok((exit, output)) => {
                self.close_call(&id, "completed", shown, json!({"exit": exit, "output": output})).await;
                self.stream(&format!("`{command}` ended with {exit} and wrote:\n\n{output}")).await;
            }
            Err(message) => self.report_failure(&id, &message).await,
        }
    }

    pub(super) async fn elicit(&self) {
        let offered = self.connection.client.borrow().elicitation.as_ref().is_some_and(|offer| offer.form.is_some());
        if !offered {
            return self.stream("The client does not offer forms (`elicitation.form`).").await;
        }
        let params = json!({
            "sessionId": self.session.id,
            "mode": "form",
            "message": "The demo agent would like to know two things.",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "title": "Your name", "minLength": 1},
                    "colour": {"type": "string", "title": "A colour", "enum": ["red", "green", "blue"]},
                },
                "required": ["name"],
            },
        });
        match self.connection.ask("elicitation/create", params).await {
            Ok(answer) => {
                let action = answer["action"].as_str().unwrap_or("nothing");
                self.stream(&format!("The form was answered with `{action}`: {}", answer["content"])).await;
            }
            Err(error) => self.stream(&format!("The form could not be shown: {}", error.message)).await,
        }
    }

    /// Ends a call as failed and says why.
    pub(super) async fn report_failure(&self, id: &str, why: &str) {
        self.close_call(id, "failed", text_content(why), Value::Null).await;
        self.stream(&format!("That failed: {why}")).await;
    }
}

/// A terminal of the client. Dropping it releases it, which also kills what still runs in it.
struct Terminal {
    connection: Rc<Connection>,
    params: Value,
}

impl Terminal {
    /// Waits for the command and returns how it ended and what it wrote.
    async fn result(&self) -> Result<(String, String), String> {
        let exit = self.ask("terminal/wait_for_exit").await?;
        let output = self.ask("terminal/output").await?;
        let exit = match (&exit["exitCode"], &exit["signal"]) {
            (Value::Number(code), _) => format!("exit code {code}"),
            (_, Value::String(signal)) => format!("signal {signal}"),
            _ => "an unknown result".to_owned(),
        };
        Ok((exit, output["output"].as_str().unwrap_or_default().to_owned()))
    }

    async fn ask(&self, method: &str) -> Result<Value, String> {
        self.connection.ask(method, &self.params).await.map_err(|error| error.message)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let connection = Rc::clone(&self.connection);
        let params = std::mem::take(&mut self.params);
        self.connection.spawn(async move {
            // A client that cannot release it has already forgotten it.
            drop(connection.ask("terminal/release", params).await);
        });
    }
}
