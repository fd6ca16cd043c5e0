//! `POST /v1/messages`: a conversation in, the next message out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use gembridge_core::exchange::{self, NamedSession, Plan, Tools};
use gembridge_core::model::{Message, Role, SessionId};
use uuid::Uuid;

use super::decode::{self, Conversation, RequestOptions, ThreadWish};
use super::encode::{Events, Head, Thoughts, WholeBody};
use super::error::{self, Refusal, ThreadRefusal};
use super::threads::{Addition, Thread};
use super::{Messages, wire};
use crate::dialect::{Caller, Source, media};
use crate::identity::{RequestId, SESSION_HEADER};
use crate::problem::{Kind, Problem};
use crate::sse;

pub(super) async fn create(State(app): State<Arc<Messages>>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
    let answer = match Caller::new(Arc::clone(&app.dialects), id, &mut parts.extensions) {
        Ok(caller) => app.answer(caller, &parts.headers, body).await,
        Err(unknown) => Err(unknown.into()),
    };
    let mut response = answer.unwrap_or_else(|refusal| refusal.response(&id));
    error::name(&mut response, &id);
    response
}

/// What a request says, before it is known in which session.
struct Asked {
    options: RequestOptions,
    said: Conversation,
}

impl Messages {
    async fn answer(&self, caller: Caller, headers: &HeaderMap, body: Body) -> Result<Response<Body>, Refusal> {
        let session = caller.named_session(headers).await?;
        let (caller, Asked { mut options, said }) = caller.read(body, read).await?;
        let session = match &options.thread {
            Some(ThreadWish::Continue(message)) => {
                let thread = self.threads.go_on(message, &caller.identity.principal, addition(&said))?;
                options.tools = inherited(options.tools, &thread);
                let viewer = caller.identity.viewer();
                let named = self.dialects.exchanges.named_session(thread.session, &viewer).await;
                Some(named.map_err(|_| Refusal::Thread(ThreadRefusal::NotFound))?)
            }
            Some(ThreadWish::Create) | None => session,
        };
        let plan = plan(&caller, &options, said, session)?;
        self.carry_out(caller, &options, plan).await
    }

    async fn carry_out(
        &self,
        mut caller: Caller,
        options: &RequestOptions,
        plan: Plan,
    ) -> Result<Response<Body>, Refusal> {
        let resolved = plan.resolved.clone();
        let head = Head {
            id: format!("msg_{}", Uuid::now_v7().simple()),
            model: resolved.shown().to_owned(),
            input_tokens: plan.input_tokens(),
            thoughts: if options.thoughts { Thoughts::Shown } else { Thoughts::LeftOut },
        };
        let id = head.id.clone();
        let mut exchange = caller.start(plan).map_err(error::problem)?;
        let response = if options.stream {
            let events = Events::new(head);
            let response = caller.stream(exchange, events, sse::CONTENT_TYPE, &options.ignored, &resolved);
            response.await.map_err(error::problem)?
        } else {
            let mut body = WholeBody::new(head);
            exchange.finish(&mut body).await.map_err(error::problem)?;
            let body = body
                .encode(exchange.tokens())
                .map_err(|error| Problem::new(Kind::Agent, format!("the agent's text is not sound JSON: {error}")))?;
            caller.whole(body, &options.ignored, &resolved, &exchange)
        };
        if options.thread.is_some()
            && let Some(session) = session_of(&response)
        {
            let owner = caller.identity.principal.clone();
            self.threads.keep(id, Thread { owner, session, tools: options.tools.clone() });
        }
        Ok(response)
    }
}

impl From<ThreadRefusal> for Refusal {
    fn from(refusal: ThreadRefusal) -> Self {
        Self::Thread(refusal)
    }
}

/// Reads the request, once. Nothing waits here.
fn read(caller: &Caller, body: &Bytes) -> Result<Asked, Problem> {
    let request: wire::CreateRequest<'_> = decode::parse(body)?;
    caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(false));
    let options = decode::options(&request)?;
    let said = decode::conversation(&request, options.thread.as_ref(), Source(body))?;
    Ok(Asked { options, said })
}

/// Who answers, and what the agent is told.
fn plan(
    caller: &Caller,
    options: &RequestOptions,
    said: Conversation,
    session: Option<NamedSession>,
) -> Result<Plan, Problem> {
    let exchanges = &caller.dialects.exchanges;
    let resolved = caller.resolve(&options.model, session.as_ref(), 1).map_err(error::problem)?;
    if let Some(abilities) = exchanges.catalog().abilities(&resolved.agent) {
        let place = |at: usize| match said.places.get(at).copied().flatten() {
            Some(at) => format!("messages[{at}].content"),
            None => "system".to_owned(),
        };
        media::check_abilities(&said.messages, abilities, resolved.agent.as_str(), place)?;
    }
    let plan = exchanges.plan(exchange::Request {
        principal: caller.identity.principal.clone(),
        viewer: caller.identity.viewer(),
        resolved,
        session,
        history: said.messages.into(),
        follow_up: said.follow_up,
        tools: options.tools.clone(),
        output: options.format.clone(),
        stop: options.stop.clone(),
        limit: options.limit,
        answers: 1,
    });
    plan.map_err(error::problem)
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
