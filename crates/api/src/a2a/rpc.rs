//! `POST /a2a`: one call of JSON-RPC, in either version, answered by a result or by a stream of events.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header};
use bytes::BytesMut;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::A2a;
use super::body::{Envelope, TaskBody};
use super::card;
use super::error::{Fault, Reason};
use super::methods::Caller;
use super::wire::{Call, Version};
use crate::identity::Identity;
use crate::jsonrpc::{self, Incoming, Malformed};
use crate::problem::{Kind, Problem};
use crate::sse;

const VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// Sends a message to the agent, or asks for its tasks, by JSON-RPC 2.0.
#[utoipa::path(
    post, path = "/a2a", tag = "a2a", operation_id = "callA2a",
    params(("a2a-version" = Option<String>, Header, description = "`0.3` or `1.0`; without it 0.3, or as the method's name says")),
    request_body(content = crate::json::AnyObject, description = "A call such as `message/send` or `SendMessage`"),
    responses((status = 200, description = "The result or the error of the call; a stream of them where the method streams"))
)]
pub(super) async fn call(State(app): State<Arc<A2a>>, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let caller = caller(app, &parts.extensions)?;
    check_media(&parts.headers)?;
    let body = to_bytes(body, usize::MAX)
        .await
        .map_err(|failure| Problem::new(Kind::Invalid, format!("the body could not be read: {failure}")))?;
    let text = std::str::from_utf8(&body).unwrap_or("\u{fffd}");
    let null = serde_json::value::to_raw_value(&Value::Null).unwrap_or_default();
    let named = Version::named(asked(&parts.headers, &parts.uri).as_deref());
    let known = named.as_ref().ok().copied().flatten().unwrap_or(Version::V03);
    let (id, method, params) = match read(text) {
        Ok(Incoming::Request { id, method, params }) => (Some(id.to_owned()), method, params),
        Ok(Incoming::Notification { method, params }) => (None, method, params),
        Ok(Incoming::Response { .. }) => {
            let fault = Fault::new(Reason::InvalidRequest, "a call needs a `method`");
            return Ok(answer(&null, Err(known.error(&fault))));
        }
        Err(fault) => return Ok(answer(&id_of(text).unwrap_or(null), Err(known.error(&fault)))),
    };
    let version = match named {
        Ok(Some(version)) => version,
        // The names of the two versions are different ones, and 1.0 demands the header only of clients.
        Ok(None) if Version::V10.has(&method) && !Version::V03.has(&method) => Version::V10,
        Ok(None) => Version::V03,
        Err(fault) => return Ok(answer(id.as_deref().unwrap_or(&null), Err(Version::V10.error(&fault)))),
    };
    let nameless = || Fault::new(Reason::InvalidRequest, "a call needs an `id`: nothing here goes without an answer");
    let answered = match (version.decode(&method, params), &id) {
        (Ok(call), Some(id)) => carry_out(&caller, version, id, call, &parts.headers, &parts.uri).await,
        (Ok(_), None) => Err(nameless()),
        (Err(fault), _) => Err(fault),
    };
    if let Some(problem) = answered.as_ref().err().and_then(Fault::elsewhere) {
        return Err(problem);
    }
    let id = id.unwrap_or(null);
    Ok(answered.unwrap_or_else(|fault| match version {
        // Its clients look for errors of these methods in a stream.
        Version::V03 if ["message/stream", "tasks/resubscribe"].contains(&&*method) => failed_stream(&id, &fault),
        Version::V03 | Version::V10 => answer(&id, Err(version.error(&fault))),
    }))
}

async fn carry_out(
    caller: &Caller,
    version: Version,
    id: &RawValue,
    call: Call,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response<Body>, Fault> {
    let result = match call {
        Call::Send(request) | Call::Inject(request) => version.answer(&caller.send(*request).await?),
        Call::Stream(request) => {
            let follow = caller.begin(*request).await?;
            return Ok(stream(caller, follow, Envelope::JsonRpc { version, id: id.to_owned() }));
        }
        Call::Subscribe { task } => {
            let follow = caller.subscribe(&task, version.end_of_subscription()).await?;
            return Ok(stream(caller, follow, Envelope::JsonRpc { version, id: id.to_owned() }));
        }
        Call::Get { task, history } => version.task(&caller.get(&task, history).await?),
        Call::List(list) => version.page(&caller.list(&list).await?, list.artifacts),
        Call::Cancel { task } => version.task(&caller.cancel(&task).await?),
        Call::ExtendedCard => card::extended(&caller.app, version, &card::Base::of(&caller.app, headers, uri)),
        Call::PushConfig => {
            let message = "push notifications are not sent; follow the task by a stream instead";
            return Err(Fault::new(Reason::PushNotSupported, message));
        }
    };
    Ok(answer(id, Ok(result)))
}

/// Bodies are JSON, under the name of this protocol or without.
pub(super) fn check_media(headers: &HeaderMap) -> Result<(), Problem> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let named = match (types.next().and_then(|value| value.to_str().ok()), types.next()) {
        (Some(named), None) => named,
        _ => "",
    };
    let essence = named.split(';').next().unwrap_or_default().trim();
    if ["application/json", "application/a2a+json"].iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let shown: String = essence.chars().take(64).flat_map(char::escape_default).collect();
    let message = format!("`content-type: {shown}` is not supported; send `application/json`");
    Err(Problem::new(Kind::WrongMediaType, message))
}

/// The caller, as the guard identified it.
pub(super) fn caller(app: Arc<A2a>, known: &axum::http::Extensions) -> Result<Caller, Problem> {
    let missing = || Problem::new(Kind::Internal, "missing identity: the guard must run before this handler");
    let identity = known.get::<Identity>().cloned().ok_or_else(missing)?;
    Ok(Caller { viewer: identity.viewer(), app, identity })
}

/// The response of a stream. Its head goes out at once: the agent may take its time.
pub(super) fn stream(caller: &Caller, follow: super::follow::Follow, envelope: Envelope) -> Response<Body> {
    let body = TaskBody::new(Arc::clone(&caller.app), follow, envelope);
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, sse::CONTENT_TYPE);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A stream of one event, which says why there are no others.
fn failed_stream(id: &RawValue, fault: &Fault) -> Response<Body> {
    let mut event = BytesMut::new();
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": Version::V03.error(fault) });
    sse::data(&mut event, error.to_string().as_bytes());
    let mut response = Response::new(Body::from(event.freeze()));
    response.headers_mut().insert(header::CONTENT_TYPE, sse::CONTENT_TYPE);
    response
}

/// The version that a request names, in its header or in its address.
pub(super) fn asked(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let in_header = headers.get(VERSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = || uri.query().into_iter().flat_map(|query| query.split('&'));
    let named = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        name.eq_ignore_ascii_case("a2a-version").then(|| value.to_owned())
    };
    in_header.or_else(|| query().find_map(named))
}

/// What a call says of itself beside its method.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
}

pub(super) fn read(text: &str) -> Result<Incoming<'_>, Fault> {
    let incoming = jsonrpc::read(text).map_err(|malformed| match malformed {
        Malformed::Unreadable => Fault::new(Reason::Unreadable, "the body is not JSON"),
        Malformed::Invalid(why) => Fault::new(Reason::InvalidRequest, why),
    })?;
    match serde_json::from_str(text) {
        Ok(Head { jsonrpc: Some(version), .. }) if version.get() == "\"2.0\"" => Ok(incoming),
        _ => Err(Fault::new(Reason::InvalidRequest, "`jsonrpc` must be `\"2.0\"`")),
    }
}

/// The id of a call that is otherwise not in order.
fn id_of(text: &str) -> Option<Box<RawValue>> {
    let is_id =
        |id: &&RawValue| id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
    serde_json::from_str::<Head<'_>>(text).ok()?.id.filter(is_id).map(ToOwned::to_owned)
}

fn answer(id: &RawValue, result: Result<Value, Value>) -> Response<Body> {
    let (member, value) = match result {
        Ok(value) => ("result", value),
        Err(value) => ("error", value),
    };
    let body = json!({ "jsonrpc": "2.0", "id": id, member: value });
    let mut response = Response::new(Body::from(body.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
