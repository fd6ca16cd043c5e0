//! `POST /v1/responses`: items in, the next response out.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use bytes::Bytes;
use gembridge_core::exchange::{CallRef, FollowUp, NamedSession, Resolved};
use gembridge_core::model::{CallId, Message, ReturnOutcome, Role, Timestamp};

use super::Responses;
use super::background::Run;
use super::decode::{self, Conversation, RequestOptions};
use super::encode::{Answer, Framing, Head};
use super::kept::{Keeper, KeptResponses};
use super::stored::{events, json};
use super::{error, wire};
use crate::dialect::{self, Caller, OpenCalls, Source, brief, media};
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
pub(super) async fn create(State(app): State<Arc<Responses>>, request: Request) -> Result<Response<Body>, Problem> {
    respond(&app, request, None).await
}

/// Answers one request. `local` is what the WebSocket keeps that it came by: its answer is events, one in each line.
pub(super) async fn respond(
    app: &Arc<Responses>,
    request: Request,
    local: Option<&Arc<KeptResponses>>,
) -> Result<Response<Body>, Problem> {
    let (caller, headers, body) = Caller::of(&app.dialects, request)?;
    let session = caller.named_session(&headers).await;
    let (caller, asked) = caller.read(body, Asked::read).await?;
    let previous = asked.options.previous.clone();
    let answered = asked.answer(app, caller, session?, local).await;
    if let (Err(_), Some(local), Some(previous)) = (&answered, local, previous) {
        // What could not be gone on with is not gone on with later either.
        local.remove(&previous);
    }
    answered
}

/// A request that was read.
pub(super) struct Asked {
    pub options: RequestOptions,
    pub said: Conversation,
}

impl Asked {
    pub(super) fn read(caller: &Caller, body: &Bytes) -> Result<Self, Problem> {
        let request = decode::parse(body)?;
        caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(false));
        let options = decode::options(&request)?;
        let said = decode::conversation(&request, Source(body))?;
        Ok(Self { options, said })
    }

    /// Everything that was said, in which the request finds its place.
    pub(super) async fn with_past(
        self,
        app: &Responses,
        caller: &Caller,
        local: Option<&Arc<KeptResponses>>,
    ) -> Result<Self, Problem> {
        let past = app.past(caller, &self.options, &self.said, local).await?.unwrap_or_default();
        let said = self.said.after(past);
        said.check_length("input")?;
        Ok(Self { said, ..self })
    }

    /// What the agent may be told, the instructions of this request first.
    pub(super) fn history(&self) -> Vec<Message> {
        let instructions = self.options.echo.instructions.as_deref().map(|text| Message::text(Role::System, text));
        instructions.into_iter().chain(self.said.messages.iter().cloned()).collect()
    }

    async fn answer(
        self,
        app: &Arc<Responses>,
        mut caller: Caller,
        session: Option<NamedSession>,
        local: Option<&Arc<KeptResponses>>,
    ) -> Result<Response<Body>, Problem> {
        let asked = self.with_past(app, &caller, local).await?;
        let follow_up = follow_up(&asked.said)?;
        check(&asked.said)?;
        let history = asked.history();
        let Self { options, said } = asked;
        let wanted = dialect::Asked {
            model: options.model.clone(),
            history,
            follow_up,
            tools: options.tools.clone(),
            output: options.format.clone(),
            stop: Vec::new(),
            limit: options.limit,
            answers: 1,
        };
        let plan = caller.plan(wanted, session, &error::NAMES, |_| "input".to_owned())?;
        let keeper = Keeper::new(app, local, caller.identity.principal.clone(), &options, said);
        let framing = if local.is_some() { Framing::Lines } else { Framing::Sse };
        let is_streamed = options.stream || options.echo.background || local.is_some();
        let (head, ignored) = (head(&plan.resolved, &options), &options.ignored);
        let mut answer = Answer::new(head, is_streamed.then_some(framing)).kept_by(keeper);
        if !options.generate {
            return Ok(answer.without_words());
        }
        if options.echo.background {
            let exchange = caller.start(plan).map_err(error::problem)?;
            let run = Run::begin(app, exchange, answer, caller.request).await?;
            return Ok(if options.stream { events(run.follow(None)) } else { json(run.response()) });
        }
        if is_streamed {
            return caller.answer_stream(plan, answer, sse::CONTENT_TYPE, ignored, &error::NAMES).await;
        }
        caller.answer_whole(plan, answer, ignored, &error::NAMES).await
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
    let mut open = OpenCalls::new(of_last.iter().map(|call| CallRef::Id(call.id.clone())));
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
