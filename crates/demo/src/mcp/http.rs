//! One HTTP exchange with an MCP server: a POST whose answer is JSON or an event stream.

use std::fmt;
use std::pin::pin;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{PROTOCOL, sse};
use crate::wire::Header;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The largest answer taken.
pub(super) const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

pub(super) struct Endpoint {
    host: String,
    port: u16,
    authority: HeaderValue,
    path: String,
    headers: HeaderMap,
}

pub(super) struct Answer {
    pub result: Value,
    pub session: Option<String>,
}

pub(super) enum Failure {
    /// The server no longer knows the session id.
    SessionGone,
    Told(String),
}

impl Endpoint {
    pub(super) fn new(url: &str, headers: Vec<Header>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if uri.scheme_str() != Some("http") || !loopback {
            return Err(format!("the demo agent calls `http` servers on loopback only, not `{url}`"));
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let mut kept = HeaderMap::new();
        for header in headers {
            let name: HeaderName =
                header.name.parse().map_err(|_| format!("`{}` is not a header name", header.name))?;
            // The value may be a secret: it is not repeated in the message.
            let value = header.value.parse().map_err(|_| format!("the value of header `{name}` is not valid"))?;
            kept.append(name, value);
        }
        Ok(Self {
            port: uri.port_u16().unwrap_or(80),
            authority: HeaderValue::from_str(authority).map_err(|error| format!("`{url}`: {error}"))?,
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            headers: kept,
            host,
        })
    }

    /// Sends a request and waits for the answer with its id.
    pub(super) async fn request(&self, session: Option<&str>, body: &Value, id: u64) -> Result<Answer, Failure> {
        self.exchange(self.post(session, body)?, |response| read_answer(response, id)).await
    }

    /// Sends a notification; any success will do.
    pub(super) async fn notify(&self, session: Option<&str>, body: &Value) -> Result<(), Failure> {
        self.exchange(self.post(session, body)?, |response| async move { accepted(response.status()) }).await
    }

    /// Listens to what the server says unasked, until it ends the stream. `opened` is called when it has begun.
    pub(super) async fn listen(
        &self,
        session: Option<&str>,
        opened: impl FnOnce(),
        mut heard: impl FnMut(&Value),
    ) -> Result<(), Failure> {
        let request = self.get(session)?;
        let read = |response: Response<Incoming>| async move {
            accepted(response.status())?;
            opened();
            let forever = |message: &Value| {
                heard(message);
                false
            };
            sse::first(response.into_body(), forever).await.map(|_| ())
        };
        self.exchange(request, read).await
    }

    /// A connection for each exchange: calls wait for minutes and must not stand in each other's way.
    async fn exchange<T, R: Future<Output = Result<T, Failure>>>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl FnOnce(Response<Incoming>) -> R,
    ) -> Result<T, Failure> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let (mut sender, wire) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut exchange = pin!(async move { read(sender.send_request(request).await?).await });
        let mut wire = pin!(wire);
        // The server may close before its last bytes are read: the wire's end is not the exchange's end.
        let mut open = true;
        loop {
            tokio::select! {
                done = &mut exchange => return done,
                _ = &mut wire, if open => open = false,
            }
        }
    }

    fn post(&self, session: Option<&str>, body: &Value) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::post(self.path.as_str()).body(Full::new(Bytes::from(body.to_string())))?;
        self.introduce(request.headers_mut(), session)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Ok(request)
    }

    fn get(&self, session: Option<&str>) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::get(self.path.as_str()).body(Full::default())?;
        self.introduce(request.headers_mut(), session)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        Ok(request)
    }

    fn introduce(&self, headers: &mut HeaderMap, session: Option<&str>) -> Result<(), Failure> {
        headers.clone_from(&self.headers);
        headers.insert(HOST, self.authority.clone());
        headers.insert(VERSION, HeaderValue::from_static(PROTOCOL));
        if let Some(session) = session {
            headers.insert(SESSION, HeaderValue::from_str(session)?);
        }
        Ok(())
    }
}

async fn read_answer(response: Response<Incoming>, id: u64) -> Result<Answer, Failure> {
    accepted(response.status())?;
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let session = text(SESSION);
    let streamed = text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = response.into_body();
    let message = if streamed { sse::find_answer(body, id).await? } else { read_json(body).await? };
    if let Some(error) = message.get("error") {
        let why = error["message"].as_str().unwrap_or("an error without a message");
        return Err(Failure::Told(why.to_owned()));
    }
    match message.get("result") {
        Some(result) => Ok(Answer { result: result.clone(), session }),
        None => Err(Failure::Told("its answer has neither result nor error".to_owned())),
    }
}

async fn read_json(body: Incoming) -> Result<Value, Failure> {
    let bytes = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|error| Failure::Told(error.to_string()))?;
    Ok(serde_json::from_slice(&bytes.to_bytes())?)
}

fn accepted(status: StatusCode) -> Result<(), Failure> {
    match status {
        StatusCode::NOT_FOUND => Err(Failure::SessionGone),
        status if status.is_success() => Ok(()),
        status => Err(Failure::Told(format!("it answered with HTTP status {status}"))),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionGone => out.write_str("it answered with HTTP status 404 Not Found"),
            Self::Told(why) => out.write_str(why),
        }
    }
}

/// Any error below is told in its own words.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Told(error.to_string())
    }
}
