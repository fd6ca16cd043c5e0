//! One agent's messages as requests over HTTP, each on a connection of its own.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::ShimError;
use super::sse::Events;

/// The largest message of the server.
const MESSAGE: usize = 64 * 1024 * 1024;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

pub struct Relay {
    authority: String,
    path: String,
    authorization: HeaderValue,
    session: Mutex<Session>,
}

/// What the server said that later requests have to repeat.
#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

/// How the server took a message.
pub enum Reply {
    Messages(Messages),
    Accepted,
    Refused(StatusCode),
}

impl Relay {
    pub fn new(uri: &Uri, token: &str) -> Option<Self> {
        if uri.scheme_str() != Some("http") {
            return None;
        }
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        authorization.set_sensitive(true);
        let authority = uri.authority().filter(|authority| authority.port().is_some())?.to_string();
        Some(Self { authority, path: uri.path().to_owned(), authorization, session: Mutex::default() })
    }

    pub async fn post(&self, message: Vec<u8>) -> Result<Reply, ShimError> {
        self.send(Method::POST, message).await
    }

    /// Asks for what the server says unasked.
    pub async fn get(&self) -> Result<Reply, ShimError> {
        self.send(Method::GET, Vec::new()).await
    }

    pub async fn end_session(&self) {
        if self.session().id.is_some()
            && let Err(error) = self.send(Method::DELETE, Vec::new()).await
        {
            tracing::debug!(%error, "the session with the tool server ends with the gateway");
        }
    }

    /// Takes from the answer to `initialize` which version was agreed on.
    pub fn note(&self, message: &str) {
        #[derive(Deserialize)]
        struct Initialized {
            result: Agreed,
        }
        #[derive(Deserialize)]
        struct Agreed {
            #[serde(rename = "protocolVersion")]
            version: String,
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.version.is_none()
            && let Ok(initialized) = serde_json::from_str::<Initialized>(message)
        {
            session.version = HeaderValue::try_from(initialized.result.version).ok();
        }
    }

    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send(&self, method: Method, body: Vec<u8>) -> Result<Reply, ShimError> {
        let broken = |error: &dyn std::fmt::Display| ShimError::Server(error.to_string());
        let stream = TcpStream::connect(&self.authority).await.map_err(|error| broken(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the tool server broke off");
            }
        });
        let request = self.request(method, body).map_err(|error| broken(&error))?;
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        if let Some(id) = response.headers().get(SESSION) {
            self.session.lock().unwrap_or_else(PoisonError::into_inner).id = Some(id.clone());
        }
        Ok(match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Reply::Accepted,
            status if !status.is_success() => Reply::Refused(status),
            _ => {
                let events = response
                    .headers()
                    .get(CONTENT_TYPE)
                    .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
                let body = response.into_body();
                Reply::Messages(Messages {
                    form: if events { Form::Events(Events::new(body, MESSAGE)) } else { Form::One(body) },
                    _connection: driver,
                })
            }
        })
    }

    fn request(&self, method: Method, body: Vec<u8>) -> Result<Request<Full<Bytes>>, http::Error> {
        let accept = if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let session = self.session();
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept);
        for (name, value) in [(SESSION, session.id), (VERSION, session.version)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(Bytes::from(body)))
    }
}

/// What comes back for one message. Dropping it ends the request.
pub struct Messages {
    form: Form,
    _connection: JoinSet<()>,
}

/// How a body carries messages.
enum Form {
    Events(Events),
    /// All of it is one message.
    One(Incoming),
    /// It has been read.
    Over,
}

impl Messages {
    pub async fn next(&mut self) -> Result<Option<String>, ShimError> {
        // A message is one line on the agent's side, and JSON needs no line break.
        match &mut self.form {
            Form::Events(events) => match events.next().await {
                Some(Ok(message)) => Ok(Some(message.replace('\n', " "))),
                Some(Err(error)) => Err(ShimError::Server(error.to_string())),
                None => Ok(None),
            },
            Form::One(body) => {
                let message = Limited::new(body, MESSAGE).collect().await;
                self.form = Form::Over;
                let message = message.map_err(|error| ShimError::Server(error.to_string()))?;
                Ok(Some(String::from_utf8_lossy(&message.to_bytes()).replace(['\r', '\n'], " ")))
            }
            Form::Over => Ok(None),
        }
    }
}
