//! The client's requests other than `session/prompt`.

use std::{sync::atomic::Ordering, thread};

use serde_json::{Value, json};

use super::{
    agent::{Agent, Refusal},
    faults,
    mode::{Mode, Quirk},
    sessions::{MODES, Session},
    wire::{chunk, update},
};

pub enum Answer {
    Result(Value),
    Refused(Refusal),
    /// The response was sent already, between other messages.
    Sent,
    /// The mode is not to answer.
    Silence,
}

pub fn answer(agent: &Agent, method: &str, id: &Value, params: &Value) -> Answer {
    if let Some(Mode::Slow(delay)) = agent.options.modes.iter().find(|mode| matches!(mode, Mode::Slow(_))) {
        thread::sleep(*delay);
    }
    let session_id = params["sessionId"].as_str().unwrap_or_default();
    let capability = method.strip_prefix("session/").unwrap_or_default();
    if !agent.options.offers(capability_of(capability)) {
        return not_found(method);
    }
    match method {
        "initialize" => initialize(agent),
        "authenticate" => {
            if params["methodId"] == "fake-key" {
                agent.authenticated.store(true, Ordering::Relaxed);
                return Answer::Result(json!({}));
            }
            refused(-32602, format!("authentication method {} is not offered", params["methodId"]))
        }
        "session/new" => new(agent, id, params),
        "session/load" => load(agent, id, session_id, params),
        "session/resume" => {
            let found = agent.sessions().reopen(session_id, params.clone()).is_some();
            if !found {
                return refused(-32002, format!("Resource not found: {session_id}"));
            }
            with_session(agent, session_id, |session| opened(agent, session))
        }
        "session/list" => Answer::Result(json!({"sessions": agent.sessions().list()})),
        "session/close" => done_or_unknown(agent.sessions().close(session_id), session_id),
        "session/delete" => done_or_unknown(agent.sessions().delete(session_id), session_id),
        "session/set_mode" => set_mode(agent, session_id, &params["modeId"]),
        "session/set_model" => with_session(agent, session_id, |session| {
            params["modelId"].as_str().unwrap_or_default().clone_into(&mut session.model);
            json!({})
        }),
        "session/set_config_option" => set_config_option(agent, session_id, params),
        "_fake/echo" => Answer::Result(params.clone()),
        _ => not_found(method),
    }
}

fn capability_of(method: &str) -> &str {
    match method {
        "set_mode" => "modes",
        "set_model" => "models",
        "set_config_option" => "config",
        other => other,
    }
}

fn initialize(agent: &Agent) -> Answer {
    let options = &agent.options;
    if options.has(&Mode::HangInit) {
        return Answer::Silence;
    }
    faults::flood_stderr(options);
    let version = if options.has(&Mode::BadVersion) { 99 } else { 1 };
    let mut capabilities = json!({
        "loadSession": options.offers("load"),
        "promptCapabilities": {"image": options.offers("image"), "audio": true, "embeddedContext": options.offers("embedded")},
        "mcpCapabilities": {"http": options.offers("http"), "sse": false},
        "sessionCapabilities": {},
    });
    for name in ["list", "resume", "close", "delete"] {
        if options.offers(name) {
            capabilities["sessionCapabilities"][name] = json!({});
        }
    }
    Answer::Result(json!({
        "protocolVersion": version,
        "agentInfo": {"name": "fake-agent", "title": "Fake agent", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": capabilities,
        "authMethods": [{"id": "fake-key", "name": "A key that is no key", "description": "always accepted"}],
    }))
}

fn new(agent: &Agent, id: &Value, params: &Value) -> Answer {
    if !agent.authenticated.load(Ordering::Relaxed) {
        return refused(-32000, "Authentication required".into());
    }
    if !params["mcpServers"].is_array() || !params["cwd"].is_string() {
        return refused(-32602, "`cwd` and `mcpServers` are required".into());
    }
    let session_id = agent.sessions().create(params.clone());
    let mut result = match with_session(agent, &session_id, |session| opened(agent, session)) {
        Answer::Result(result) => result,
        other => return other,
    };
    result["sessionId"] = json!(session_id);
    agent.respond(id, &result);
    agent.wire.send(&update(&session_id, &available_commands()));
    Answer::Sent
}

fn load(agent: &Agent, id: &Value, session_id: &str, params: &Value) -> Answer {
    let Some(history) = agent.sessions().reopen(session_id, params.clone()) else {
        return refused(-32002, format!("Resource not found: {session_id}"));
    };
    let result = match with_session(agent, session_id, |session| opened(agent, session)) {
        Answer::Result(result) => result,
        other => return other,
    };
    let before_response = if agent.options.quirk(Quirk::StraddlingLoad) { 1 } else { history.len() };
    for entry in history.iter().take(before_response) {
        agent.wire.send(&update(session_id, entry));
    }
    agent.respond(id, &result);
    for entry in history.iter().skip(before_response) {
        agent.wire.send(&update(session_id, entry));
    }
    agent.wire.send(&update(session_id, &available_commands()));
    Answer::Sent
}

fn set_mode(agent: &Agent, session_id: &str, mode: &Value) -> Answer {
    let Some(mode) = mode.as_str().filter(|mode| MODES.contains(mode)) else {
        return refused(-32602, format!("mode {mode} is not offered"));
    };
    let answer = with_session(agent, session_id, |session| {
        mode.clone_into(&mut session.mode);
        json!({})
    });
    if matches!(answer, Answer::Result(_)) {
        agent.wire.send(&update(session_id, &mode_update(agent, mode)));
    }
    answer
}

fn set_config_option(agent: &Agent, session_id: &str, params: &Value) -> Answer {
    let (id, value) = (params["configId"].as_str().unwrap_or_default(), &params["value"]);
    if !["model", "verbose"].contains(&id) {
        return refused(-32602, format!("option `{id}` is not offered"));
    }
    with_session(agent, session_id, |session| {
        match (value.as_str(), value.as_bool()) {
            (Some(model), _) => model.clone_into(&mut session.model),
            (_, Some(verbose)) => session.verbose = verbose,
            _ => {}
        }
        json!({"configOptions": session.config_options()})
    })
}

/// What a mode change looks like from this agent.
pub fn mode_update(agent: &Agent, mode: &str) -> Value {
    if agent.options.quirk(Quirk::ModeUpdateText) {
        chunk(&format!("[MODE_UPDATE] {mode}"))
    } else {
        json!({"sessionUpdate": "current_mode_update", "currentModeId": mode})
    }
}

pub fn available_commands() -> Value {
    json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "init", "description": "Writes a file about the project."},
        {"name": "memory", "description": "Shows what is remembered.", "input": {"hint": "show"}},
    ]})
}

fn opened(agent: &Agent, session: &Session) -> Value {
    let mut result = json!({});
    for (name, state) in [
        ("modes", Session::modes as fn(&Session) -> Value),
        ("models", Session::models),
        ("config", Session::config_options),
    ] {
        if agent.options.offers(name) {
            result[if name == "config" { "configOptions" } else { name }] = state(session);
        }
    }
    result
}

fn with_session(agent: &Agent, session_id: &str, change: impl FnOnce(&mut Session) -> Value) -> Answer {
    match agent.sessions().get(session_id) {
        Some(session) => Answer::Result(change(session)),
        None => unknown_session(session_id),
    }
}

fn done_or_unknown(done: bool, session_id: &str) -> Answer {
    if done { Answer::Result(json!({})) } else { unknown_session(session_id) }
}

fn unknown_session(session_id: &str) -> Answer {
    refused(-32602, format!("Session not found: {session_id}"))
}

fn not_found(method: &str) -> Answer {
    refused(-32601, format!("Method not found: {method}"))
}

fn refused(code: i64, message: String) -> Answer {
    Answer::Refused(Refusal { code, message })
}
