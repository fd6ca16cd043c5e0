//! `POST /v1/chat/completions`: a whole conversation in, the next answer out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use bytes::Bytes;
use gembridge_core::exchange::{NamedSession, Plan, Resolved};
use gembridge_core::model::Timestamp;
use uuid::Uuid;

use super::decode::{self, Reply, RequestOptions};
use super::encode::{Chunks, Head, WholeBody};
use super::{error, wire};
use crate::dialect::{Asked, Caller, Dialects, Source};
use crate::problem::Problem;
use crate::sse;

/// Answers a conversation, whole or as a stream of server-sent events.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "createChatCompletion",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body(content = wire::ChatRequest, example = json!({
        "model": "default", "messages": [{ "role": "user", "content": "hello" }]
    })),
    responses(
        (status = 200, description = "The answer; with `stream` chunks as events, ended by `[DONE]`", content(
            (wire::Completion = "application/json"), (wire::CompletionChunk = "text/event-stream")
        ), headers(
            ("x-session-id" = String, description = "The session that answered; send it to go on with it"),
            ("x-queue-ms" = u64, description = "How long the request waited for its turn"),
            ("openai-processing-ms" = u64, description = "From the request to the head of its answer"),
            ("x-gembridge-ignored" = String, description = "Fields of the request that have no effect"),
            ("x-gembridge-left-out" = u64, description = "How many old messages the agent was not told"),
            ("x-gembridge-repeated" = String, description = "`true`: the request was sent before, and the turn that it began answers"),
            ("x-gembridge-model-fallback" = String, description = "Who answered in the place of the `model` asked for"),
        )),
        (status = 400, description = "The request cannot be honoured; `param` names the field"),
        (status = 403, description = "A host or an origin that is not allowed, or an agent that is not for this key"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
        (status = 503, description = "The agent cannot be had now"),
        (status = 504, description = "The agent took too long"),
        (status = 507, description = "There is no room left to keep the conversation"),
    )
)]
pub(super) async fn create(State(dialects): State<Arc<Dialects>>, request: Request) -> Result<Response<Body>, Problem> {
    let (caller, headers, body) = Caller::of(&dialects, request)?;
    let session = caller.named_session(&headers).await;
    let (caller, (options, plan)) = caller.read(body, |caller, body| understand(caller, body, session)).await?;
    carry_out(caller, &options, plan).await
}

/// Reads the request, once: what it wants, who answers, and what the agent is told. Nothing waits here.
fn understand(
    caller: &Caller,
    body: &Bytes,
    session: Result<Option<NamedSession>, Problem>,
) -> Result<(RequestOptions, Plan), Problem> {
    let request = decode::parse(body)?;
    caller.note_asked(request.model.as_deref(), request.stream.unwrap_or(false));
    let session = session?;
    let options = decode::options(&request)?;
    let conversation = decode::conversation(&request, Source(body))?;
    let follow_up = decode::follow_up(&request, &conversation)?;
    let RequestOptions { model, tools, format, stop, limit, choices, .. } = options.clone();
    let asked = Asked { model, history: conversation, follow_up, tools, output: format, stop, limit, answers: choices };
    let plan = caller.plan(asked, session, &error::NAMES, |at| format!("messages[{at}].content"))?;
    Ok((options, plan))
}

async fn carry_out(mut caller: Caller, options: &RequestOptions, plan: Plan) -> Result<Response<Body>, Problem> {
    let head = head(&caller, &plan.resolved, options);
    let (ignored, names) = (&options.ignored, &error::NAMES);
    match options.reply {
        Reply::Whole => caller.answer_whole(plan, WholeBody::new(head, options.choices), ignored, names).await,
        Reply::Stream { usage } => {
            let chunks = Chunks::new(head, options.choices, usage);
            caller.answer_stream(plan, chunks, sse::CONTENT_TYPE, ignored, names).await
        }
    }
}

fn head(caller: &Caller, resolved: &Resolved, options: &RequestOptions) -> Head {
    Head {
        id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
        created: Timestamp::now().0 / 1_000,
        model: resolved.shown().to_owned(),
        system_fingerprint: caller.dialects.exchanges.catalog().fingerprint(&resolved.agent),
        wording: options.wording,
    }
}
