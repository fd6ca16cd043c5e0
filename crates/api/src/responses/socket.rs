//! The same over a WebSocket: one request after another, each a message, and events as messages. Responses that are not
//! stored can be gone on with as long as the connection lasts.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderValue, Response, StatusCode, header};
use gembridge_core::exchange::Exchange;
use gembridge_core::model::{Seq, SessionId};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::create::{Asked, Planned};
use super::encode::{Answer, Framing};
use super::kept::{KeptLimits, KeptResponses};
use super::response_id::ResponseId;
use super::stored::Asking;
use super::{Responses, error};
use crate::dialect::{Caller, StreamEncoder as _};
use crate::guard::memory_budget::MemoryAccount;
use crate::identity::{Rank, RequestId};
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
const KEPT: KeptLimits = KeptLimits { bytes: 4 << 20, entries: 32 };

/// Opens a WebSocket: each message is a request with `type: response.create`, and is answered by its events.
#[utoipa::path(
    get, path = "/v1/responses", tag = "responses", operation_id = "connectResponses",
    responses(
        (status = 101, description = "A WebSocket"),
        (status = 401, description = "No key, or none that is known"),
        (status = 403, description = "A key that is not an operator's"),
        (status = 426, description = "Not a request for a WebSocket"),
    )
)]
pub(super) async fn connect(State(app): State<Arc<Responses>>, asking: Asking, request: Request) -> Response<Body> {
    let answer = switch(&app, &asking, request);
    asking.answer(answer)
}

fn switch(app: &Arc<Responses>, asking: &Asking, mut request: Request) -> Result<Response<Body>, Problem> {
    let offer = match Offer::read(request.method(), request.version(), request.headers()) {
        Ok(offer) => offer,
        Err(what) => return Ok(not_an_upgrade(what, asking)),
    };
    // What waits on a connection is charged to no key, and its requests are not counted: a guest's go over HTTP, where both are.
    if asking.identity.rank == Rank::User {
        let message = "over a WebSocket this API serves operators alone; send `POST /v1/responses` with this key";
        return Err(Problem::new(Kind::Forbidden, message));
    }
    let unmetered = || Problem::new(Kind::Internal, "missing memory account: the guard must run before this handler");
    let memory: MemoryAccount = request.extensions().get().cloned().ok_or_else(unmetered)?;
    if app.draining.is_cancelled() {
        let retry_after = Duration::from_secs(5);
        return Err(Problem::new(Kind::Unavailable { retry_after }, "the gateway is shutting down"));
    }
    let response = offer.switching(offer.protocols.first().map(String::as_str));
    let lease = request.extensions().get::<KeyLease>().cloned();
    let (upgrading, task, asking) = (hyper::upgrade::on(&mut request), Arc::clone(app), asking.clone());
    app.tasks.spawn(async move {
        match upgrading.await {
            Ok(upgraded) => {
                let socket = WebSocket::new(TokioIo::new(upgraded), LARGEST_MESSAGE, memory.charge());
                Connection::new(task, socket, asking).run(lease).await;
            }
            Err(failure) => tracing::debug!(%failure, "a connection was gone before it became a WebSocket"),
        }
    });
    Ok(response)
}

fn not_an_upgrade(what: NotAnUpgrade, asking: &Asking) -> Response<Body> {
    let mut response = error::response(&Problem::new(Kind::Invalid, what.to_string()), &asking.request);
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
    asking: Asking,
    kept: Arc<KeptResponses>,
    waiting: VecDeque<String>,
    signs: Interval,
}

/// Why a connection ends.
enum Ending {
    Told(CloseCode, &'static str),
    /// The other end has gone, or said goodbye.
    Left,
}

impl Connection {
    fn new(app: Arc<Responses>, socket: WebSocket<TokioIo<Upgraded>>, asking: Asking) -> Self {
        let mut signs = interval(app.dialects.config.keep_alive);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let kept = Arc::new(KeptResponses::new(KEPT));
        Self { app, socket, asking, kept, waiting: VecDeque::new(), signs }
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
            let request = match self.waiting.pop_front() {
                Some(request) => request,
                None => match self.next_request().await {
                    Ok(request) => request,
                    Err(ending) => return ending,
                },
            };
            let id = RequestId::fresh();
            let answered = match self.begin(request, id).await {
                Ok(Begun::Answered(mut answer)) => {
                    self.pass_on(&mut answer);
                    Ok(())
                }
                Ok(Begun::Working(exchange, answer)) => self.work(*exchange, *answer).await,
                Err(problem) => {
                    self.socket.send(&error::message(&problem, &id));
                    Ok(())
                }
            };
            if let Err(ending) = answered {
                return ending;
            }
        }
    }

    async fn next_request(&mut self) -> Result<String, Ending> {
        let draining = self.app.draining.clone();
        let request = poll_fn(|cx| {
            loop {
                if let Err(ending) = self.poll_socket(cx) {
                    return Poll::Ready(Err(ending));
                }
                if let Some(request) = self.waiting.pop_front() {
                    return Poll::Ready(Ok(request));
                }
                if self.signs.poll_tick(cx).is_pending() {
                    return Poll::Pending;
                }
                self.socket.ping();
            }
        });
        tokio::select! {
            biased;
            () = draining.cancelled() => Err(Ending::Told(CloseCode::GOING_AWAY, "the gateway is shutting down")),
            request = request => request,
        }
    }

    /// Writes what there is, and takes in what came.
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
                Poll::Ready(Received::Text(text)) => self.waiting.push_back(text),
                Poll::Ready(Received::Sign | Received::Begun) => {}
                Poll::Ready(Received::Ended(Arrived::Broken(code))) => return Err(Ending::Told(code, "")),
                Poll::Ready(Received::Ended(Arrived::Close | Arrived::Lost)) => return Err(Ending::Left),
            }
        }
    }

    async fn begin(&mut self, request: String, id: RequestId) -> Result<Begun, Problem> {
        check_type(&request)?;
        let mut known = Extensions::new();
        known.insert(self.asking.identity.clone());
        let caller = Caller::new(Arc::clone(&self.app.dialects), id, &mut known)?;
        let (mut caller, asked) = caller.read(Body::from(request), Asked::read).await?;
        let previous = asked.options.previous.clone();
        let begun = self.start(&mut caller, asked).await;
        if let (Err(_), Some(previous)) = (&begun, previous) {
            // What could not be gone on with is not gone on with later either.
            self.kept.remove(&previous);
        }
        begun
    }

    async fn start(&mut self, caller: &mut Caller, asked: Asked) -> Result<Begun, Problem> {
        let planned = asked.plan(&self.app, caller, None, Some(&self.kept)).await?;
        let Planned { plan, head, keeper, options } = planned;
        let mut answer = Answer::in_events(head, Framing::Lines).kept_by(keeper);
        if !options.generate {
            let place = ResponseId { session: SessionId::new(), after: Seq::START, is_stored: false };
            answer.begin(place);
            answer.end(gembridge_core::exchange::TokenCount::default());
            answer.keep();
            return Ok(Begun::Answered(Box::new(answer)));
        }
        let exchange = caller.start(plan).map_err(error::problem)?;
        Ok(Begun::Working(Box::new(exchange), Box::new(answer)))
    }

    /// Passes events on until the answer is over.
    async fn work(&mut self, mut exchange: Exchange, mut answer: Answer) -> Result<(), Ending> {
        self.signs.reset();
        poll_fn(|cx| {
            loop {
                if let Err(ending) = self.poll_socket(cx) {
                    return Poll::Ready(Err(ending));
                }
                if exchange.is_over() {
                    return Poll::Ready(Ok(()));
                }
                let has_room = self.socket.behind() < BEHIND;
                if has_room && exchange.poll_step(cx, &mut answer).is_ready() {
                    self.pass_on(&mut answer);
                    self.signs.reset();
                    continue;
                }
                if self.signs.poll_tick(cx).is_pending() {
                    return Poll::Pending;
                }
                answer.sign_of_life();
                self.pass_on(&mut answer);
            }
        })
        .await?;
        match exchange.take_failure() {
            Some(failure) if answer.id().is_empty() => {
                self.socket.send(&error::message(&error::problem(failure), &RequestId::fresh()));
            }
            Some(failure) => answer.fail(error::problem(failure)),
            None => {
                answer.end(exchange.tokens());
                answer.keep();
            }
        }
        self.pass_on(&mut answer);
        Ok(())
    }

    /// Each line is a message.
    fn pass_on(&mut self, answer: &mut Answer) {
        let Some(lines) = answer.take() else { return };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.socket.send(line);
        }
    }
}

/// What became of a request.
enum Begun {
    /// Nothing was to be said to it.
    Answered(Box<Answer>),
    Working(Box<Exchange>, Box<Answer>),
}

fn check_type(request: &str) -> Result<(), Problem> {
    #[derive(Deserialize)]
    struct Typed {
        r#type: Option<String>,
    }
    let typed: Typed = serde_json::from_str(request)
        .map_err(|error| Problem::new(Kind::Invalid, format!("the message is not a request: {error}")))?;
    match typed.r#type.as_deref() {
        Some("response.create") => Ok(()),
        other => {
            let shown = crate::dialect::brief(other.unwrap_or_default());
            Err(Problem::invalid("type", format!("`{shown}` is no type of message here; send `response.create`")))
        }
    }
}
