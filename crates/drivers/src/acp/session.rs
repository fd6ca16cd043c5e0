//! One session of one agent process, as the core drives it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, CloseMode, Signal, SlashCommands, Update};
use gembridge_core::model::{
    Answer, AskBody, AskId, Content, Event, Failure, FailureKind, Model, Opaque, OptionKind, Prompt, ToolCall,
    ToolCallId, ToolStatus,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::client_methods::AgreedWrite;
use super::client_rights::ClientRights;
use super::description::{Description, StandIns};
use super::process::{AgentProcess, Lease};
use super::prompt_filter::{self, Files};
use super::routing_table::{Pending, Purpose};
use super::{encode, error, wire};
use crate::profile::Quirk;

/// A change of mode or model is answered at once, or the agent hangs.
const CHANGE: Duration = Duration::from_secs(30);
const CLOSE: Duration = Duration::from_secs(2);

pub(super) struct AcpSession {
    lease: Lease,
    name: Arc<str>,
    slash: SlashCommands,
    /// The agent was told to end the turn that runs.
    told_to_cancel: bool,
    description: Arc<Description>,
}

impl AcpSession {
    pub(super) fn new(lease: Lease, name: Arc<str>, slash: SlashCommands, description: Arc<Description>) -> Self {
        Self { lease, name, slash, told_to_cancel: false, description }
    }

    pub(super) fn description(&self) -> &Description {
        &self.description
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(super) fn rights(&self) -> &ClientRights {
        self.lease.process().rights()
    }

    /// Whether the agent is known to have no such model.
    pub(super) fn check_model(&self, model: &Arc<str>) -> Result<(), Failure> {
        checked(&self.description.models, &Change::Model(Arc::clone(model)))
    }

    /// A change of this session, on its way.
    pub(super) fn changing(&self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let Description { models, options, .. } = self.description();
        if let Err(failure) = self.rights().check(&change, options).and_then(|()| checked(models, &change)) {
            return Box::pin(std::future::ready(Err(failure)));
        }
        let (process, name) = (Arc::clone(self.lease.process()), self.name());
        let description = Arc::clone(&self.description);
        Box::pin(async move { changed(&process, &name, &description.stand_ins, change).await })
    }

    fn has(&self, quirk: Quirk) -> bool {
        self.lease.connection().router().has(quirk)
    }

    fn cancel_line(&self) -> Bytes {
        encode::notification("session/cancel", &json!({ "sessionId": self.name }))
    }

    /// What the agent may have of a prompt.
    fn filtered<'p>(&self, prompt: &'p Prompt) -> Result<Cow<'p, [Content]>, Failure> {
        let slash = if self.has(Quirk::LeadingSlashIsText) { SlashCommands::Run } else { self.slash };
        let methods = self.lease.connection().table().slot(&self.name).map(|slot| Arc::clone(&slot.methods));
        let work = methods.as_ref().and_then(|methods| methods.work.as_ref());
        let files = work.map_or(Files::None, |work| Files::Workspace(&work.jail));
        prompt_filter::filtered(prompt, &files, slash)
    }

    /// The agent no longer obeys. Alone it is ended at once; others who share it may finish first.
    fn condemn(&self) {
        let process = self.lease.process();
        process.condemn();
        if process.live() <= 1 {
            process.connection().kill();
        }
    }

    /// A refused tool that never reports back is closed by us.
    fn close_refused(&self, body: &AskBody, answer: &Answer) {
        let AskBody::Permission { tool, options, .. } = body else { return };
        let allows = |id: &Arc<str>| {
            options.iter().any(|option| {
                option.id == *id && matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways)
            })
        };
        if matches!(answer, Answer::Option(id) if allows(id)) || !self.has(Quirk::RefusedToolsStaySilent) {
            return;
        }
        self.close_tool(tool.id.clone());
    }

    fn close_tool(&self, tool: ToolCallId) {
        let mut closed = ToolCall::update(tool);
        closed.status = Some(ToolStatus::Failed);
        let signal = Signal::Update(Update::ours(Event::ToolCall(Box::new(closed))));
        self.lease.connection().table().push_to(&self.name, signal);
    }
}

impl AgentSession for AcpSession {
    fn process(&self) -> Option<u32> {
        self.lease.connection().pid()
    }

    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        let content = self.filtered(prompt)?;
        let blocks = encode::blocks(&content, self.lease.process().facts().prompt)?;
        let connection = self.lease.connection();
        let id = connection.table().expect(Pending::Prompt { session: self.name() })?;
        if let Err(failure) = connection.send(encode::prompt(id, &self.name, &blocks, prompt.label.as_ref())) {
            connection.table().forget(id);
            return Err(failure);
        }
        self.lease.count_turn();
        self.told_to_cancel = false;
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.told_to_cancel = true;
        self.lease.connection().send(self.cancel_line())
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        let connection = self.lease.connection();
        let taken = connection.table().slot(&self.name).and_then(|slot| {
            let open = slot.asks.remove(&ask)?;
            Some((open, Arc::clone(&slot.methods)))
        });
        let Some((open, methods)) = taken else {
            return Err(Failure::new(FailureKind::Internal, "the agent does not wait for this answer"));
        };
        match open.purpose {
            Purpose::Agent => {
                connection.answer(encode::answer(&open.id, &open.body, &answer))?;
                self.close_refused(&open.body, &answer);
                Ok(())
            }
            Purpose::Write { path, content } if super::client_methods::consented(&answer) => {
                self.lease.write(AgreedWrite { methods, id: open.id, path, content }, self.name());
                Ok(())
            }
            Purpose::Write { path, .. } => {
                let refusal = format!("writing `{path}` was refused");
                self.close_tool(super::client_methods::consent_id(&path));
                connection.answer(encode::error(&open.id, encode::INVALID_REQUEST, &refusal))
            }
        }
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        self.changing(change)
    }

    fn close(self: Box<Self>, parting: CloseMode) -> BoxFuture<'static, ()> {
        // At once: whoever opens a session next must not get a place in a process that does not obey.
        if parting == CloseMode::Kill {
            self.condemn();
        }
        Box::pin(async move {
            match parting {
                CloseMode::Release if self.lease.process().abilities().close => {
                    let params = json!({ "sessionId": self.name });
                    if let Err(failure) = self.lease.connection().call("session/close", &params, CLOSE).await {
                        tracing::debug!(%failure, "the agent did not close a session");
                    }
                }
                CloseMode::Release | CloseMode::Kill => {}
            }
        })
    }
}

impl Drop for AcpSession {
    fn drop(&mut self) {
        let connection = self.lease.connection();
        let removed = connection.table().remove(&self.name);
        let Some(removed) = removed else { return };
        removed.methods.drop_everything();
        if removed.had_turn
            && !self.told_to_cancel
            && !connection.is_gone()
            && let Err(failure) = connection.send(self.cancel_line())
        {
            tracing::debug!(%failure, "a turn that nobody follows could not be cancelled");
        }
    }
}

/// A model that the agent does not list is refused here: some agents take any name and fail at the next prompt.
fn checked(models: &[Model], change: &Change) -> Result<(), Failure> {
    let Change::Model(model) = change else { return Ok(()) };
    if models.is_empty() || models.iter().any(|known| known.id == *model) {
        return Ok(());
    }
    let mut known: Vec<&str> = Vec::new();
    for model in models {
        if !known.contains(&&*model.id) {
            known.push(&model.id);
        }
    }
    let message = format!("model `{model}` is not one of the agent's: {}", known.join(", "));
    Err(Failure::new(FailureKind::Unsupported, message))
}

async fn changed(
    process: &AgentProcess,
    session: &str,
    stand_ins: &StandIns,
    change: Change,
) -> Result<Changed, Failure> {
    let connection = process.connection();
    match change {
        Change::Mode(mode) => {
            let answer = match &stand_ins.mode {
                None => {
                    let params = json!({ "sessionId": session, "modeId": mode });
                    connection.call("session/set_mode", &params, CHANGE).await?
                }
                Some(option) => set_option(connection, session, option, &json!(mode)).await?,
            };
            Ok(Changed { events: vec![Event::Mode(mode)], answer: Some(Opaque(answer)) })
        }
        Change::Model(model) => {
            let answer = match &stand_ins.model {
                None => {
                    let params = json!({ "sessionId": session, "modelId": model });
                    connection.call("session/set_model", &params, CHANGE).await?
                }
                Some(option) => set_option(connection, session, option, &json!(model)).await?,
            };
            Ok(Changed { events: vec![Event::Model(model)], answer: Some(Opaque(answer)) })
        }
        Change::Option { id, value } => {
            let value: Box<RawValue> = serde_json::from_slice(&value.0)
                .map_err(|unread| Failure::new(FailureKind::Unsupported, format!("the option's value: {unread}")))?;
            let answer = set_option(connection, session, &id, &value).await?;
            let state = serde_json::from_slice::<wire::ConfigOptions<'_>>(&answer);
            let events = state.map(|state| vec![Event::Options(opaque(state.config_options))]).unwrap_or_default();
            Ok(Changed { events, answer: Some(Opaque(answer)) })
        }
        Change::Extension { method, params } => {
            let params: Box<RawValue> = serde_json::from_slice(&params.0)
                .map_err(|unread| error::protocol(&connection.router().agent, unread))?;
            let answer = connection.call(&method, &params, CHANGE).await?;
            Ok(Changed { events: Vec::new(), answer: Some(Opaque(answer)) })
        }
    }
}

async fn set_option(
    connection: &super::connection::Connection,
    session: &str,
    option: &str,
    value: &(impl serde::Serialize + Sync),
) -> Result<Bytes, Failure> {
    let params = json!({ "sessionId": session, "configId": option, "value": value });
    connection.call("session/set_config_option", &params, CHANGE).await
}

fn opaque(raw: &RawValue) -> Opaque {
    Opaque(Bytes::copy_from_slice(raw.get().as_bytes()))
}
