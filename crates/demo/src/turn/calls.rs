//! Steps that call the tools of the session's MCP servers.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Turn;
use super::tools::{Announced, text_content};
use crate::mcp::{self, Server, Tool};
use crate::script::Call;

/// A longer result is told by its length and its ends.
const LONGEST_TOLD: usize = 256 * 1024;
/// How much of each end is told.
const TOLD_END: usize = 40;

impl Turn {
    pub(super) async fn list_tools(&self) {
        let servers = self.session.servers();
        if servers.is_empty() {
            return self.stream("The session has no MCP servers; a client names them in `session/new`.").await;
        }
        for server in servers.iter() {
            match server.tools().await {
                Ok(tools) if tools.is_empty() => self.stream(&format!("- `{}` offers no tools\n", server.name)).await,
                Ok(tools) => {
                    for tool in tools.iter() {
                        self.stream(&format!("- `{}` of `{}`: {}\n", tool.name, server.name, tool.description)).await;
                    }
                }
                Err(why) => self.stream(&format!("- `{}` cannot be used: {why}\n", server.name)).await,
            }
        }
    }

    pub(super) async fn call_and_tell(&self, call: &Call) {
        let text = self.call(call).await;
        self.stream(&text).await;
    }

    /// The same call again and again, each after the result of the one before.
    pub(super) async fn call_in_rounds(&self, rounds: u64, call: &Call) {
        let mut last = String::new();
        for round in 1..=rounds {
            let mut call = call.clone();
            if let Ok(Value::Object(arguments)) = &mut call.arguments {
                arguments.insert("round".to_owned(), round.into());
            }
            last = self.call(&call).await;
        }
        self.stream(&format!("{rounds} rounds, and in the last one: {last}")).await;
    }

    pub(super) async fn call_and_be_done(&self, call: &Call) {
        self.call(call).await;
        self.stream("done").await;
    }

    /// All calls at once; their results are told in the order of the lines.
    pub(super) async fn call_all(self: &Rc<Self>, calls: Vec<Call>) {
        let mut running = JoinSet::new();
        let mut results = vec![String::new(); calls.len()];
        for (index, call) in calls.into_iter().enumerate() {
            let turn = Rc::clone(self);
            running.spawn_local(async move { (index, turn.call(&call).await) });
        }
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok((index, text)) => results[index] = text,
                Err(error) => crate::complain(&format!("a tool call was lost: {error}")),
            }
        }
        for text in results {
            self.stream(&text).await;
            self.say("\n").await;
        }
    }

    /// Makes one call and returns the text to tell.
    pub(super) async fn call(&self, call: &Call) -> String {
        let arguments = match &call.arguments {
            Ok(arguments) => arguments.clone(),
            Err(why) => return format!("The arguments of `{}` are not JSON: {why}", call.tool),
        };
        let (server, tool) = match self.find_tool(&call.tool).await {
            Ok(found) => found,
            Err(why) => return why,
        };
        let id = self
            .open_call(Announced {
                title: &tool,
                kind: "other",
                input: arguments.clone(),
                locations: json!([]),
                content: json!([]),
            })
            .await;
        self.start_call(&id).await;
        match mcp::call(&self.connection, &server, &tool, arguments).await {
            Ok(result) => self.tell_result(&id, &tool, result).await,
            Err(why) => {
                self.close_call(&id, "failed", text_content(&why), Value::Null).await;
                format!("Tool `{tool}` failed: {why}")
            }
        }
    }

    async fn tell_result(&self, id: &str, tool: &str, result: Value) -> String {
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text: Vec<_> = blocks.iter().map(told).collect();
        let mut text = text.join("\n");
        let failed = result["isError"] == true;
        let status = if failed { "failed" } else { "completed" };
        if text.len() > LONGEST_TOLD {
            text = shortened(&text);
            self.close_call(id, status, text_content(&text), Value::Null).await;
        } else {
            let content: Vec<_> = blocks.iter().map(|block| json!({"type": "content", "content": block})).collect();
            self.close_call(id, status, content.into(), result).await;
        }
        if failed {
            return format!("Tool `{tool}` failed: {text}");
        }
        format!("Tool `{tool}` answered: {text}")
    }

    /// Finds a tool by its name, or by `server/name` where several servers offer it.
    async fn find_tool(&self, wanted: &str) -> Result<(Rc<Server>, String), String> {
        let mut offered = Vec::new();
        for server in self.session.servers().iter() {
            let named = |tool: &&Tool| tool.name == wanted || format!("{}/{}", server.name, tool.name) == wanted;
            let mut tools = server.known_tools().await;
            // A list that is on its way may have come after the prompt.
            if tools.as_ref().is_ok_and(|tools| !tools.iter().any(|tool| named(&tool))) {
                tools = server.tools().await;
            }
            match tools {
                Ok(tools) => {
                    if let Some(tool) = tools.iter().find(named) {
                        return Ok((Rc::clone(server), tool.name.clone()));
                    }
                    offered.extend(tools.iter().map(|tool| format!("`{}`", tool.name)));
                }
                Err(why) => offered.push(format!("nothing from `{}` ({why})", server.name)),
            }
        }
        let offered = if offered.is_empty() { "no tools".to_owned() } else { offered.join(", ") };
        Err(format!("There is no tool `{wanted}`; the session's MCP servers offer {offered}."))
    }
}

/// A block of a result, in words where it is none.
fn told(block: &Value) -> String {
    let (kind, mime) = (block["type"].as_str().unwrap_or("something"), block["mimeType"].as_str());
    match (block["text"].as_str(), block["data"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(data)) => format!("[{kind} ({}), {} characters]", mime.unwrap_or("type not given"), data.len()),
        (None, None) => format!("[{kind}]"),
    }
}

fn shortened(text: &str) -> String {
    let (head, tail) = (text.floor_char_boundary(TOLD_END), text.ceil_char_boundary(text.len() - TOLD_END));
    format!("{}…{} ({} bytes)", &text[..head], &text[tail..], text.len())
}
