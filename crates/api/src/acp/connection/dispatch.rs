//! Messages of a client, each to its method; and what comes of them, back to the client.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::Done;
use super::{Connection, Ending, Greeting, Watch};
use crate::acp::error::Refusal;
use crate::acp::methods::{self, RequestContext};
use crate::acp::{Manner, decode, encode, wire};
use crate::identity::Rank;
use crate::jsonrpc::{self, Incoming, Malformed, PARSE_ERROR};
use crate::websocket::CloseCode;

impl Connection {
    pub(super) fn on_message(&mut self, text: &str) {
        match jsonrpc::read(text) {
            Ok(Incoming::Request { id, method, params }) => {
                if self.may_begin(&method) {
                    self.on_request(id, &method, params, text);
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                if self.may_begin(&method) {
                    self.on_notification(&method, params, text);
                }
            }
            Ok(Incoming::Response { id, result }) => self.on_response(id, result),
            Err(malformed) => {
                let refusal = match malformed {
                    Malformed::Unreadable => Refusal::new(PARSE_ERROR, "parse_error", "the message is no JSON"),
                    Malformed::Invalid(why) => Refusal::request(why),
                };
                encode::error(self.socket.out(), RawValue::NULL, &refusal);
            }
        }
    }

    /// `initialize` comes first, except where a client may begin as it likes.
    fn may_begin(&mut self, method: &str) -> bool {
        if self.greeting == Greeting::Done || method == "$/ping" {
            return true;
        }
        if method == "initialize" {
            self.greeting = Greeting::Done;
            return true;
        }
        if self.guest.manner == Manner::InitializeFirst {
            self.ending = Some(Ending::Told(CloseCode::PROTOCOL, "`initialize` comes first"));
            return false;
        }
        self.greeting = Greeting::Done;
        self.show_named_session();
        true
    }

    pub(super) fn context(&self) -> RequestContext {
        RequestContext {
            app: Arc::clone(&self.app),
            identity: self.guest.identity.clone(),
            viewer: self.viewer.clone(),
            connection_id: self.guest.connection_id.clone(),
            named: self.guest.named,
        }
    }

    fn on_request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>, text: &str) {
        if let Err(refusal) = self.begin(id, method, params, text) {
            encode::error(self.socket.out(), id, &refusal);
        }
    }

    fn begin(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>, text: &str) -> Result<(), Refusal> {
        if method == "$/ping" {
            encode::result(self.socket.out(), id, &json!({}));
            return Ok(());
        }
        if self.calls.has(id) || self.subscriptions.iter().any(|subscription| subscription.owes(id)) {
            return Err(Refusal::request("a request with this `id` is under way; give each its own"));
        }
        if self.calls.len() >= self.app.parts.config.calls {
            return Err(Refusal::busy("too many requests of this client are under way; wait for some to end"));
        }
        self.note(method, params);
        let request = id.to_owned();
        let context = self.context();
        match method {
            "initialize" => {
                let wishes: wire::Initialize = decode::params(params)?;
                self.fills_forms = wishes.client_capabilities.elicitation.is_some();
                self.extensions = wishes.extensions();
                self.calls.spawn(id, async move { Done::Greeted { request, result: context.initialize().await } });
            }
            "session/new" => {
                let (new, wishes) = (decode::params::<wire::NewSession>(params)?, decode::wishes(params)?);
                self.check_subscriptions(None)?;
                self.calls.spawn(id, async move {
                    match context.new_session(new, wishes).await {
                        Ok((session, taken)) => Done::Subscribed { session, request: Some(request), taken: Ok(taken) },
                        Err(refusal) => Done::Reply { request, result: Err(refusal) },
                    }
                });
            }
            "session/load" | "session/resume" | "_gembridge/attach" => self.attach(id, method, params, context)?,
            "session/prompt" => self.prompt(id, params, text)?,
            "_gembridge/detach" => {
                let session = decode::session(params)?;
                self.leave_session(session);
                encode::result(self.socket.out(), id, &json!({}));
            }
            "_gembridge/watch_sessions" => {
                if !matches!(self.watch, Watch::Yes) {
                    self.watch = Watch::Begins(self.app.sessions().watch(self.viewer.clone()));
                }
                let wish = decode::params(params)?;
                self.reply(id, async move { context.sessions(wish).await });
            }
            _ => self.simple(id, method, params, context)?,
        }
        Ok(())
    }

    /// For the audit: who did what to which session, and never what was said.
    fn note(&self, method: &str, params: Option<&RawValue>) {
        if method.starts_with("session/") && method != "session/list" {
            tracing::info!(
                target: "gembridge::audit",
                principal = self.guest.identity.principal.name(),
                connection = self.guest.connection_id,
                method,
                session = decode::session(params).ok().map(|session| session.to_string()),
                "acp"
            );
        }
    }

    /// Methods whose answer is all that comes of them.
    fn simple(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        context: RequestContext,
    ) -> Result<(), Refusal> {
        match method {
            // The key that came with the connection is all that it takes.
            "authenticate" | "logout" => encode::result(self.socket.out(), id, &json!({})),
            "session/list" => {
                let wish = decode::params(params)?;
                self.reply(id, async move { context.list(wish).await });
            }
            "_gembridge/sessions" => {
                let wish = decode::params(params)?;
                self.reply(id, async move { context.sessions(wish).await });
            }
            "_gembridge/agents" => self.reply(id, async move { Ok(context.agents().await) }),
            "session/close"
            | "session/delete"
            | "_gembridge/rename"
            | "session/set_mode"
            | "session/set_model"
            | "session/set_config_option" => {
                let session = decode::session(params)?;
                let order = methods::order(method, params)?;
                self.reply(id, async move { context.carry_out(session, order).await });
            }
            other => {
                // An agent does what its client says, so nothing that is not in this table goes to it for a guest. For an
                // operator its own extension methods do, as far as its profile lists them; never a method of the protocol.
                let is_extension = other.starts_with('_') && !other.starts_with("_gembridge/");
                if !is_extension || self.guest.identity.rank != Rank::Admin {
                    return Err(Refusal::method(other));
                }
                let Ok(session) = decode::session(params) else { return Err(Refusal::method(other)) };
                let order = methods::extension(other, params);
                self.reply(id, async move { context.carry_out(session, order).await });
            }
        }
        Ok(())
    }

    fn reply(&mut self, id: &RawValue, call: impl Future<Output = Result<Value, Refusal>> + Send + 'static) {
        let request = id.to_owned();
        self.calls.spawn(id, async move { Done::Reply { request, result: call.await } });
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>, text: &str) {
        match method {
            "session/cancel" => {
                if let Ok(session) = decode::session(params) {
                    self.cancel(session, text);
                }
            }
            "$/cancel_request" => {
                if let Ok(wish) = decode::params::<wire::CancelRequest<'_>>(params) {
                    self.cancel_request(wish.request_id);
                }
            }
            // Nobody waits for an answer to what we do not know.
            _ => {}
        }
    }

    pub(super) fn show_all_sessions(&mut self) {
        let context = self.context();
        self.calls.run(async move { Done::Sessions(context.all_sessions().await) });
    }

    pub(super) fn on_done(&mut self, done: Done) {
        match done {
            Done::Reply { request, result: Ok(result) } => encode::result(self.socket.out(), &request, &result),
            Done::Reply { request, result: Err(refusal) } => encode::error(self.socket.out(), &request, &refusal),
            Done::Greeted { request, result } => {
                encode::result(self.socket.out(), &request, &result);
                self.show_named_session();
            }
            Done::Subscribed { request, taken: Ok(taken), .. } => self.on_subscribed(request, *taken),
            Done::Subscribed { session, request, taken: Err(refusal) } => {
                if let Some(request) = request {
                    encode::error(self.socket.out(), &request, &refusal);
                }
                self.refuse_waiting(session, &refusal);
            }
            Done::Prompted { session, request, accepted } => self.on_prompted(session, &request, accepted),
            Done::AnswerRefused { session, ask, error } => self.on_refused_answer(session, ask, &error),
            Done::Sessions(sessions) => {
                for session in sessions {
                    let params = json!({ "session": session });
                    encode::notification(self.socket.out(), "_gembridge/session_changed", &params);
                }
            }
            Done::Nothing => {}
        }
    }
}
