//! `POST /v1/messages`: a conversation in, the next message out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use gembridge_core::exchange::{Plan, Tools};
use gembridge_core::model::{Message, Role, SessionId};
use uuid::Uuid;

use super::decode::{self, Conversation, RequestOptions, ThreadWish};
use super::encode::{Events, Head, WholeBody};
use super::error::{self, ThreadRefusal};
use super::threads::{Addition, Thread};
use super::{Messages, wire};
use crate::dialect::{Asked, Caller, Source};
use crate::identity::SESSION_HEADER;
use crate::json::AnyObject;
use crate::problem::Problem;
use crate::sse;

/// Answers a conversation, whole or as a stream of server-sent events.
#[utoipa::path(
    post, path = "/v1/messages", tag = "messages", operation_id = "createMessage",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body(content = AnyObject, description = "As Anthropic's libraries send it", example = json!({
        "model": "default", "max_tokens": 1024, "messages": [{ "role": "user", "content": "hello" }]
    })),
    responses(
        (status = 200, description = "The message; with `stream` its events", content(
            (AnyObject = "application/json"), (String = "text/event-stream")
        )),
        (status = 400, description = "The request cannot be honoured; the message names the field"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
    )
)]
pub(super) async fn create(State(app): State<Arc<Messages>>, request: Request) -> Result<Response<Body>, Problem> {
    let (caller, headers, body) = Caller::of(&app.dialects, request)?;
    let id = caller.request;
    let mut response = app.answer(caller, &headers, body).await?;
    error::name(&mut response, &id);
    Ok(response)
}

/// What a request says, before it is known in which session.
struct Read {
    options: RequestOptions,
    said: Conversation,
}

impl Messages {
    async fn answer(&self, caller: Caller, headers: &HeaderMap, body: Body) -> Result<Response<Body>, Problem> {
        let session = caller.named_session(headers).await?;
        let (caller, Read { mut options, said }) = caller.read(body, read).await?;
        let session = match &options.thread {
            Some(ThreadWish::Continue(message)) => {
                let thread = self.threads.go_on(message, &caller.identity.principal, addition(&said))?;
                options.tools = inherited(options.tools, &thread);
                let viewer = caller.identity.viewer();
                let named = self.dialects.exchanges.named_session(thread.session, &viewer).await;
                Some(named.map_err(|_| ThreadRefusal::NotFound)?)
            }
            Some(ThreadWish::Create) | None => session,
        };
        let RequestOptions { tools, format, stop, .. } = options.clone();
        let place = |at: usize| match said.places.get(at).copied().flatten() {
            Some(at) => format!("messages[{at}].content"),
            None => "system".to_owned(),
        };
        let asked = Asked {
            model: options.model.clone(),
            history: said.messages,
            follow_up: said.follow_up,
            tools,
            output: format,
            stop,
            limit: options.limit,
            answers: 1,
        };
        let plan = caller.plan(asked, session, &error::NAMES, place)?;
        self.carry_out(caller, &options, plan).await
    }

    async fn carry_out(
        &self,
        mut caller: Caller,
        options: &RequestOptions,
        plan: Plan,
    ) -> Result<Response<Body>, Problem> {
        let head = Head {
            id: format!("msg_{}", Uuid::now_v7().simple()),
            model: plan.resolved.shown().to_owned(),
            input_tokens: plan.input_tokens(),
            thoughts: options.thoughts,
        };
        let id = head.id.clone();
        let (ignored, names) = (&options.ignored, &error::NAMES);
        let response = if options.stream {
            caller.answer_stream(plan, Events::new(head), sse::CONTENT_TYPE, ignored, names).await?
        } else {
            caller.answer_whole(plan, WholeBody::new(head), ignored, names).await?
        };
        if options.thread.is_some()
            && let Some(session) = session_of(&response)
        {
            let owner = caller.identity.principal.clone();
            self.threads.keep(&id, Thread { owner, session, tools: options.tools.clone() });
        }
        Ok(response)
    }
}

/// Reads the request, once. Nothing waits here.
fn read(caller: &Caller, body: &Bytes) -> Result<Read, Problem> {
    let request: wire::CreateRequest<'_> = decode::parse(body)?;
    caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(false));
    let options = decode::options(&request)?;
    let said = decode::conversation(&request, options.thread.as_ref(), Source(body))?;
    Ok(Read { options, said })
}

/// What goes on with a thread does not say again which tools there are.
fn inherited(tools: Tools, thread: &Thread) -> Tools {
    if tools.offered.is_empty() { Tools { choice: tools.choice, ..thread.tools.clone() } } else { tools }
}

fn addition(said: &Conversation) -> Addition {
    let is_result = |message: &Message| message.role == Role::Tool;
    if said.messages.iter().any(is_result) { Addition::Results } else { Addition::Words }
}

fn session_of(response: &Response<Body>) -> Option<SessionId> {
    response.headers().get(SESSION_HEADER)?.to_str().ok()?.parse().ok()
}
