//! What a frontend is to the server: its routes by what they ask of callers, and how it writes an error.
//!
//! The guard and the accept loop know only [`Problem`]s. The frontend whose route matched renders them, so that a client
//! reads every error in the envelope of the protocol it speaks.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// Client libraries that try again after a failure do not where this says `false`.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Writes a problem as a whole response: status, headers and body.
pub type Render = fn(&Problem, &RequestId) -> Response;

/// One frontend, as [`crate::routes::app`] takes it.
pub struct Frontend {
    pub render: Render,
    /// Paths below which it also renders what no route matches. The longest prefix wins.
    pub prefixes: &'static [&'static str],
    /// What its clients may say that their bodies are.
    pub media: Media,
    /// No key: health, the shells of pages.
    pub open: Router,
    /// A key, and bodies of up to 64 KB.
    pub small: Router,
    /// A key, and bodies of up to 10 MB: where conversations are sent.
    pub large: Router,
    /// A key, and bodies of up to 10 MB: what there is, and how long something is. Counted apart from everything else.
    pub metadata: Router,
    /// A key, or a ticket: where a WebSocket begins.
    pub websocket: Router,
}

/// What a body may say that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    #[default]
    Json,
    /// Whatever its sender calls it: some protocols never looked, and their clients send a form's type with JSON.
    Any,
}

impl Default for Frontend {
    fn default() -> Self {
        Self {
            render: render_plain,
            prefixes: &[],
            media: Media::Json,
            open: Router::new(),
            small: Router::new(),
            large: Router::new(),
            metadata: Router::new(),
            websocket: Router::new(),
        }
    }
}

impl Frontend {
    /// All its routes for a server without the guard. Somebody else puts an [`crate::identity::Identity`] into every request.
    pub fn unguarded(self) -> Router {
        let Self { render, open, small, large, metadata, websocket, .. } = self;
        let routes = [open, small, large, metadata, websocket].into_iter().fold(Router::new(), Router::merge);
        routes.layer(axum::middleware::map_response(move |response: Response| async move {
            rendered(response, render, &RequestId::fresh())
        }))
    }
}

/// A response in which a [`Problem`] stands is written by its frontend, with the status and the headers that its route gave it.
pub(crate) fn rendered(mut answered: Response, render: Render, id: &RequestId) -> Response {
    let Some(problem) = answered.extensions_mut().remove::<Problem>() else { return answered };
    let (mut rendering, (parts, _empty)) = (render(&problem, id), answered.into_parts());
    *rendering.status_mut() = parts.status;
    let headers = parts.headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
    rendering.headers_mut().extend(headers.filter(|(name, _)| name != header::CONTENT_LENGTH));
    rendering
}

/// The errors of routes that have no protocol of their own: operations, the upgrade to a WebSocket, unknown paths.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlainError<'a> {
    #[schema(inline)]
    error: PlainErrorBody<'a>,
}

#[derive(Serialize, ToSchema)]
struct PlainErrorBody<'a> {
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

/// Renders a problem where no frontend has an envelope of its own.
pub fn render_plain(problem: &Problem, id: &RequestId) -> Response {
    json_response(problem, plain_json(problem, id))
}

/// The body of [`render_plain`], for answers that are written without a router.
pub(crate) fn plain_json(problem: &Problem, id: &RequestId) -> Vec<u8> {
    let error = PlainErrorBody {
        message: &problem.message,
        r#type: class(problem.kind.status()),
        code: problem.kind.code(),
        param: problem.param.as_deref(),
        request_id: *id,
    };
    serde_json::to_vec(&PlainError { error }).expect("strings always serialise")
}

/// The status, the headers that every kind of problem has by HTTP, and a JSON body.
pub fn json_response(problem: &Problem, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = problem.kind.status();
    problem.mark(&mut response);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(wait) = problem.kind.retry_after() {
        // Rounded up, so that a client that returns exactly then is served.
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)));
    }
    if problem.kind.has_acted() {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    if problem.kind == Kind::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn class(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded",
        status if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    }
}
