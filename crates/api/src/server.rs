//! The accept loop: HTTP/1.1 and HTTP/2 on plain TCP, with a bound on everything that a client can hold open: connections,
//! the time to send a head, the time to be idle, the time to not read a response.

mod activity;
mod connection_limits;
mod connection;
mod drain;
mod inline_wake;
mod malformed;
mod overload;
mod socket;

pub use self::connection_limits::set_aside;
pub use self::malformed::log_refused;
pub use self::overload::Declined;

use std::fs::File;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::connection::Context;
use self::connection_limits::{AcceptedFd, ConnectionLimits, Slot};
use self::drain::Drain;
use crate::admin::metrics::names;

/// How many connections the kernel keeps for us while we are busy.
const BACKLOG: u32 = 1024;
/// After the process ran out of descriptors: long enough not to spin, short enough not to be felt.
const OUT_OF_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(50);

/// The other end of the connection. In every request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub remote: SocketAddr,
    /// The address of ours that it reached; none if the socket was gone by then.
    pub local: Option<SocketAddr>,
}

#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Port 0 for any that is free.
    pub addrs: Vec<SocketAddr>,
    pub deadlines: Deadlines,
    pub connections: Connections,
}

#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// For the head of a request, from its first byte, or from the connection's start.
    pub head: Duration,
    /// For a connection between two requests.
    pub idle: Duration,
    /// For a client to take a piece of its answer.
    pub send: Duration,
    /// For a client to notice that an answer came before its body was read.
    pub linger: Duration,
    /// For running requests to end, once the server drains.
    pub drain: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// In all. The descriptors of the process may allow fewer.
    pub most: usize,
    /// Of one address, loopback aside: all local clients share that one.
    pub most_per_address: usize,
    /// Beyond `most`: answered with 503, except for health.
    pub spare: usize,
    /// Streams of one HTTP/2 connection.
    pub streams: u32,
}

impl ServerConfig {
    pub fn new(addrs: Vec<SocketAddr>) -> Self {
        Self { addrs, deadlines: Deadlines::default(), connections: Connections::default() }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            send: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(30),
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self { most: 50_000, most_per_address: 256, spare: 16, streams: 100 }
    }
}

/// How the server is told to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Accept nothing more, let running requests end.
    pub drain: CancellationToken,
    /// Do not wait for them.
    pub now: CancellationToken,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every connection had ended by itself.
    Whole,
    /// So many were cut off, after the limit or because there was no time to wait.
    Cut { connections: usize },
}

impl Drained {
    /// Connections that were cut off.
    pub fn cut(self) -> usize {
        match self {
            Self::Whole => 0,
            Self::Cut { connections } => connections,
        }
    }
}

/// Bound, and not yet serving.
pub struct Server {
    listeners: Vec<TcpListener>,
    config: ServerConfig,
}

impl Server {
    /// Takes the addresses. Needs a runtime, though it does not wait.
    pub fn bind(config: ServerConfig) -> io::Result<Self> {
        let listeners = config.addrs.iter().map(|addr| listen(*addr)).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { listeners, config })
    }

    /// The addresses as they became: with the port that was free.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Serves until it is told to stop; then drains. Dropping the future drops every connection.
    pub async fn serve(self, app: Router, stop: Stop) -> Drained {
        let limits = ConnectionLimits::new(self.config.connections);
        let context = Arc::new(Context::new(app, &self.config));
        let mut connections = JoinSet::new();
        let mut reserve = ReserveFd::open();
        loop {
            tokio::select! {
                biased;
                () = stop.drain.cancelled() => break,
                () = stop.now.cancelled() => break,
                Some(ended) = connections.join_next() => report(ended),
                (stream, peer, fd) = accept(&self.listeners, &mut reserve) => {
                    if let Some(slot) = limits.admit(peer.ip(), fd) {
                        take(&mut connections, &context, stream, peer, slot);
                    } else {
                        metrics::counter!(names::CONNECTIONS_REFUSED).increment(1);
                        overload::refuse_connection(stream, peer);
                    }
                }
            }
        }
        // No more connections: the listeners close here.
        drop(self.listeners);
        let limit = tokio::time::sleep(self.config.deadlines.drain);
        let ended = tokio::select! {
            () = drained(&mut connections, &context.drain) => true,
            () = stop.now.cancelled() => false,
            () = limit => false,
        };
        let cut = if ended { 0 } else { connections.len() };
        connections.shutdown().await;
        context.streams.close();
        context.streams.wait().await;
        if cut == 0 { Drained::Whole } else { Drained::Cut { connections: cut } }
    }
}

/// Waits for all connections. Those without work stay open as long as others have some, so that a probe on one of them
/// reads that the gateway is not ready.
async fn drained(connections: &mut JoinSet<()>, drain: &Drain) {
    drain.begun.cancel();
    loop {
        if drain.idle() >= connections.len() {
            drain.over.cancel();
        }
        tokio::select! {
            ended = connections.join_next() => match ended {
                Some(ended) => report(ended),
                None => return,
            },
            () = drain.idled() => {}
        }
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the connections of the last run to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// A descriptor that is closed when no other is left, so that one more connection can be accepted: to be refused with an
/// answer, or to ask for health.
struct ReserveFd(Option<File>);

impl ReserveFd {
    fn open() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Whether there was one to close.
    fn release(&mut self) -> bool {
        self.0.take().is_some()
    }

    fn refill(&mut self) {
        if self.0.is_none() {
            *self = Self::open();
        }
    }
}

/// The next connection of any listener, and what it says of the descriptors. Dropping it loses none.
async fn accept(listeners: &[TcpListener], reserve: &mut ReserveFd) -> (TcpStream, SocketAddr, AcceptedFd) {
    if listeners.is_empty() {
        return pending().await;
    }
    loop {
        let accepted = poll_fn(|cx| {
            for listener in listeners {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        });
        match accepted.await {
            Ok((stream, peer)) => {
                reserve.refill();
                let fd = if reserve.0.is_some() { AcceptedFd::Number(stream.as_raw_fd()) } else { AcceptedFd::Reserve };
                return (stream, peer, fd);
            }
            // One that was gone before we came to it says nothing about the next.
            Err(gone) if gone.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(failure) if is_out_of_descriptors(&failure) && reserve.release() => {}
            Err(failure) => {
                reserve.refill();
                tracing::warn!(%failure, "cannot accept connections for now");
                tokio::time::sleep(OUT_OF_DESCRIPTORS_PAUSE).await;
            }
        }
    }
}

fn is_out_of_descriptors(failure: &io::Error) -> bool {
    let code = failure.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

fn take(connections: &mut JoinSet<()>, context: &Arc<Context>, stream: TcpStream, peer: SocketAddr, slot: Slot) {
    let context = Arc::clone(context);
    connections.spawn(connection::serve(context, stream, peer, slot));
}

fn report(ended: Result<(), JoinError>) {
    if let Err(failure) = ended
        && failure.is_panic()
    {
        // Its text went to the panic hook.
        tracing::error!("a connection's task panicked");
    }
}
