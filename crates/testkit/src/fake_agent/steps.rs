//! Performs the steps of a script.

use std::{process, time::Duration};

use serde_json::{Value, json};

use super::{
    agent::{Refusal, end_process},
    client_calls, firehose,
    methods::{available_commands, mode_update},
    prompt::{Ended, PromptRun},
    script::Step,
    surroundings,
    wire::chunk,
};

pub fn perform(run: &mut PromptRun, step: &Step) -> Result<(), Ended> {
    match step {
        Step::Say(text) => run.say(text),
        Step::Think(text) => run.update(&thought(text)),
        Step::Chunks { count, size, delay } => firehose::chunks(run, *count, *size, *delay),
        Step::Burst { count, size } => firehose::burst(run, *count, *size),
        Step::Content(kind) => {
            run.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content_block(kind)}))
        }
        Step::Tool { kind, title, text, status } => tool(run, kind, title, text.as_deref(), status),
        Step::Diff { path, old, new } => diff(run, path, old, new),
        Step::Permission { variant, title } => client_calls::permission(run, *variant, title),
        Step::Read { path, line, limit } => client_calls::read(run, path, *line, *limit),
        Step::Write { path, text } => client_calls::write(run, path, text),
        Step::Terminal { command, args, end } => client_calls::terminal(run, command, args, *end),
        Step::Elicit => client_calls::elicit(run),
        Step::Ext => client_calls::ext(run),
        Step::Notify => {
            run.agent.notify("_fake/note", &json!({"sessionId": run.session, "text": "as told"}));
            Ok(())
        }
        Step::Plan(entries) => run.update(&plan(entries)),
        Step::Mode(mode) => run.pass_on(&mode_update(run.agent, mode)),
        Step::Title(title) => run.pass_on(&json!({"sessionUpdate": "session_info_update", "title": title})),
        Step::Commands => run.pass_on(&available_commands()),
        Step::Config { id, value } => run.pass_on(&json!({"sessionUpdate": "config_option_update", "configOptions": [
            {"id": id, "name": id, "type": "select", "currentValue": value, "options": [{"value": value, "name": value}]},
        ]})),
        Step::UsageChunk => {
            let mut update = chunk("");
            update["_meta"] = json!({"usage": {"inputTokens": 120, "outputTokens": 30, "totalTokens": 150, "thoughtTokens": 7, "cachedReadTokens": 11}});
            run.pass_on(&update)
        }
        Step::UsageUpdate => run.pass_on(
            &json!({"sessionUpdate": "usage_update", "used": 1500, "size": 200_000, "cost": {"amount": 0.25, "currency": "USD"}}),
        ),
        Step::UnknownUpdate => {
            run.pass_on(&json!({"sessionUpdate": "weather_report", "sky": {"clouds": 3}, "_meta": {"fake": true}}))
        }
        Step::UnknownContent => run.pass_on(
            &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "depth": 3, "data": "AAAA"}}),
        ),
        Step::Sleep(time) => Ok(run.turn.pause(*time)?),
        Step::WaitCancel => Err(run.turn.wait_for_cancel().into()),
        Step::Until(path) => {
            while !path.exists() {
                run.turn.pause(Duration::from_millis(5))?;
            }
            Ok(())
        }
        Step::Echo => run.say(&run.prompt.to_string()),
        Step::Session => {
            let given = run.agent.sessions().get(run.session).map(|session| session.given.to_string());
            run.say(&given.unwrap_or_default())
        }
        Step::Env => run.say(&surroundings::describe().to_string()),
        Step::Open(path) => run.say(&surroundings::open(path)),
        Step::Shell(line) => run.say(&surroundings::shell(line)),
        Step::Raw(line) => {
            run.agent.wire.write(format!("{line}\n").as_bytes());
            Ok(())
        }
        Step::Stderr(text) => {
            eprintln!("{text}");
            Ok(())
        }
        Step::Exit(code) => end_process(*code),
        Step::Abort => process::abort(),
        Step::Error { code, message } => Err(Ended::Failed(Refusal { code: *code, message: message.clone() })),
        Step::Usage | Step::UsageQuota | Step::Trail(_) | Step::Stop(_) => {
            shape_response(run, step);
            Ok(())
        }
    }
}

fn shape_response(run: &mut PromptRun, step: &Step) {
    let response = &mut run.response;
    match step {
        Step::Usage => {
            let usage = json!({"totalTokens": 158, "inputTokens": 120, "outputTokens": 30, "thoughtTokens": 8, "cachedReadTokens": 11, "cachedWriteTokens": 2});
            response.extra.insert("usage".into(), usage);
        }
        Step::UsageQuota => {
            let tokens = json!({"input_tokens": 120, "output_tokens": 30});
            let quota = json!({"token_count": tokens, "model_usage": [{"model": "fake-large", "token_count": tokens}]});
            response.extra.insert("_meta".into(), json!({"quota": quota}));
        }
        Step::Trail(count) => response.trail = *count,
        Step::Stop(reason) => response.stop_reason = Some(reason.clone()),
        _ => {}
    }
}

fn thought(text: &str) -> Value {
    json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})
}

fn tool(run: &PromptRun, kind: &str, title: &str, text: Option<&str>, status: &str) -> Result<(), Ended> {
    let id = client_calls::tool_call_id(kind);
    run.update(
        &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending",
        "content": [], "locations": [{"path": "file.txt", "line": 3}], "rawInput": {"title": title}}),
    )?;
    run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"}))?;
    let content: Vec<Value> =
        text.map(|text| json!({"type": "content", "content": {"type": "text", "text": text}})).into_iter().collect();
    run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content,
        "rawOutput": {"text": text}}))
}

fn diff(run: &PromptRun, path: &str, old: &str, new: &str) -> Result<(), Ended> {
    let id = client_calls::tool_call_id("edit");
    run.update(
        &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": format!("Edit {path}"), "kind": "edit",
        "status": "in_progress", "content": [], "locations": [{"path": path}]}),
    )?;
    run.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
        "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}]}))
}

fn plan(entries: &[String]) -> Value {
    let states = ["completed", "in_progress"].into_iter().chain(std::iter::repeat("pending"));
    let entries: Vec<Value> = entries
        .iter()
        .zip(states)
        .map(|(content, status)| json!({"content": content, "priority": "medium", "status": status}))
        .collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

/// The smallest honest example of each kind of content.
fn content_block(kind: &str) -> Value {
    const ONE_PIXEL_PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    match kind {
        "image" => json!({"type": "image", "mimeType": "image/png", "data": ONE_PIXEL_PNG}),
        "audio" => json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZF"}),
        "resource" => {
            json!({"type": "resource", "resource": {"uri": "file:///notes.txt", "mimeType": "text/plain", "text": "notes"}})
        }
        block if block.starts_with(['{', '[', '"']) => serde_json::from_str(block).unwrap_or_default(),
        "null" => Value::Null,
        _ => json!({"type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt"}),
    }
}
