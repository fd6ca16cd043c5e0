//! The client that one gateway is to another: plain HTTP, connections kept, and dead ones noticed.

use std::error::Error as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::signature::HEADER;
use super::{Kept, relay};

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(1);

/// A peer that says nothing for so long is asked whether it is there; an agent may think for minutes.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// How long what was sent may stay without a sign that it arrived.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Idle connections that are kept to one peer.
const IDLE: usize = 64;

pub(super) struct Peer(Client<HttpConnector, Full<Bytes>>);

pub(super) enum Failed {
    /// The other has nothing of it.
    BeforeItWasSent(String),
    /// The other may have begun.
    Afterwards(String),
}

impl Peer {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECTING));
        connector.set_nodelay(true);
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_keepalive_interval(Some(KEEP_ALIVE));
        connector.set_keepalive_retries(Some(2));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_ALIVE)
            .pool_max_idle_per_host(IDLE)
            .build(connector);
        Self(client)
    }

    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response, Failed> {
        let answer = self.0.request(request).await.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
            if error.is_connect() { Failed::BeforeItWasSent(why) } else { Failed::Afterwards(why) }
        })?;
        let (mut parts, body) = answer.into_parts();
        for name in OF_ONE_CONNECTION.iter().chain(OF_THE_GUARD) {
            if !(relay::is_upgrade(&parts.headers) && OF_AN_UPGRADE.contains(name)) {
                parts.headers.remove(*name);
            }
        }
        Ok(Response::from_parts(parts, Body::new(body)))
    }
}

/// Of one connection, and not of the request.
const OF_ONE_CONNECTION: &[&str] = &[
    "connection",
    "host",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const OF_AN_UPGRADE: &[&str] = &["connection", "upgrade"];

/// What the guard of this gateway says in every response, so that nobody hears it twice.
const OF_THE_GUARD: &[&str] =
    &["vary", "x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// What has been checked here, and means nothing or something else there. The key does not travel: its digest does.
const CHECKED: &[&str] = &[
    "authorization",
    "cookie",
    "expect",
    "forwarded",
    "origin",
    "referer",
    "x-api-key",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-gembridge-forwarded",
    "x-goog-api-key",
];

/// The request as it goes to the gateway at `address`.
pub(super) fn request(
    address: &str,
    kept: &Kept,
    signed: HeaderValue,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, axum::http::Error> {
    let target = kept.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request =
        Request::builder().method(&kept.method).uri(format!("http://{address}{target}")).body(Full::new(body))?;
    *request.headers_mut() = headers(&kept.headers, kept.upgrade.is_some());
    request.headers_mut().insert(HEADER, signed);
    Ok(request)
}

fn headers(of_client: &HeaderMap, is_upgrade: bool) -> HeaderMap {
    let mut headers = of_client.clone();
    for name in OF_ONE_CONNECTION.iter().chain(CHECKED) {
        if !(is_upgrade && OF_AN_UPGRADE.contains(name)) {
            headers.remove(*name);
        }
    }
    relay::hide_key(&mut headers);
    headers
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn s16_a_key_is_not_passed_on_and_neither_is_what_belongs_to_a_connection() {
        let mut of_client = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer canary"),
            ("x-api-key", "canary"),
            ("x-goog-api-key", "canary"),
            ("cookie", "canary"),
            ("sec-websocket-protocol", "acp.v1, bearer.canary, ticket.canary"),
            ("x-gembridge-forwarded", "canary"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("host", "bridge.example.org"),
            ("x-session-id", "kept"),
            ("content-type", "application/json"),
        ] {
            of_client.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let plain = headers(&of_client, false);
        assert!(plain.values().all(|value| !value.to_str().unwrap().contains("canary")), "{plain:?}");
        assert_eq!(plain["x-session-id"], "kept");
        assert_eq!(plain["content-type"], "application/json");
        assert!(!plain.contains_key("connection") && !plain.contains_key("host"));
        let upgrade = headers(&of_client, true);
        assert_eq!(
            (&upgrade["connection"], &upgrade["upgrade"]),
            (&"upgrade".parse().unwrap(), &"websocket".parse().unwrap())
        );
        assert_eq!(upgrade["sec-websocket-protocol"], "acp.v1");
    }
}
