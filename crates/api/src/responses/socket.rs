//! The same over a WebSocket: one request after another, each a message, and events as messages. Responses that are not
//! stored can be gone on with as long as the connection lasts.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use http_body::Body as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::create::respond;
use super::kept::KeptResponses;
use super::{Responses, error};
use crate::dialect::RecentLimits;
use crate::guard::memory_budget::BodyCharge;
use crate::guard::socket_requests::SocketRequests;
use crate::identity::{Identity, RequestId};
use crate::keys::KeyLease;
use crate::problem::{Kind, Problem};
use crate::websocket::{Arrived, CloseCode, NotAnUpgrade, Offer, Received, WebSocket};

/// The largest message of a client.
const LARGEST_MESSAGE: usize = 10 << 20;
/// Requests that wait for the one before them.
const MOST_WAITING: usize = 8;
/// Bytes that a client may be behind before its agent is not read for it.
const BEHIND: usize = 256 << 10;
/// How long a client has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
/// What one connection keeps for itself.
const KEPT: RecentLimits = RecentLimits { bytes: 4 << 20, entries: 32 };

/// Opens a WebSocket: each message is a request with `type: response.create`, and is answered by its events.
#[utoipa::path(
    get, path = "/v1/responses", tag = "responses", operation_id = "connectResponses",
    responses(
        (status = 101, description = "A WebSocket"),
        (status = 401, description = "No key, or none that is known"),
        (status = 426, description = "Not a request for a WebSocket"),
    )
)]
pub(super) async fn connect(
    State(app): State<Arc<Responses>>,
    mut request: Request,
) -> Result<Response<Body>, Problem> {
    let offer = match Offer::read(request.method(), request.version(), request.headers()) {
        Ok(offer) => offer,
        Err(what) => return Ok(not_an_upgrade(what)),
    };
    let unguarded = || Problem::new(Kind::Internal, "the guard must run before a request for a WebSocket");
    let known = request.extensions();
    let admission: SocketRequests = known.get().cloned().ok_or_else(unguarded)?;
    let (identity, lease) = (known.get().cloned().ok_or_else(unguarded)?, known.get::<KeyLease>().cloned());
    if app.draining.is_cancelled() {
        let retry_after = Duration::from_secs(5);
        return Err(Problem::new(Kind::Unavailable { retry_after }, "the gateway is shutting down"));
    }
    let response = offer.switching(offer.protocols.first().map(String::as_str));
    let (upgrading, task) = (hyper::upgrade::on(&mut request), Arc::clone(&app));
    app.tasks.spawn(async move {
        match upgrading.await {
            Ok(upgraded) => {
                let socket = WebSocket::new(TokioIo::new(upgraded), LARGEST_MESSAGE, admission.memory.charge());
                Connection::new(task, socket, identity, admission).run(lease).await;
            }
            Err(failure) => tracing::debug!(%failure, "a connection was gone before it became a WebSocket"),
        }
    });
    Ok(response)
}

fn not_an_upgrade(what: NotAnUpgrade) -> Response<Body> {
    let mut response = Problem::new(Kind::Invalid, what.to_string()).into_response();
    if what != NotAnUpgrade::Key {
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    response
}

struct Connection {
    app: Arc<Responses>,
    socket: WebSocket<TokioIo<Upgraded>>,
    identity: Identity,
    admission: SocketRequests,
    kept: Arc<KeptResponses>,
    /// Each with what it is charged, or why it was not admitted.
    waiting: VecDeque<(String, Result<BodyCharge, Problem>)>,
    signs: Interval,
}

/// Why a connection ends.
enum Ending {
    Told(CloseCode, &'static str),
    /// The other end has gone, or said goodbye.
    Left,
}

impl Connection {
    fn new(
        app: Arc<Responses>,
        socket: WebSocket<TokioIo<Upgraded>>,
        identity: Identity,
        admission: SocketRequests,
    ) -> Self {
        let mut signs = interval(app.dialects.config.keep_alive);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { app, socket, identity, admission, kept: KeptResponses::new(KEPT), waiting: VecDeque::new(), signs }
    }

    async fn run(mut self, lease: Option<KeyLease>) {
        let revoked = async {
            match lease {
                Some(lease) => lease.revoked().await,
                None => std::future::pending().await,
            }
        };
        let ending = tokio::select! {
            ending = self.serve() => ending,
            () = revoked => Ending::Told(CloseCode::POLICY, "the key was revoked"),
        };
        if let Ending::Told(code, reason) = ending {
            self.socket.close(code, reason);
        }
        if tokio::time::timeout(GOODBYE, self.socket.finish()).await.is_err() {
            tracing::debug!("a client left without a goodbye");
        }
    }

    /// Answers one request after the other.
    async fn serve(&mut self) -> Ending {
        loop {
            let answered = match self.next_request().await {
                Ok((request, admitted)) => self.answer(request, admitted).await,
                Err(ending) => Err(ending),
            };
            if let Err(ending) = answered {
                return ending;
            }
        }
    }

    async fn next_request(&mut self) -> Result<(String, Result<BodyCharge, Problem>), Ending> {
        let draining = self.app.draining.clone();
        tokio::select! {
            biased;
            () = draining.cancelled() => Err(Ending::Told(CloseCode::GOING_AWAY, "the gateway is shutting down")),
            request = poll_fn(|cx| self.poll_with(cx, |this, _| match this.waiting.pop_front() {
                Some(request) => Poll::Ready(request),
                None => Poll::Pending,
            })) => request,
        }
    }

    async fn answer(&mut self, request: String, admitted: Result<BodyCharge, Problem>) -> Result<(), Ending> {
        let id = RequestId::fresh();
        let response = match admitted {
            Ok(charge) => {
                let mut message = Request::new(Body::from(request));
                message.extensions_mut().insert(id);
                message.extensions_mut().insert(self.identity.clone());
                message.extensions_mut().insert(charge);
                let (app, kept) = (Arc::clone(&self.app), Arc::clone(&self.kept));
                let mut responding = pin!(respond(&app, message, Some(&kept)));
                poll_fn(|cx| self.poll_with(cx, |_, cx| responding.as_mut().poll(cx))).await?
            }
            Err(problem) => Err(problem),
        };
        let mut body = match response {
            Ok(response) => response.into_body(),
            Err(problem) => {
                self.socket.send(&error::message(&problem, &id));
                return Ok(());
            }
        };
        while let Some(Ok(frame)) = poll_fn(|cx| self.poll_with(cx, |_, cx| Pin::new(&mut body).poll_frame(cx))).await?
        {
            let lines = frame.into_data().unwrap_or_default();
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.socket.send(line);
            }
        }
        Ok(())
    }

    /// Writes what there is and takes in what came, and polls this as long as the client takes what it is sent.
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Ending>> {
        loop {
            if let Err(ending) = self.poll_socket(cx) {
                return Poll::Ready(Err(ending));
            }
            if self.socket.behind() < BEHIND
                && let Poll::Ready(done) = poll(self, cx)
            {
                return Poll::Ready(Ok(done));
            }
            if self.signs.poll_tick(cx).is_pending() {
                return Poll::Pending;
            }
            self.socket.ping();
        }
    }

    fn poll_socket(&mut self, cx: &mut Context<'_>) -> Result<(), Ending> {
        loop {
            if let Poll::Ready(Err(_)) = self.socket.poll_write(cx) {
                return Err(Ending::Left);
            }
            match self.socket.poll_receive(cx) {
                Poll::Pending => {
                    // What was answered to a ping goes out with the next poll.
                    return match self.socket.poll_write(cx) {
                        Poll::Ready(Err(_)) => Err(Ending::Left),
                        _ => Ok(()),
                    };
                }
                Poll::Ready(Received::Text(_)) if self.waiting.len() == MOST_WAITING => {
                    return Err(Ending::Told(CloseCode::POLICY, "too many requests wait for an answer"));
                }
                Poll::Ready(Received::Text(text)) => {
                    let admitted = self.admission.admit(text.len());
                    let text = if admitted.is_ok() { text } else { String::new() };
                    self.waiting.push_back((text, admitted));
                }
                Poll::Ready(Received::Sign | Received::Begun) => {}
                Poll::Ready(Received::Ended(Arrived::Broken(code))) => return Err(Ending::Told(code, "")),
                Poll::Ready(Received::Ended(Arrived::Close | Arrived::Lost)) => return Err(Ending::Left),
            }
        }
    }
}
