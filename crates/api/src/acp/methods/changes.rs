//! What is changed about a session that is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::Change;
use gembridge_core::error::Error;
use gembridge_core::model::{FailureKind, Opaque, SessionId};
use gembridge_core::session::SessionHandle;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::RequestContext;
use crate::acp::error::Refusal;
use crate::acp::{decode, wire};
use crate::jsonrpc::METHOD_NOT_FOUND;

/// What shall be done with a session.
pub enum Order {
    Close,
    Delete,
    Rename(Arc<str>),
    Change(Change),
    /// For the agent alone, whatever it means.
    Extension {
        method: Arc<str>,
        params: BTreeMap<String, Box<RawValue>>,
    },
}

/// The longest title.
const TITLE: usize = 200;

pub fn order(method: &str, params: Option<&RawValue>) -> Result<Order, Refusal> {
    Ok(match method {
        "session/close" => Order::Close,
        "session/delete" => Order::Delete,
        "_gembridge/rename" => {
            #[derive(Deserialize)]
            struct Rename {
                title: String,
            }
            let title = decode::params::<Rename>(params)?.title;
            let title = title.trim();
            if title.is_empty() || title.chars().count() > TITLE || title.chars().any(char::is_control) {
                return Err(Refusal::params(format!("`title` must be one line of 1 to {TITLE} characters")));
            }
            Order::Rename(title.into())
        }
        "session/set_mode" => Order::Change(Change::Mode(decode::params::<wire::SetMode>(params)?.mode_id.into())),
        "session/set_model" => Order::Change(Change::Model(decode::params::<wire::SetModel>(params)?.model_id.into())),
        "session/set_config_option" => {
            let option: wire::SetOption<'_> = decode::params(params)?;
            Order::Change(Change::Option { id: option.config_id.into(), value: decode::opaque(option.value) })
        }
        other => return Err(Refusal::method(other)),
    })
}

pub fn extension(method: &str, params: Option<&RawValue>) -> Order {
    let params = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    Order::Extension { method: method.into(), params }
}

impl RequestContext {
    pub async fn carry_out(&self, id: SessionId, order: Order) -> Result<Value, Refusal> {
        let sessions = self.app.sessions();
        match order {
            Order::Delete => {
                sessions.remove(id, &self.viewer).await?;
                Ok(json!({}))
            }
            Order::Close => {
                sessions.get(id, &self.viewer).await?.close().await?;
                Ok(json!({}))
            }
            Order::Rename(title) => {
                sessions.get(id, &self.viewer).await?.rename(title).await?;
                Ok(json!({}))
            }
            Order::Change(change) => {
                let handle = sessions.get(id, &self.viewer).await?;
                changed(&handle, change).await
            }
            Order::Extension { method, params } => {
                let handle = sessions.get(id, &self.viewer).await?;
                handle.wake().await?;
                let record = handle.record().await?;
                let params = addressed(params, record.agent_session.as_deref())?;
                changed(&handle, Change::Extension { method, params }).await
            }
        }
    }
}

/// The parameters for the agent's own session, the rest as it came: a `Value` cannot hold every number of JSON.
fn addressed(mut params: BTreeMap<String, Box<RawValue>>, session: Option<&str>) -> Result<Opaque, Refusal> {
    let written = to_raw_value(&session).and_then(|session| {
        params.insert("sessionId".to_owned(), session);
        serde_json::to_vec(&params)
    });
    let bytes = written.map_err(|error| Refusal::params(format!("the parameters cannot be passed on: {error}")))?;
    Ok(Opaque(Bytes::from(bytes)))
}

/// Whether the agent does not have what was asked for, by our knowledge or by its own word.
fn is_unable(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Unsupported | FailureKind::Refused { code: METHOD_NOT_FOUND })
}

/// Changes it at the agent, which is woken for that.
async fn changed(handle: &SessionHandle, change: Change) -> Result<Value, Refusal> {
    handle.wake().await?;
    let changed = handle.change(change).await.map_err(|error| match error {
        Error::Agent(failure) if is_unable(failure.kind) => {
            Refusal::new(METHOD_NOT_FOUND, "method_not_found", failure.message)
        }
        other => other.into(),
    })?;
    let answer = changed.answer.and_then(|answer| serde_json::from_slice(&answer.0).ok());
    Ok(answer.filter(Value::is_object).unwrap_or_else(|| json!({})))
}
