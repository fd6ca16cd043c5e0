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
use crate::identity::RequestId;
use crate::problem::Problem;

pub(super) async fn count(State(app): State<Arc<Messages>>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
    let counted = match Caller::new(Arc::clone(&app.dialects), id, &mut parts.extensions) {
        Ok(caller) => caller.read(body, tokens).await.map(|(_, tokens)| tokens),
        Err(unknown) => Err(unknown),
    };
    let mut response = match counted {
        Ok(input_tokens) => json(&wire::Counted { input_tokens }),
        Err(problem) => error::response(&problem, &id),
    };
    error::name(&mut response, &id);
    response
}

fn tokens(_: &Caller, body: &Bytes) -> Result<u64, Problem> {
    let request = decode::parse(body)?;
    let options = decode::options(&request)?;
    let said = decode::conversation(&request, options.thread.as_ref(), Source(body))?;
    let tools: Vec<ClientTool> = options.tools.offered.into_iter().map(|offered| offered.tool).collect();
    Ok(Exchanges::tokens_of_request(&said.messages, &tools))
}
