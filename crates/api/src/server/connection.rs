//! One connection: which HTTP it speaks, its requests, and when it ends.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, interval, sleep, sleep_until, timeout};
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::admin::health;
use crate::path_key;
use crate::server::activity::{Activity, Arriving, Departing, Flight, Phase};
use crate::server::connection_limits::{Slot, SlotKind};
use crate::server::drain::Drain;
use crate::server::inline_wake::InlineWake;
use crate::server::overload::{Declined, shutting_down, too_many_connections};
use crate::server::socket::{Socket, tune};
use crate::server::{Deadlines, Peer, ServerConfig};

const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Room for a head with large values; also what is read ahead of a body.
const BUFFER: usize = 128 << 10;
/// What a connection beyond the bounds gets to ask its one question.
const SPARE_DEADLINE: Duration = Duration::from_secs(2);
/// Others wait to be refused.
const SPARE_LINGER: Duration = Duration::from_millis(50);

/// What all connections of a server share.
pub struct Context {
    app: Router,
    deadlines: Deadlines,
    http1: http1::Builder,
    http2: http2::Builder<StreamTasks>,
    pub drain: Drain,
    /// The tasks of HTTP/2 streams. They end with their connection.
    pub streams: TaskTracker,
}

#[derive(Clone)]
struct StreamTasks(TaskTracker);

impl<F> Executor<F> for StreamTasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

impl Context {
    pub fn new(app: Router, config: &ServerConfig) -> Self {
        let streams = TaskTracker::new();
        let mut http1 = http1::Builder::new();
        // The head's deadline is our own: hyper's would end idle connections too. The pieces of a stream are small: to
        // copy one behind its length costs less than a write of three parts. Nothing is read while an answer goes out,
        // since a stream would keep a buffer for it: the socket notices when its peer leaves.
        http1.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER).writev(false).half_close(true);
        let mut http2 = http2::Builder::new(StreamTasks(streams.clone()));
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.connections.streams)
            .max_send_buf_size(64 << 10)
            .keep_alive_interval(config.deadlines.send)
            .keep_alive_timeout(config.deadlines.send);
        Self { app, deadlines: config.deadlines, http1, http2, drain: Drain::default(), streams }
    }
}

/// What is known of a connection beside its socket.
struct Link {
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: SocketAddr,
    /// The address of ours that it reached.
    local: Option<SocketAddr>,
    kind: SlotKind,
    /// Whether new requests on it are refused, since the server drains.
    declines: AtomicBool,
}

/// Serves a connection to its end.
pub async fn serve(context: Arc<Context>, stream: TcpStream, peer: SocketAddr, slot: Slot) {
    let mut deadlines = context.deadlines;
    let kind = slot.kind();
    if kind == SlotKind::Spare {
        deadlines.head = deadlines.head.min(SPARE_DEADLINE);
        deadlines.send = deadlines.send.min(SPARE_DEADLINE);
        deadlines.linger = deadlines.linger.min(SPARE_LINGER);
    }
    if let Err(failure) = tune(&stream, deadlines.send) {
        // Gone already.
        tracing::debug!(%failure, "a connection could not be set up");
        return;
    }
    let activity = Arc::new(Activity::new());
    let local = stream.local_addr().ok();
    let socket = Socket::new(stream, peer, Arc::clone(&activity), deadlines, slot);
    let link = Link { context, activity, peer, local, kind, declines: AtomicBool::new(false) };
    let mut leaving = Leaving::No;
    let opening = {
        let mut opening = pin!(timeout(deadlines.head, opening(socket.stream())));
        // A request that has arrived is served, even if the drain began at the same moment.
        tokio::select! {
            biased;
            opening = &mut opening => opening,
            () = link.context.drain.begun.cancelled() => {
                leaving = link.decline();
                tokio::select! {
                    opening = &mut opening => opening,
                    () = link.context.drain.over.cancelled() => return,
                }
            }
        }
    };
    match opening {
        Ok(Ok(Opening::Http1)) => link.http1(socket, deadlines, leaving).await,
        // Rarely spoken, and large: kept out of the task of every other connection.
        Ok(Ok(Opening::Http2)) => Box::pin(link.http2(socket, deadlines)).await,
        Ok(Ok(Opening::Closed) | Err(_)) | Err(_) => {}
    }
}

enum Opening {
    Http1,
    Http2,
    Closed,
}

/// Looks at the first bytes without taking them. Nothing is allocated for a connection before it says something.
async fn opening(stream: &TcpStream) -> io::Result<Opening> {
    let mut bytes = [0; HTTP2_PREFACE.len()];
    loop {
        let seen = stream.peek(&mut bytes).await?;
        if seen == 0 {
            return Ok(Opening::Closed);
        }
        if bytes[..seen] != HTTP2_PREFACE[..seen] {
            return Ok(Opening::Http1);
        }
        if seen == HTTP2_PREFACE.len() {
            return Ok(Opening::Http2);
        }
        // It may become either. The socket stays readable, so that waiting for it would spin.
        sleep(Duration::from_millis(20)).await;
    }
}

/// Where a connection stands when the server drains.
enum Leaving {
    No,
    /// It does nothing that others would have to wait for.
    Idle {
        _counted: Idler,
    },
    /// It ends with the request that it is at.
    Told,
}

/// Counted among those that wait for the end of the drain.
struct Idler(Arc<Context>);

impl Drop for Idler {
    fn drop(&mut self) {
        self.0.drain.remove_idle();
    }
}

impl Link {
    /// No new work on this connection.
    fn decline(&self) -> Leaving {
        self.declines.store(true, Ordering::Relaxed);
        self.context.drain.add_idle();
        Leaving::Idle { _counted: Idler(Arc::clone(&self.context)) }
    }

    /// Whether the connection ends with what it is at. `true` once.
    fn has_to_leave(&self, leaving: &mut Leaving) -> bool {
        let drain = &self.context.drain;
        if matches!(leaving, Leaving::No) && drain.begun.is_cancelled() {
            *leaving = match self.activity.phase() {
                Phase::Busy => Leaving::Told,
                Phase::Head { .. } | Phase::Idle { .. } => self.decline(),
            };
            return matches!(leaving, Leaving::Told);
        }
        let goes = matches!(leaving, Leaving::Idle { .. }) && drain.over.is_cancelled();
        if goes {
            *leaving = Leaving::Told;
        }
        goes
    }

    async fn http1(self, socket: Socket, deadlines: Deadlines, mut leaving: Leaving) {
        let mut builder = self.context.http1.clone();
        if self.kind == SlotKind::Spare {
            builder.keep_alive(false);
        }
        let service = service_fn(|request| self.answer(request, Departing::new));
        let mut connection = builder.serve_connection(TokioIo::new(socket), service).with_upgrades();
        let mut clock = Clock::new(deadlines, Heads::Timed);
        let drain = &self.context.drain;
        let mut drained = pin!(async { tokio::join!(drain.begun.cancelled(), drain.over.cancelled()) });
        let mut registered = false;
        let mut poll = |cx: &mut std::task::Context<'_>| {
            // First the connection, then the drain: a request that was sent before the drain is answered.
            let mut polled = Pin::new(&mut connection).poll(cx);
            // Polled once, to be woken by it: its waker stays valid, since a connection never changes its task. The lists
            // of waiters are shared by all connections, so that only the flags are read from then on.
            if polled.is_pending() && !registered {
                registered = drained.as_mut().poll(cx).is_pending() || drain.over.is_cancelled();
            }
            if polled.is_pending() && self.has_to_leave(&mut leaving) {
                Pin::new(&mut connection).graceful_shutdown();
                polled = Pin::new(&mut connection).poll(cx);
            }
            if let Poll::Ready(ended) = polled {
                report(ended);
                return Poll::Ready(());
            }
            clock.poll(cx, &self.activity)
        };
        let inline_wake = InlineWake::new(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
        // A response that streams is woken by other tasks alone, and those reach the task's own waker sooner.
        poll_fn(|cx| if self.activity.is_answering() { poll(cx) } else { inline_wake.poll(&mut poll) }).await;
    }

    async fn http2(self, socket: Socket, deadlines: Deadlines) {
        let link = Arc::new(self);
        let of_service = Arc::clone(&link);
        let service = service_fn(move |request| of_service.answer(request, Departing::watched));
        let mut glances = interval(deadlines.send.max(Duration::from_millis(2)) / 2);
        let mut connection = pin!(link.context.http2.serve_connection(TokioIo::new(socket), service));
        let mut clock = Clock::new(deadlines, Heads::Untimed);
        let mut draining = Listening::new(&link.context.drain);
        let mut word = pin!(link.context.drain.begun.cancelled());
        poll_fn(|cx| {
            let mut polled = connection.as_mut().poll(cx);
            if polled.is_pending() && draining.hears(word.as_mut(), cx) {
                connection.as_mut().graceful_shutdown();
                polled = connection.as_mut().poll(cx);
            }
            if let Poll::Ready(ended) = polled {
                report(ended);
                return Poll::Ready(());
            }
            while glances.poll_tick(cx).is_ready() {
                if link.activity.is_stalled(deadlines.send) {
                    return Poll::Ready(());
                }
            }
            clock.poll(cx, &link.activity)
        })
        .await;
    }

    /// Hands a request to the routes.
    fn answer(
        &self,
        request: Request<Incoming>,
        depart: fn(Body, Flight) -> Departing,
    ) -> impl Future<Output = Result<Response<Departing>, Infallible>> + Send + use<> {
        let flight = Flight::begin(&self.activity);
        let mut request = request.map(|body| Body::new(Arriving::new(body, &self.activity)));
        path_key::take(&mut request);
        request.extensions_mut().insert(Peer { remote: self.peer, local: self.local });
        let problem = match self.kind {
            _ if health::is_probe(request.method(), request.uri().path()) => None,
            SlotKind::Spare => Some(too_many_connections()),
            SlotKind::Regular => self.declines.load(Ordering::Relaxed).then(shutting_down),
        };
        let is_declined = problem.is_some();
        if let Some(problem) = problem {
            request.extensions_mut().insert(Declined(problem));
        }
        let mut app = self.context.app.clone();
        async move {
            let mut response = match app.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            if is_declined {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| depart(body, flight)))
        }
    }
}

fn report(ended: Result<(), hyper::Error>) {
    if let Err(failure) = ended {
        // A client's doing, nearly always: a broken request, or a connection that it dropped.
        tracing::debug!(%failure, "a connection ended early");
    }
}

/// Notices once that the server drains.
struct Listening<'a> {
    drain: &'a Drain,
    registered: bool,
    heard: bool,
}

impl<'a> Listening<'a> {
    fn new(drain: &'a Drain) -> Self {
        Self { drain, registered: false, heard: false }
    }

    /// `true` once. The token's future is polled once to be woken by it; its waker stays valid, since a connection never
    /// changes its task. After that the flag is read: the list of waiters is shared by all connections.
    fn hears(&mut self, word: Pin<&mut impl Future<Output = ()>>, cx: &mut std::task::Context<'_>) -> bool {
        if self.heard {
            return false;
        }
        if !std::mem::replace(&mut self.registered, true) {
            self.heard = word.poll(cx).is_ready();
        }
        self.heard |= self.drain.begun.is_cancelled();
        self.heard
    }
}

/// Whether an unfinished head has a deadline of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heads {
    Timed,
    /// HTTP/2 has frames that belong to no head: its connections end only for want of requests.
    Untimed,
}

/// The one timer of a connection. It is only ever moved to an earlier time; when it fires too early it is set again, so that
/// a busy connection does not touch it.
struct Clock {
    deadlines: Deadlines,
    heads: Heads,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    fn new(deadlines: Deadlines, heads: Heads) -> Self {
        Self { deadlines, heads, timer: None }
    }

    /// Ready when the connection has to end.
    fn poll(&mut self, cx: &mut std::task::Context<'_>, activity: &Activity) -> Poll<()> {
        loop {
            let Some(due) = self.due(activity) else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if due < timer.deadline() {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(cx));
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }

    fn due(&self, activity: &Activity) -> Option<Instant> {
        match activity.phase() {
            Phase::Busy => None,
            Phase::Head { since } if self.heads == Heads::Timed => Some(Instant::from_std(since) + self.deadlines.head),
            Phase::Head { since } | Phase::Idle { since } => Some(Instant::from_std(since) + self.deadlines.idle),
        }
    }
}
