//! `POST /v1/responses`: items in, the next response out.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use gembridge_core::exchange::{self, FollowUp, NamedSession, Plan, Resolved};
use gembridge_core::model::{CallId, Message, ReturnOutcome, Role, Timestamp};

use super::Responses;
use super::background::Run;
use super::decode::{self, Conversation, RequestOptions};
use super::encode::{Answer, Framing, Head};
use super::keeper::Keeper;
use super::kept::KeptResponses;
use super::stored::{events, json};
use super::{error, wire};
use crate::dialect::{Caller, OpenCalls, Source, brief, media};
use crate::identity::RequestId;
use crate::problem::Problem;
use crate::sse;

/// Answers, whole or as a stream of server-sent events.
#[utoipa::path(
    post, path = "/v1/responses", tag = "responses", operation_id = "createResponse",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body(content = wire::CreateRequest, example = json!({ "model": "default", "input": "hello" })),
    responses(
        (status = 200, description = "The response; with `stream` its events", content(
            (wire::ResponseObject = "application/json"), (String = "text/event-stream")
        )),
        (status = 400, description = "The request cannot be honoured; `param` names the field"),
        (status = 404, description = "No such model, session or conversation"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
    )
)]
pub(super) async fn create(State(app): State<Arc<Responses>>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
    let answer = match Caller::of_request(Arc::clone(&app.dialects), id, &mut parts) {
        Ok(caller) => answer(&app, caller, &parts.headers, body).await,
        Err(unknown) => Err(unknown),
    };
    answer.unwrap_or_else(|problem| error::response(&problem, &id))
}

async fn answer(
    app: &Arc<Responses>,
    caller: Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response<Body>, Problem> {
    let session = caller.named_session(headers).await;
    let (mut caller, asked) = caller.read(body, Asked::read).await?;
    let Planned { plan, head, keeper, options } = asked.plan(app, &caller, session?, None).await?;
    let resolved = plan.resolved.clone();
    let mut exchange = caller.start(plan).map_err(error::problem)?;
    if options.echo.background {
        let mut answer = Answer::in_events(head, Framing::Sse).kept_by(keeper);
        Run::begin(&mut exchange, &mut answer).await?;
        let run = app.run(exchange, answer);
        return Ok(if options.stream { events(run.follow(None)) } else { json(run.response()) });
    }
    if options.stream {
        let answer = Answer::in_events(head, Framing::Sse).kept_by(keeper);
        let response = caller.stream(exchange, answer, sse::CONTENT_TYPE, &options.ignored, &resolved);
        return response.await.map_err(error::problem);
    }
    let mut answer = Answer::whole(head).kept_by(keeper);
    exchange.finish(&mut answer).await.map_err(error::problem)?;
    answer.end(exchange.tokens());
    answer.keep();
    Ok(caller.whole(answer.encode(), &options.ignored, &resolved, &exchange))
}

/// A request that was read.
pub(super) struct Asked {
    pub options: RequestOptions,
    pub said: Conversation,
}

/// What is to be done about it.
pub(super) struct Planned {
    pub plan: Plan,
    pub head: Head,
    pub keeper: Keeper,
    pub options: RequestOptions,
}

impl Asked {
    pub(super) fn read(caller: &Caller, body: &Bytes) -> Result<Self, Problem> {
        let request = decode::parse(body)?;
        caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(false));
        let options = decode::options(&request)?;
        let said = decode::conversation(&request, Source(body))?;
        Ok(Self { options, said })
    }

    /// Finds what was said before, and who goes on with it.
    pub(super) async fn plan(
        self,
        app: &Arc<Responses>,
        caller: &Caller,
        session: Option<NamedSession>,
        local: Option<&Arc<KeptResponses>>,
    ) -> Result<Planned, Problem> {
        let Self { options, said } = self;
        let past = app.past(caller, &options, &said, local).await?;
        let said = match past {
            Some(past) => said.after(past),
            None => said,
        };
        let follow_up = follow_up(&said)?;
        let instructions = options.echo.instructions.as_deref().map(|text| Message::text(Role::System, text));
        let history: Vec<Message> = instructions.into_iter().chain(said.messages.iter().cloned()).collect();
        check(&said)?;
        let resolved = caller.resolve(&options.model, session.as_ref(), 1).map_err(error::problem)?;
        let exchanges = &caller.dialects.exchanges;
        if let Some(abilities) = exchanges.catalog().abilities(&resolved.agent) {
            media::check_abilities(&history, abilities, resolved.agent.as_str(), |_| "input".to_owned())?;
        }
        let head = head(&resolved, &options);
        let plan = exchanges.plan(exchange::Request {
            principal: caller.identity.principal.clone(),
            viewer: caller.identity.viewer(),
            resolved,
            session,
            history: history.into(),
            follow_up,
            tools: options.tools.clone(),
            output: options.format.clone(),
            stop: Vec::new(),
            limit: options.limit,
            answers: 1,
        });
        let plan = plan.map_err(error::problem)?;
        let keeper = Keeper::new(app, local, caller.identity.principal.clone(), &options, said);
        Ok(Planned { plan, head, keeper, options })
    }
}

fn head(resolved: &Resolved, options: &RequestOptions) -> Head {
    Head {
        id: String::new(),
        created_at: Timestamp::now().0 / 1_000,
        model: resolved.shown().to_owned(),
        previous: options.previous.clone(),
        conversation: options.conversation.clone(),
        echo: options.echo.clone(),
        names: options.names.clone(),
    }
}

fn check(said: &Conversation) -> Result<(), Problem> {
    match said.messages.last() {
        None => Err(Problem::invalid("input", "`input` is empty; say at least one thing")),
        Some(last) if media::says_nothing(last) => {
            Err(Problem::invalid("input", "the newest message is empty; say something in it"))
        }
        Some(_) => Ok(()),
    }
}

/// `None`: the request does not go on with calls. Only what stands after the last answer counts: what was called and
/// given back before is history.
fn follow_up(said: &Conversation) -> Result<Option<FollowUp>, Problem> {
    let last = said.messages.iter().rposition(|message| message.role == Role::Assistant);
    let of_last: Vec<_> = said.calls.iter().filter(|call| Some(call.message) == last).collect();
    let mut open = OpenCalls::new(of_last.iter().map(|call| exchange::CallRef::Id(call.id.clone())));
    let known: HashSet<&str> = said.calls.iter().map(|call| call.id.as_str()).collect();
    let mut results = said.results.iter().peekable();
    for (at, message) in said.messages.iter().enumerate() {
        let result = results.next_if(|result| result.message == at);
        if let Some(result) = result
            && !known.contains(result.id.as_str())
            && result.id.parse::<CallId>().is_err()
        {
            let message =
                format!("`{}` is no call of this conversation; send the call before its result", brief(&result.id));
            return Err(Problem::invalid(result.place.clone(), message));
        }
        if last.is_some_and(|last| at <= last) {
            continue;
        }
        match result {
            Some(result) if of_last.iter().any(|call| call.id == result.id) => {
                open.result(result.call(), message, ReturnOutcome::Done, || result.place.clone())?;
            }
            // The request does not repeat the call: its id says which session it is of.
            Some(result) if !known.contains(result.id.as_str()) => {
                open.known_result(result.call(), message, ReturnOutcome::Done);
            }
            Some(_) | None => open.said(message),
        }
    }
    Ok(open.follow_up())
}
