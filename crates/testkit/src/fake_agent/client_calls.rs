//! Steps that ask the client for something and say what it answered.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{
    mode::Quirk,
    prompt::{Ended, PromptRun},
    script::{TerminalEnd, Variant},
    turn::Patience,
};

pub fn permission(run: &PromptRun, variant: Variant, title: &str) -> Result<(), Ended> {
    let announced = !run.agent.options.quirk(Quirk::NoToolCallBeforePermission);
    let id = tool_call_id("run_shell_command");
    let tool = json!({"toolCallId": id, "title": title, "kind": "execute", "status": "pending", "content": [], "locations": []});
    if announced {
        let mut call = tool.clone();
        call["sessionUpdate"] = json!("tool_call");
        run.update(&call)?;
    }
    let outcome = ask_permission(run, variant, &tool)?;
    let refused = !outcome.starts_with("allow");
    if !refused {
        run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "done"}}]}))?;
    } else if announced {
        run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}))?;
    }
    run.say(&format!("permission: {outcome}"))
}

/// `allow_once (proceed_once)`, `cancelled`, `unoffered (x)` or `error CODE`.
fn ask_permission(run: &PromptRun, variant: Variant, tool: &Value) -> Result<String, Ended> {
    let options = offered(variant);
    let session = if variant == Variant::OtherSession { "no-such-session" } else { run.session };
    let params = json!({"sessionId": session, "options": options, "toolCall": tool});
    let request = run.agent.request(run.turn, "session/request_permission", &params);
    if variant == Variant::Withdrawn {
        run.agent.notify("$/cancel_request", &json!({"requestId": request}));
    }
    let patience = if run.agent.options.quirk(Quirk::CancelWaitsForPermission) {
        Patience::UntilAnswered
    } else {
        Patience::UntilCancelled
    };
    let response = run.turn.wait_for_answer(request, patience)?;
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

pub fn read(run: &PromptRun, path: &str, line: Option<u64>, limit: Option<u64>) -> Result<(), Ended> {
    let mut params = json!({"sessionId": run.session, "path": absolute(run, path)});
    for (name, value) in [("line", line), ("limit", limit)] {
        if let Some(value) = value {
            params[name] = json!(value);
        }
    }
    match ask(run, "fs/read_text_file", &params)? {
        Ok(result) => run.say(&format!("read: {}", result["content"].as_str().unwrap_or_default())),
        Err(error) => run.say(&format!("read error {error}")),
    }
}

pub fn write(run: &PromptRun, path: &str, text: &str) -> Result<(), Ended> {
    let params = json!({"sessionId": run.session, "path": absolute(run, path), "content": text});
    match ask(run, "fs/write_text_file", &params)? {
        Ok(_) => run.say("write: ok"),
        Err(error) => run.say(&format!("write error {error}")),
    }
}

pub fn terminal(run: &PromptRun, command: &str, args: &[String], end: TerminalEnd) -> Result<(), Ended> {
    let params =
        json!({"sessionId": run.session, "command": command, "args": args, "env": [], "outputByteLimit": 65_536});
    let created = match ask(run, "terminal/create", &params)? {
        Ok(created) => created,
        Err(error) => return run.say(&format!("terminal error {error}")),
    };
    let terminal = created["terminalId"].as_str().unwrap_or_default();
    let params = json!({"sessionId": run.session, "terminalId": terminal});
    let id = tool_call_id("terminal");
    run.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": terminal}]}))?;
    if end == TerminalEnd::Killed
        && let Err(error) = ask(run, "terminal/kill", &params)?
    {
        run.say(&format!("terminal/kill error {error} "))?;
    }
    let waited = ask(run, "terminal/wait_for_exit", &params)?.unwrap_or_else(Value::String);
    let output = ask(run, "terminal/output", &params)?.unwrap_or_else(Value::String);
    if let Err(error) = ask(run, "terminal/release", &params)? {
        run.say(&format!("terminal/release error {error} "))?;
    }
    run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}))?;
    let text = output["output"].as_str().unwrap_or_default();
    run.say(&format!("terminal: exit {} signal {} output {text}", waited["exitCode"], waited["signal"]))
}

pub fn elicit(run: &PromptRun) -> Result<(), Ended> {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]});
    let params =
        json!({"sessionId": run.session, "mode": "form", "message": "What is your name?", "requestedSchema": schema});
    match ask(run, "elicitation/create", &params)? {
        Ok(result) => run.say(&format!("elicit: {result}")),
        Err(error) => run.say(&format!("elicit error {error}")),
    }
}

pub fn ext(run: &PromptRun) -> Result<(), Ended> {
    match ask(run, "_fake/ext", &json!({"sessionId": run.session, "question": "anyone?"}))? {
        Ok(result) => run.say(&format!("ext: {result}")),
        Err(error) => run.say(&format!("ext error {error}")),
    }
}

/// The result, or `CODE: MESSAGE` of the error.
pub fn ask(run: &PromptRun, method: &str, params: &Value) -> Result<Result<Value, String>, Ended> {
    let request = run.agent.request(run.turn, method, params);
    let response = run.turn.wait_for_answer(request, Patience::UntilCancelled)?;
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
fn absolute(run: &PromptRun, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", folder(run)) }
}

pub fn folder(run: &PromptRun) -> String {
    let mut sessions = run.agent.sessions();
    let cwd = sessions.get(run.session).and_then(|session| session.given["cwd"].as_str().map(str::to_owned));
    cwd.unwrap_or_default()
}
