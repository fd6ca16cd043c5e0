//! HTTP in front of the dialects: which path is which, and what was asked so far.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::script::{self, Act, Said};
use super::{Received, Recorded, chat, messages, responses};

/// Accepts until the task is dropped; the connections end with it.
pub async fn serve(listener: TcpListener, received: Arc<Received>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let received = Arc::clone(&received);
                connections.spawn(async move {
                    let service = service_fn(|request| take(request, &received));
                    // An error here is a client that went away.
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

pub fn asks_for_an_answer(request: &Recorded) -> bool {
    matches!(Route::of(request), Route::Answer(_))
}

async fn take(request: Request<Incoming>, received: &Received) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().to_string();
    let bytes = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let request = Recorded { path, text, body };
    received.add(request.clone());
    Ok(answer(&request))
}

enum Route {
    Answer(Dialect),
    /// Wants an object of a given form: a title of the session.
    Title(Dialect),
    CountTokens,
    Unknown,
}

#[derive(Clone, Copy)]
enum Dialect {
    Chat,
    Messages,
    Responses,
}

impl Route {
    fn of(request: &Recorded) -> Self {
        let path = request.path.split('?').next().unwrap_or_default();
        let dialect = match path.rsplit('/').next() {
            Some("count_tokens") => return Self::CountTokens,
            Some("completions") => Dialect::Chat,
            Some("messages") => Dialect::Messages,
            Some("responses") => Dialect::Responses,
            _ => return Self::Unknown,
        };
        let form = match dialect {
            Dialect::Chat => &request.body["response_format"]["json_schema"],
            Dialect::Messages => &request.body["output_config"]["format"]["schema"],
            Dialect::Responses => &request.body["text"]["format"]["schema"],
        };
        if form.is_null() { Self::Answer(dialect) } else { Self::Title(dialect) }
    }
}

impl Dialect {
    fn conversation(self, body: &Value) -> Vec<Said> {
        match self {
            Self::Chat => chat::conversation(body),
            Self::Messages => messages::conversation(body),
            Self::Responses => responses::conversation(body),
        }
    }

    fn stream(self, acts: &[Act]) -> Response<Full<Bytes>> {
        let events = match self {
            Self::Chat => chat::stream(acts),
            Self::Messages => messages::stream(acts),
            Self::Responses => responses::stream(acts),
        };
        respond(StatusCode::OK, "text/event-stream", events)
    }
}

fn answer(request: &Recorded) -> Response<Full<Bytes>> {
    match Route::of(request) {
        Route::Answer(dialect) => match script::acts(&dialect.conversation(&request.body)) {
            Ok(acts) => dialect.stream(&acts),
            Err(sentence) => refused(StatusCode::BAD_REQUEST, &sentence),
        },
        Route::Title(dialect) => dialect.stream(&[Act::Text(json!({"title": "A title"}).to_string())]),
        Route::CountTokens => respond(StatusCode::OK, "application/json", json!({"input_tokens": 10}).to_string()),
        Route::Unknown => refused(StatusCode::NOT_FOUND, &format!("`{}` does not exist", request.path)),
    }
}

fn refused(status: StatusCode, sentence: &str) -> Response<Full<Bytes>> {
    let error = json!({"type": "error", "error": {"message": sentence, "type": "invalid_request_error"}});
    respond(status, "application/json", error.to_string())
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
