//! A problem as the OpenAI error envelope. The one table of statuses, types and codes: the guard answers with it, and so
//! does every face whose clients expect this shape.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

#[derive(Serialize, ToSchema)]
pub(crate) struct Envelope<'a> {
    #[schema(inline)]
    error: Error<'a>,
}

#[derive(Serialize, ToSchema)]
struct Error<'a> {
    /// What happened, and the way out.
    message: &'a str,
    r#type: &'static str,
    code: &'static str,
    /// The field of the request that it is about.
    param: Option<&'a str>,
    /// As in `x-request-id` and in the log.
    #[schema(value_type = String)]
    request_id: RequestId,
}

/// `type` and `code` of a kind.
pub fn names(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Invalid => ("invalid_request_error", "invalid_request"),
        Kind::Unauthenticated => ("authentication_error", "invalid_api_key"),
        Kind::Forbidden => ("permission_error", "forbidden"),
        Kind::NotFound => ("not_found_error", "not_found"),
        Kind::MethodNotAllowed => ("invalid_request_error", "method_not_allowed"),
        Kind::TooLarge => ("invalid_request_error", "request_too_large"),
        Kind::WrongMediaType => ("invalid_request_error", "unsupported_media_type"),
        Kind::RateLimited { .. } => ("rate_limit_exceeded", "rate_limit_exceeded"),
        Kind::QueueFull { .. } => ("rate_limit_exceeded", "queue_full"),
        Kind::Provider => ("rate_limit_exceeded", "provider_rate_limit"),
        Kind::Agent => ("api_error", "agent_error"),
        Kind::NoToolCall => ("api_error", "tool_call_missing"),
        Kind::NoOutput => ("api_error", "output_invalid"),
        Kind::Unavailable { .. } => ("api_error", "unavailable"),
        Kind::TimedOut => ("api_error", "timeout"),
        Kind::StoreFull => ("api_error", "storage_full"),
        Kind::Internal => ("api_error", "internal_error"),
    }
}

/// The envelope as JSON of one line: the body of a response, or the data of an error event in a stream.
pub fn json(problem: &Problem, id: &RequestId) -> Vec<u8> {
    let (r#type, code) = names(problem.kind);
    let error = Error { message: &problem.message, r#type, code, param: problem.param.as_deref(), request_id: *id };
    serde_json::to_vec(&Envelope { error }).unwrap_or_else(|failure| {
        // Strings alone always serialise.
        tracing::error!(%failure, "an error could not be written as JSON");
        Vec::new()
    })
}

/// The whole response: status, `Retry-After`, body.
pub fn response(problem: &Problem, id: &RequestId) -> Response<Body> {
    let mut response = Response::new(Body::from(json(problem, id)));
    *response.status_mut() = problem.kind.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(wait) = problem.kind.retry_after() {
        // Rounded up: who comes back exactly then must find it open.
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)));
    }
    if problem.kind == Kind::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
