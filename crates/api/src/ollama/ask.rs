//! `POST /api/chat` and `POST /api/generate`: a conversation or a prompt in, the next answer out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use gembridge_core::exchange::{NamedSession, Plan};
use gembridge_core::model::Timestamp;

use super::decode::{self, AskOptions, Kinds};
use super::encode::{Clock, Head, Lines, Shape, WholeAnswer};
use super::{error, wire};
use crate::dialect::{Asked, Caller, Dialects, JSON, Source};
use crate::iso_time::iso;
use crate::json::AnyObject;
use crate::problem::Problem;

/// One JSON object in each line.
pub(super) const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// Answers a conversation, in lines of JSON or, with `stream: false`, whole.
#[utoipa::path(
    post, path = "/api/chat", tag = "ollama", operation_id = "ollamaChat",
    request_body(content = AnyObject, description = "As clients of Ollama send it", example = json!({
        "model": "default", "messages": [{ "role": "user", "content": "hello" }]
    })),
    responses(
        (status = 200, description = "The answer", content(
            (AnyObject = "application/json"), (String = "application/x-ndjson")
        )),
        (status = 400, description = "The request cannot be honoured; the text names the field"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
    )
)]
pub(super) async fn chat(State(dialects): State<Arc<Dialects>>, request: Request) -> Result<Response<Body>, Problem> {
    answer(&dialects, request, Kinds::Chat).await
}

/// Answers a prompt, in lines of JSON or, with `stream: false`, whole.
#[utoipa::path(
    post, path = "/api/generate", tag = "ollama", operation_id = "ollamaGenerate",
    request_body(content = AnyObject, description = "As clients of Ollama send it", example = json!({
        "model": "default", "prompt": "hello"
    })),
    responses(
        (status = 200, description = "The answer", content(
            (AnyObject = "application/json"), (String = "application/x-ndjson")
        )),
        (status = 400, description = "The request cannot be honoured; the text names the field"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
    )
)]
pub(super) async fn generate(
    State(dialects): State<Arc<Dialects>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    answer(&dialects, request, Kinds::Generate).await
}

/// What is to be done about a request.
enum Task {
    /// Nothing is said in it: the model is there, and the client is told so.
    Load {
        head: Head,
        reason: &'static str,
        stream: bool,
    },
    Answer {
        head: Head,
        options: Box<AskOptions>,
        plan: Box<Plan>,
    },
}

async fn answer(dialects: &Arc<Dialects>, request: Request, kind: Kinds) -> Result<Response<Body>, Problem> {
    let clock = Clock::started();
    let (caller, headers, body) = Caller::of(dialects, request)?;
    let session = caller.named_session(&headers).await;
    let (mut caller, task) =
        caller.read(body, move |caller, body| understand(caller, body, session, kind, clock)).await?;
    match task {
        Task::Load { head, reason, stream } => Ok(loaded(&head, reason, stream)),
        Task::Answer { head, options, plan } if options.stream => {
            caller.answer_stream(*plan, Lines::new(head), LINES, &options.ignored, &error::NAMES).await
        }
        Task::Answer { head, options, plan } => {
            caller.answer_whole(*plan, WholeAnswer::new(head), &options.ignored, &error::NAMES).await
        }
    }
}

/// Reads the request, once: what it wants, who answers, and what the agent is told. Nothing waits here.
fn understand(
    caller: &Caller,
    body: &Bytes,
    session: Result<Option<NamedSession>, Problem>,
    kind: Kinds,
    clock: Clock,
) -> Result<Task, Problem> {
    let request: wire::Ask<'_> = decode::parse(body)?;
    caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(true));
    let session = session?;
    let options = decode::options(&request, kind)?;
    let catalog = caller.dialects.exchanges.catalog();
    let model = decode::catalog_name(&options.model, catalog);
    let head = head(&options, kind, clock);
    if let Some(reason) = decode::load(&request, kind) {
        catalog.resolve(&model).map_err(error::problem)?;
        return Ok(Task::Load { head, reason, stream: options.stream });
    }
    let said = match kind {
        Kinds::Chat => decode::conversation(&request, Source(body))?,
        Kinds::Generate => decode::generation(&request, Source(body))?,
    };
    let asked = Asked {
        model,
        history: said.messages,
        follow_up: said.follow_up,
        tools: options.tools.clone(),
        output: options.format.clone(),
        stop: options.stop.clone(),
        limit: options.limit,
        answers: 1,
    };
    let plan = caller.plan(asked, session, &error::NAMES, |at| format!("messages[{at}].images"))?;
    Ok(Task::Answer { head, options: Box::new(options), plan: Box::new(plan) })
}

fn head(options: &AskOptions, kind: Kinds, clock: Clock) -> Head {
    Head {
        model: options.model.clone(),
        created_at: iso(Timestamp::now()),
        shape: match kind {
            Kinds::Chat => Shape::Chat,
            Kinds::Generate => Shape::Generate,
        },
        thoughts: options.thoughts,
        clock,
    }
}

fn loaded(head: &Head, reason: &'static str, stream: bool) -> Response<Body> {
    let mut body = head.last(reason, None);
    if stream {
        body.push(b'\n');
    }
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, if stream { LINES } else { JSON });
    response
}
