//! `POST /v1/messages/count_tokens`: how much a model would read, by our own measure. Agents have no tokenizer for us.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use bytes::Bytes;
use gembridge_core::exchange::Exchanges;
use gembridge_core::model::ClientTool;

use super::{Messages, decode, error, wire};
use crate::dialect::{Caller, Source, json};
use crate::json::AnyObject;
use crate::problem::Problem;

/// Counts the tokens of a request, by our own measure.
#[utoipa::path(
    post, path = "/v1/messages/count_tokens", tag = "messages", operation_id = "countMessageTokens",
    request_body(content = AnyObject, description = "A request for a message"),
    responses((status = 200, description = "`input_tokens`"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn count(State(app): State<Arc<Messages>>, request: Request) -> Result<Response<Body>, Problem> {
    let (caller, _, body) = Caller::of(&app.dialects, request)?;
    let (caller, input_tokens) = caller.read(body, tokens).await?;
    let mut response = json(&wire::Counted { input_tokens });
    error::name(&mut response, &caller.request);
    Ok(response)
}

fn tokens(_: &Caller, body: &Bytes) -> Result<u64, Problem> {
    let request = decode::parse(body)?;
    let options = decode::options(&request)?;
    let said = decode::conversation(&request, options.thread.as_ref(), Source(body))?;
    let tools: Vec<ClientTool> = options.tools.offered.into_iter().map(|offered| offered.tool).collect();
    Ok(Exchanges::tokens_of_request(&said.messages, &tools))
}
