//! Requests to one server. Each has a connection of its own, which lives as long as its answer is held: some servers abort
//! what a stream began when its connection ends, even after the stream's own end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use gembridge_process::{Secrets, escape_excerpt};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use sse_stream::SseStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::Trouble;

const CONNECT: Duration = Duration::from_secs(10);
/// Until the head of an answer is there. A stream sends it at once, whatever its agent has to do.
const HEAD: Duration = Duration::from_secs(45);
/// For an answer in one piece that needs no agent.
const WHOLE: Duration = Duration::from_secs(30);
/// The longest event of a stream, and the longest answer in one piece.
const MOST: usize = 16 << 20;
/// As much of an error's body as is told.
const MOST_TOLD: usize = 2_048;

/// A server: where it listens, and what it is told to let us in.
pub(super) struct Server {
    address: Uri,
    host: String,
    port: u16,
    key: Option<HeaderValue>,
    secrets: Secrets,
    tls: Option<TlsConnector>,
}

/// A connection, which ends when it is dropped.
pub(super) struct Connection {
    /// While it is held, the connection stays open although nothing is asked on it.
    _requests: http1::SendRequest<Full<Bytes>>,
    _driver: JoinSet<()>,
}

/// An answer that comes event by event.
pub(super) struct EventStream {
    events: Events,
    connection: Connection,
}

enum Events {
    Stream {
        stream: Box<SseStream<Counted>>,
        unread: Arc<AtomicUsize>,
    },
    /// The server answered in one piece, as it does to a request that it refuses.
    Whole(Option<Bytes>),
}

impl Server {
    /// `address` was checked when the configuration was read; `secrets` are hidden in what is told of its errors.
    pub fn new(address: Uri, key: Option<&str>, secrets: Secrets) -> Result<Self, Trouble> {
        let unusable = |reason: &str| Trouble::Unreached { address: address.to_string(), reason: reason.to_owned() };
        let is_tls = address.scheme_str() == Some("https");
        let host = address.host().ok_or_else(|| unusable("it has no host"))?.trim_matches(['[', ']']).to_owned();
        let port = address.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let key = match key {
            Some(key) => {
                let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                    .map_err(|_| unusable("the key has characters that no header takes"))?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let tls = if is_tls { Some(tls().map_err(|reason| unusable(&reason))?) } else { None };
        Ok(Self { address, host, port, key, secrets, tls })
    }

    pub fn address(&self) -> &Uri {
        &self.address
    }

    /// An answer in one piece. `None`: there is nothing at this path.
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, Trouble> {
        let asked = async {
            let (response, connection) = self.send(Method::GET, path, &[], Bytes::new()).await?;
            if response.status() == 404 {
                return Ok(None);
            }
            let body = self.whole(response).await?;
            drop(connection);
            Ok(Some(body))
        };
        timeout(WHOLE, asked).await.map_err(|_| Trouble::Silent(WHOLE))?
    }

    /// A call with an answer in one piece, which may take as long as `within`.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, Trouble> {
        let asked = async {
            let (response, connection) = self.send(Method::POST, path, headers, body).await?;
            let body = self.whole(response).await?;
            drop(connection);
            Ok(body)
        };
        timeout(within, asked).await.map_err(|_| Trouble::Silent(within))?
    }

    /// A call whose answer comes when the agent is done, in one piece. The bounds of the turn are the bounds of it.
    pub async fn whole_as_stream(
        &self,
        path: &str,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<EventStream, Trouble> {
        let (response, connection) = self.send(Method::POST, path, headers, body).await?;
        let whole = self.whole(response).await?;
        Ok(EventStream { events: Events::Whole(Some(whole)), connection })
    }

    /// A call that is answered by events.
    pub async fn stream(
        &self,
        path: &str,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<EventStream, Trouble> {
        let asked = self.send(Method::POST, path, headers, body);
        let (response, connection) = timeout(HEAD, asked).await.map_err(|_| Trouble::Silent(HEAD))??;
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
            kind.to_str().is_ok_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
        });
        let events = if is_stream && response.status().is_success() {
            let unread = Arc::new(AtomicUsize::new(0));
            let counted = Counted { body: response.into_body(), unread: Arc::clone(&unread) };
            Events::Stream { stream: Box::new(SseStream::new(counted)), unread }
        } else {
            let whole = timeout(WHOLE, self.whole(response)).await.map_err(|_| Trouble::Silent(WHOLE))??;
            Events::Whole(Some(whole))
        };
        Ok(EventStream { events, connection })
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, Trouble> {
        let status = response.status();
        let body = match Limited::new(response.into_body(), MOST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(Trouble::Cut(error.to_string())),
        };
        if status.is_success() {
            return Ok(body);
        }
        let told = self.secrets.hide(&body[..body.len().min(MOST_TOLD)]);
        Err(Trouble::Status { status: status.as_u16(), body: escape_excerpt(&told, MOST_TOLD) })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<(Response<Incoming>, Connection), Trouble> {
        let unreached = |reason: String| Trouble::Unreached { address: self.address.to_string(), reason };
        let connecting = timeout(CONNECT, self.connect()).await;
        let (mut requests, driver) = connecting
            .map_err(|_| unreached(format!("no connection within {CONNECT:?}")))?
            .map_err(|error| unreached(error.to_string()))?;
        let mut request = Request::builder().method(method).uri(path);
        if let Some(authority) = self.address.authority() {
            request = request.header(HOST, authority.as_str());
        }
        request = request.header(ACCEPT, "application/json, text/event-stream");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).map_err(|error| unreached(error.to_string()))?;
        let response = requests.send_request(request).await.map_err(|error| Trouble::Cut(error.to_string()))?;
        Ok((response, Connection { _requests: requests, _driver: driver }))
    }

    async fn connect(&self) -> io::Result<(http1::SendRequest<Full<Bytes>>, JoinSet<()>)> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => shake_hands(stream).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
                shake_hands(tls.connect(name, stream).await?).await
            }
        }
    }
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> io::Result<(http1::SendRequest<Full<Bytes>>, JoinSet<()>)> {
    let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // What ends it early is told to whoever reads the answer.
        connection.await.ok();
    });
    Ok((requests, driver))
}

impl EventStream {
    /// The next event. `None`: the stream came to its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        match &mut self.events {
            Events::Whole(body) => Ok(body.take()),
            Events::Stream { stream, unread } => loop {
                let Some(event) = stream.next().await else { return Ok(None) };
                let event = event.map_err(|error| Trouble::Cut(error.to_string()))?;
                unread.store(0, Ordering::Relaxed);
                if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                    return Ok(Some(Bytes::from(data)));
                }
            },
        }
    }

    pub fn into_connection(self) -> Connection {
        self.connection
    }
}

/// A body that fails when an event grows too long.
struct Counted {
    body: Incoming,
    /// Bytes since the last event.
    unread: Arc<AtomicUsize>,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(io::Error::other)?;
            let size = frame.data_ref().map_or(0, Bytes::len);
            if self.unread.fetch_add(size, Ordering::Relaxed) + size > MOST {
                return Err(io::Error::other(format!("an event is longer than {MOST} bytes")));
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// With the authorities that this machine trusts.
fn tls() -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err("this machine trusts no certificate authority; install `ca-certificates`".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
