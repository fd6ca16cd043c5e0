//! What a client may ask: one function per ACP method, and the table that finds it.

use std::rc::Rc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::mcp;
use crate::session::Session;
use crate::turn;
use crate::wire::{Chunk, ClientCapabilities, ContentBlock, McpServer, RpcError, Text};
use crate::words::WORDS;

enum Reply {
    Value(Value),
    /// The answer of a session that has just opened: its commands follow.
    Opened(Rc<Session>, Value),
    /// The turn answers when it ends.
    Later,
}

pub(crate) async fn answer(connection: &Rc<Connection>, method: &str, id: &RawValue, params: Option<&RawValue>) {
    match dispatch(connection, method, id, params).await {
        Ok(Reply::Value(value)) => connection.reply(id, Ok(value)).await,
        Ok(Reply::Opened(session, value)) => {
            connection.reply(id, Ok(value)).await;
            connection.update(&session.id, commands()).await;
        }
        Ok(Reply::Later) => {}
        Err(error) => connection.reply(id, Err(error)).await,
    }
}

/// Notifications never fail aloud: there is nobody to tell.
pub(crate) fn notice(connection: &Connection, method: &str, params: Option<&RawValue>) {
    match method {
        "session/cancel" => {
            if let Ok(named) = read::<Named>(params) {
                connection.cancel_session(&named.session_id);
            }
        }
        "$/cancel_request" => {
            if let Ok(cancelled) = read::<CancelRequest>(params) {
                connection.sessions.cancel_request(cancelled.request_id.get());
            }
        }
        _ => {}
    }
}

async fn dispatch(
    connection: &Rc<Connection>,
    method: &str,
    id: &RawValue,
    params: Option<&RawValue>,
) -> Result<Reply, RpcError> {
    match method {
        "initialize" => Ok(Reply::Value(initialize(connection, read(params)?))),
        "authenticate" => Ok(Reply::Value(json!({}))),
        "session/new" => new(connection, read(params)?),
        "session/load" => load(connection, read(params)?).await,
        "session/resume" => resume(connection, read(params)?),
        "session/list" => {
            let filter: List = read(params)?;
            connection.sessions.list(filter.cwd.as_deref(), filter.cursor.as_deref()).map(Reply::Value)
        }
        "session/close" => {
            connection.sessions.find(&read::<Named>(params)?.session_id)?.close();
            Ok(Reply::Value(json!({})))
        }
        "session/delete" => {
            connection.sessions.delete(&read::<Named>(params)?.session_id)?;
            Ok(Reply::Value(json!({})))
        }
        "session/set_mode" => set_mode(connection, read(params)?).await,
        "session/set_model" => set_model(connection, read(params)?).await,
        "session/set_config_option" => set_config_option(connection, &read(params)?),
        "session/prompt" => prompt(connection, id, read(params)?),
        _ if method.starts_with("_demo/") => read(params).map(Reply::Value),
        _ => Err(RpcError::new(-32601, format!("method `{method}` is not known to the demo agent"))),
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| RpcError::invalid_params(format!("invalid params: {error}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    /// Any version is answered with ours: the client decides whether it can go on.
    #[serde(rename = "protocolVersion")]
    _protocol_version: u64,
    #[serde(default)]
    client_capabilities: ClientCapabilities,
}

fn initialize(connection: &Connection, params: Initialize) -> Value {
    *connection.client.borrow_mut() = params.client_capabilities;
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "gembridge-demo", "title": "gembridge demo agent", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
        },
        "authMethods": [],
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct New {
    cwd: String,
    mcp_servers: Vec<McpServer>,
}

fn new(connection: &Rc<Connection>, params: New) -> Result<Reply, RpcError> {
    let cwd = absolute(params.cwd)?;
    let session = connection.sessions.create(cwd, mcp::Server::all(params.mcp_servers))?;
    mcp::connect_ahead(connection, &session.servers());
    let mut value = session.choices();
    value["sessionId"] = session.id.clone().into();
    Ok(Reply::Opened(session, value))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reopen {
    session_id: String,
    cwd: String,
    #[serde(default)]
    mcp_servers: Vec<McpServer>,
}

async fn load(connection: &Rc<Connection>, params: Reopen) -> Result<Reply, RpcError> {
    let session = reopen(connection, params)?;
    for exchange in session.history() {
        let content = Text { text: &exchange.prompt };
        connection.update(&session.id, Chunk::Prompt { content }).await;
        if !exchange.answer.is_empty() {
            let content = Text { text: &exchange.answer };
            connection.update(&session.id, Chunk::Message { content }).await;
        }
    }
    let choices = session.choices();
    Ok(Reply::Opened(session, choices))
}

fn resume(connection: &Rc<Connection>, params: Reopen) -> Result<Reply, RpcError> {
    let session = reopen(connection, params)?;
    let choices = session.choices();
    Ok(Reply::Opened(session, choices))
}

fn reopen(connection: &Rc<Connection>, params: Reopen) -> Result<Rc<Session>, RpcError> {
    let session = connection.sessions.find(&params.session_id)?;
    session.reopen(absolute(params.cwd)?, mcp::Server::all(params.mcp_servers))?;
    mcp::connect_ahead(connection, &session.servers());
    Ok(session)
}

fn absolute(cwd: String) -> Result<String, RpcError> {
    if cwd.starts_with('/') {
        return Ok(cwd);
    }
    Err(RpcError::invalid_params(format!("`cwd` is `{cwd}`; send an absolute path")))
}

#[derive(Deserialize)]
struct List {
    cwd: Option<String>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelRequest {
    request_id: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

async fn set_mode(connection: &Connection, params: SetMode) -> Result<Reply, RpcError> {
    let session = connection.sessions.find(&params.session_id)?;
    session.set_mode(&params.mode_id)?;
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": session.mode()});
    connection.update(&session.id, update).await;
    Ok(Reply::Value(json!({})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: String,
    model_id: String,
}

async fn set_model(connection: &Connection, params: SetModel) -> Result<Reply, RpcError> {
    let session = connection.sessions.find(&params.session_id)?;
    session.set_model(&params.model_id)?;
    let update = json!({"sessionUpdate": "config_option_update", "configOptions": session.config_options()});
    connection.update(&session.id, update).await;
    Ok(Reply::Value(json!({})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetConfigOption {
    session_id: String,
    config_id: String,
    value: Value,
}

fn set_config_option(connection: &Connection, params: &SetConfigOption) -> Result<Reply, RpcError> {
    let session = connection.sessions.find(&params.session_id)?;
    match (params.config_id.as_str(), params.value.as_str()) {
        ("model", Some(model)) => session.set_model(model)?,
        ("model", None) => return Err(RpcError::invalid_params("`value` of option `model` must be a string")),
        (other, _) => {
            return Err(RpcError::invalid_params(format!("option `{other}` is not known; the demo agent has `model`")));
        }
    }
    Ok(Reply::Value(json!({"configOptions": session.config_options()})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Vec<ContentBlock>,
}

fn prompt(connection: &Rc<Connection>, id: &RawValue, params: Prompt) -> Result<Reply, RpcError> {
    let session = connection.sessions.find(&params.session_id)?;
    let cancelled = session.begin(id.get())?;
    let turn = turn::run(Rc::clone(connection), session, id.to_owned(), params.prompt, cancelled);
    connection.spawn(turn);
    Ok(Reply::Later)
}

fn commands() -> Value {
    let commands: Vec<_> = WORDS
        .iter()
        .map(|word| {
            let mut command = json!({"name": word.name, "description": word.shows});
            if !word.takes.is_empty() {
                command["input"] = json!({"hint": word.takes});
            }
            command
        })
        .collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}
