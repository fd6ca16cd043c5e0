//! Steps that ask the client for something and say what it answered.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{
    mode::Quirk,
    prompt::{Ended, Stage},
    script::{TerminalEnd, Variant},
    turn::Patience,
};

pub fn permission(stage: &Stage, variant: Variant, title: &str) -> Result<(), Ended> {
    let announced = !stage.agent.options.quirk(Quirk::NoToolCallBeforePermission);
    let id = tool_call_id("run_shell_command");
    let tool = json!({"toolCallId": id, "title": title, "kind": "execute", "status": "pending", "content": [], "locations": []});
    if announced {
        let mut call = tool.clone();
        call["sessionUpdate"] = json!("tool_call");
        stage.update(&call)?;
    }
    let outcome = ask_permission(stage, variant, &tool)?;
    let refused = !outcome.starts_with("allow");
    if !refused {
        stage.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "done"}}]}))?;
    } else if announced {
        stage.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}))?;
    }
    stage.say(&format!("permission: {outcome}"))
}

/// `allow_once (proceed_once)`, `cancelled`, `unoffered (x)` or `error CODE`.
fn ask_permission(stage: &Stage, variant: Variant, tool: &Value) -> Result<String, Ended> {
    let options = offered(variant);
    let session = if variant == Variant::OtherSession { "no-such-session" } else { stage.session };
    let params = json!({"sessionId": session, "options": options, "toolCall": tool});
    let request = stage.agent.request(stage.turn, "session/request_permission", &params);
    if variant == Variant::Withdrawn {
        stage.agent.notify("$/cancel_request", &json!({"requestId": request}));
    }
    let patience = if stage.agent.options.quirk(Quirk::CancelWaitsForPermission) {
        Patience::UntilAnswered
    } else {
        Patience::UntilCancelled
    };
    let response = stage.turn.wait_for_answer(request, patience)?;
    Ok(outcome_of(&response, &options))
}

pub fn outcome_of(response: &Value, options: &Value) -> String {
    if let Some(error) = response.get("error") {
        return format!("error {}", error["code"]);
    }
    let outcome = &response["result"]["outcome"];
    let Some(chosen) = outcome["optionId"].as_str() else { return "cancelled".into() };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    match options.iter().find(|option| option["optionId"] == chosen) {
        Some(option) => format!("{} ({chosen})", option["kind"].as_str().unwrap_or_default()),
        None => format!("unoffered ({chosen})"),
    }
}

/// The choice that allows for ever stands first, as real agents have it.
pub fn offered(variant: Variant) -> Value {
    let always = json!({"optionId": "proceed_always", "name": "Allow for this session", "kind": "allow_always"});
    let once = json!({"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"});
    let reject = json!({"optionId": "cancel", "name": "Reject", "kind": "reject_once"});
    match variant {
        Variant::OnlyAlways => json!([always]),
        Variant::NoOptions => json!([]),
        Variant::UnknownKind => {
            json!([{"optionId": "proceed_maybe", "name": "Maybe", "kind": "allow_on_tuesdays"}])
        }
        Variant::Usual | Variant::OtherSession | Variant::Withdrawn => {
            json!([always, once, reject])
        }
    }
}

pub fn read(stage: &Stage, path: &str, line: Option<u64>, limit: Option<u64>) -> Result<(), Ended> {
    let mut params = json!({"sessionId": stage.session, "path": absolute(stage, path)});
    for (name, value) in [("line", line), ("limit", limit)] {
        if let Some(value) = value {
            params[name] = json!(value);
        }
    }
    match ask(stage, "fs/read_text_file", &params)? {
        Ok(result) => stage.say(&format!("read: {}", result["content"].as_str().unwrap_or_default())),
        Err(error) => stage.say(&format!("read error {error}")),
    }
}

pub fn write(stage: &Stage, path: &str, text: &str) -> Result<(), Ended> {
    let params = json!({"sessionId": stage.session, "path": absolute(stage, path), "content": text});
    match ask(stage, "fs/write_text_file", &params)? {
        Ok(_) => stage.say("write: ok"),
        Err(error) => stage.say(&format!("write error {error}")),
    }
}

pub fn terminal(stage: &Stage, command: &str, args: &[String], end: TerminalEnd) -> Result<(), Ended> {
    let params =
        json!({"sessionId": stage.session, "command": command, "args": args, "env": [], "outputByteLimit": 65_536});
    let created = match ask(stage, "terminal/create", &params)? {
        Ok(created) => created,
        Err(error) => return stage.say(&format!("terminal error {error}")),
    };
    let terminal = created["terminalId"].as_str().unwrap_or_default();
    let params = json!({"sessionId": stage.session, "terminalId": terminal});
    let id = tool_call_id("terminal");
    stage.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": terminal}]}))?;
    if end == TerminalEnd::Killed
        && let Err(error) = ask(stage, "terminal/kill", &params)?
    {
        stage.say(&format!("terminal/kill error {error} "))?;
    }
    let waited = ask(stage, "terminal/wait_for_exit", &params)?.unwrap_or_else(Value::String);
    let output = ask(stage, "terminal/output", &params)?.unwrap_or_else(Value::String);
    if let Err(error) = ask(stage, "terminal/release", &params)? {
        stage.say(&format!("terminal/release error {error} "))?;
    }
    stage.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}))?;
    let text = output["output"].as_str().unwrap_or_default();
    stage.say(&format!("terminal: exit {} signal {} output {text}", waited["exitCode"], waited["signal"]))
}

pub fn elicit(stage: &Stage) -> Result<(), Ended> {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]});
    let params =
        json!({"sessionId": stage.session, "mode": "form", "message": "What is your name?", "requestedSchema": schema});
    match ask(stage, "elicitation/create", &params)? {
        Ok(result) => stage.say(&format!("elicit: {result}")),
        Err(error) => stage.say(&format!("elicit error {error}")),
    }
}

pub fn ext(stage: &Stage) -> Result<(), Ended> {
    match ask(stage, "_fake/ext", &json!({"sessionId": stage.session, "question": "anyone?"}))? {
        Ok(result) => stage.say(&format!("ext: {result}")),
        Err(error) => stage.say(&format!("ext error {error}")),
    }
}

/// The result, or `CODE: MESSAGE` of the error.
pub fn ask(stage: &Stage, method: &str, params: &Value) -> Result<Result<Value, String>, Ended> {
    let request = stage.agent.request(stage.turn, method, params);
    let response = stage.turn.wait_for_answer(request, Patience::UntilCancelled)?;
    Ok(match response.get("error") {
        Some(error) => Err(format!("{}: {}", error["code"], error["message"].as_str().unwrap_or_default())),
        None => Ok(response["result"].clone()),
    })
}

pub fn tool_call_id(name: &str) -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("{name}__{}", MADE.fetch_add(1, Ordering::Relaxed))
}

/// A relative path means one below the session's folder; agents send absolute ones.
fn absolute(stage: &Stage, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", folder(stage)) }
}

pub fn folder(stage: &Stage) -> String {
    let mut sessions = stage.agent.sessions();
    let cwd = sessions.get(stage.session).and_then(|session| session.given["cwd"].as_str().map(str::to_owned));
    cwd.unwrap_or_default()
}
