//! The binding of 1.0 that speaks plain HTTP: the same calls by address and method.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, Uri, header};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::A2a;
use super::body::Envelope;
use super::card;
use super::error::{Fault, Reason};
use super::methods::Caller;
use super::rpc::{asked, caller, check_media, stream};
use super::wire::{Call, Version, v10};
use crate::problem::{Kind, Problem};

type Answer = Result<Response<Body>, Problem>;

pub(super) async fn send(State(app): State<Arc<A2a>>, request: Request) -> Answer {
    with_body(app, request, "SendMessage").await
}

pub(super) async fn send_streaming(State(app): State<Arc<A2a>>, request: Request) -> Answer {
    with_body(app, request, "SendStreamingMessage").await
}

pub(super) async fn list(State(app): State<Arc<A2a>>, request: Request) -> Answer {
    without_body(app, request, "ListTasks", None).await
}

/// `GET /tasks/{id}`, and `GET /tasks/{id}:subscribe`.
pub(super) async fn get(State(app): State<Arc<A2a>>, Path(id): Path<String>, request: Request) -> Answer {
    match id.strip_suffix(":subscribe") {
        Some(id) => without_body(app, request, "SubscribeToTask", Some(id)).await,
        None => without_body(app, request, "GetTask", Some(&id)).await,
    }
}

/// `POST /tasks/{id}:cancel` and `POST /tasks/{id}:subscribe`.
pub(super) async fn act(State(app): State<Arc<A2a>>, Path(id): Path<String>, request: Request) -> Answer {
    match id.rsplit_once(':') {
        Some((id, "cancel")) => without_body(app, request, "CancelTask", Some(id)).await,
        Some((id, "subscribe")) => without_body(app, request, "SubscribeToTask", Some(id)).await,
        _ => Err(Problem::new(Kind::NotFound, "a task takes `:cancel` and `:subscribe` here")),
    }
}

pub(super) async fn push(State(app): State<Arc<A2a>>, request: Request) -> Answer {
    without_body(app, request, "ListTaskPushNotificationConfigs", None).await
}

pub(super) async fn extended_card(State(app): State<Arc<A2a>>, request: Request) -> Answer {
    without_body(app, request, "GetExtendedAgentCard", None).await
}

async fn with_body(app: Arc<A2a>, request: Request, method: &str) -> Answer {
    let (parts, body) = request.into_parts();
    let caller = caller(app, &parts.extensions)?;
    check_media(&parts.headers)?;
    let body = to_bytes(body, usize::MAX)
        .await
        .map_err(|failure| Problem::new(Kind::Invalid, format!("the body could not be read: {failure}")))?;
    let params = serde_json::from_slice::<&RawValue>(&body)
        .map_err(|error| Fault::new(Reason::Unreadable, format!("the body is not JSON: {error}")));
    let answered = match params {
        Ok(params) => carry_out(&caller, method, params, &parts.headers, &parts.uri).await,
        Err(fault) => Err(fault),
    };
    answer(answered)
}

/// The parameters stand in the address.
async fn without_body(app: Arc<A2a>, request: Request, method: &str, id: Option<&str>) -> Answer {
    let (parts, _) = request.into_parts();
    let caller = caller(app, &parts.extensions)?;
    let mut params = Map::new();
    for (name, value) in
        parts.uri.query().into_iter().flat_map(|query| query.split('&')).filter_map(|pair| pair.split_once('='))
    {
        params.insert(name.to_owned(), typed(name, value));
    }
    if let Some(id) = id {
        params.insert("id".to_owned(), id.into());
    }
    let answered = match to_raw_value(&params) {
        Ok(params) => carry_out(&caller, method, &params, &parts.headers, &parts.uri).await,
        Err(failure) => Err(Fault::params(failure.to_string())),
    };
    answer(answered)
}

/// A value of the query, in the type that the field has.
fn typed(name: &str, value: &str) -> Value {
    match name {
        "pageSize" | "historyLength" => value.parse::<i64>().map_or_else(|_| value.into(), Into::into),
        "includeArtifacts" => value.parse::<bool>().map_or_else(|_| value.into(), Into::into),
        _ => value.replace("%3A", ":").replace("%2B", "+").into(),
    }
}

async fn carry_out(
    caller: &Caller,
    method: &str,
    params: &RawValue,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response<Body>, Fault> {
    let version = Version::V10;
    if Version::named(asked(headers, uri).as_deref())? == Some(Version::V03) {
        let message = "version 0.3 of A2A is served by JSON-RPC alone; use 1.0 here";
        return Err(Fault::new(Reason::VersionNotSupported, message));
    }
    let result = match version.decode(method, Some(params))? {
        Call::Send(request) | Call::Inject(request) => version.answer(&caller.send(*request).await?),
        Call::Stream(request) => return Ok(stream(caller, caller.begin(*request).await?, Envelope::Http)),
        Call::Subscribe { task } => {
            return Ok(stream(caller, caller.subscribe(&task, version.end_of_subscription()).await?, Envelope::Http));
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
    Ok(json(&result))
}

fn json(value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn answer(answered: Result<Response<Body>, Fault>) -> Answer {
    answered.or_else(|fault| match fault.elsewhere() {
        Some(problem) => Err(problem),
        None => Ok(error(&fault)),
    })
}

fn error(fault: &Fault) -> Response<Body> {
    let mut response = json(&v10::error::http(fault));
    *response.status_mut() = fault.reason.status();
    response
}
